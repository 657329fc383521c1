//! SpiderEndpoint: the interfaces of one pod.

use super::ip_pool::Route;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// Named by its pod. All of it is in `status`, which is no subresource: existing writers put it into the object itself.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "spiderpool.spidernet.io",
    version = "v2beta1",
    kind = "SpiderEndpoint",
    plural = "spiderendpoints",
    shortname = "se",
    category = "spiderpool",
    namespaced,
    no_spec,
    status = "EndpointStatus",
    derive = "PartialEq",
    doc = "The interfaces and addresses of one pod.",
    selectable = ".status.current.node",
    printcolumn(name = "INTERFACE", type_ = "string", json_path = ".status.current.ips[0].interface"),
    printcolumn(name = "IPV4POOL", type_ = "string", json_path = ".status.current.ips[0].ipv4Pool"),
    printcolumn(name = "IPV4", type_ = "string", json_path = ".status.current.ips[0].ipv4"),
    printcolumn(name = "IPV6POOL", type_ = "string", json_path = ".status.current.ips[0].ipv6Pool"),
    printcolumn(name = "IPV6", type_ = "string", json_path = ".status.current.ips[0].ipv6"),
    printcolumn(name = "NODE", type_ = "string", json_path = ".status.current.node")
)]
pub struct EndpointSpec {}

/// The pod that holds the name now.
#[derive(Serialize, Deserialize, KubeSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct EndpointStatus {
    /// The pod and its interfaces.
    #[serde(default)]
    pub current: Current,
    /// Kind of the pod's top controller; `Pod` if it has none.
    #[serde(default)]
    pub owner_controller_type: String,
    /// Name of the pod's top controller.
    #[serde(default)]
    pub owner_controller_name: String,
}

/// One pod's interfaces.
#[derive(Serialize, Deserialize, KubeSchema, Clone, Debug, Default, PartialEq)]
pub struct Current {
    /// UID of the pod.
    #[serde(default)]
    pub uid: String,
    /// Node that it runs on.
    #[serde(default)]
    pub node: String,
    /// One entry an interface.
    #[serde(default)]
    pub ips: Vec<Interface>,
}

/// One interface of a pod.
#[derive(Serialize, Deserialize, KubeSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Interface {
    /// Its name in the pod.
    pub interface: String,
    /// Address with prefix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv4: Option<String>,
    /// Address with prefix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv6: Option<String>,
    /// SpiderIPPool of the address.
    #[serde(default, rename = "ipv4Pool", skip_serializing_if = "Option::is_none")]
    pub ipv4_pool: Option<String>,
    /// SpiderIPPool of the address.
    #[serde(default, rename = "ipv6Pool", skip_serializing_if = "Option::is_none")]
    pub ipv6_pool: Option<String>,
    /// VLAN id; 0 is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 4094))]
    pub vlan: Option<i64>,
    /// MAC address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// Gateway.
    #[serde(default, rename = "ipv4Gateway", skip_serializing_if = "Option::is_none")]
    pub ipv4_gateway: Option<String>,
    /// Gateway.
    #[serde(default, rename = "ipv6Gateway", skip_serializing_if = "Option::is_none")]
    pub ipv6_gateway: Option<String>,
    /// No default route through this interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clean_gateway: Option<bool>,
    /// Further routes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Route>,
    /// Which binding of the cloud this entry shows; an entry of another is no entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bind_id: Option<String>,
}
