//! SpiderIPPool: addresses that pods may get.

use super::texts;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// Addresses of one subnet, and who may have them.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "spiderpool.spidernet.io",
    version = "v2beta1",
    kind = "SpiderIPPool",
    plural = "spiderippools",
    shortname = "sp",
    category = "spiderpool",
    status = "IpPoolStatus",
    derive = "PartialEq",
    doc = "Addresses of one subnet, and the pods that may have them.",
    printcolumn(name = "VERSION", type_ = "string", json_path = ".spec.ipVersion"),
    printcolumn(name = "SUBNET", type_ = "string", json_path = ".spec.subnet"),
    printcolumn(name = "ALLOCATED-IP-COUNT", type_ = "integer", json_path = ".status.allocatedIPCount"),
    printcolumn(name = "TOTAL-IP-COUNT", type_ = "integer", json_path = ".status.totalIPCount"),
    printcolumn(name = "DEFAULT", type_ = "boolean", json_path = ".spec.default"),
    printcolumn(name = "DISABLE", type_ = "boolean", json_path = ".spec.disable", priority = 10),
    printcolumn(name = "NodeName", type_ = "string", json_path = ".spec.nodeName", priority = 10),
    printcolumn(name = "MultusName", type_ = "string", json_path = ".spec.multusName", priority = 10),
    printcolumn(
        name = "APP-NAMESPACE",
        type_ = "string",
        json_path = ".spec.podAffinity.matchLabels['ipam\\.spidernet\\.io/app-namespace']",
        priority = 10
    )
)]
#[serde(rename_all = "camelCase")]
pub struct IpPoolSpec {
    /// 4 or 6; follows from the subnet when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self == 4 || self == 6").message("must be 4 or 6"))]
    #[x_kube(validation = Rule::new("self == oldSelf").message(texts::NOT_CHANGEABLE).reason(Reason::FieldValueForbidden))]
    pub ip_version: Option<i64>,
    /// The subnet as the network knows it, such as 172.91.0.0/24.
    #[schemars(length(max = 50))]
    #[x_kube(validation = Rule::new("isCIDR(self) && cidr(self) == cidr(self).masked()").message("must be a subnet without host bits, such as 172.91.0.0/24"))]
    #[x_kube(validation = Rule::new("self == oldSelf").message(texts::NOT_CHANGEABLE).reason(Reason::FieldValueForbidden))]
    pub subnet: String,
    /// Addresses (`172.91.0.100`) and ranges (`172.91.0.100-172.91.0.120`).
    #[serde(default, rename = "ips", skip_serializing_if = "Vec::is_empty")]
    pub ips: Vec<String>,
    /// Addresses and ranges that are left out.
    #[serde(default, rename = "excludeIPs", skip_serializing_if = "Vec::is_empty")]
    pub exclude_ips: Vec<String>,
    /// Gateway of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 50))]
    #[x_kube(validation = Rule::new("self == '' || isIP(self)").message("must be an address"))]
    pub gateway: Option<String>,
    /// Further routes of the pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Route>,
    /// Pods that may use the pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_affinity: Option<LabelSelector>,
    /// Namespaces whose pods may use the pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_affinity: Option<LabelSelector>,
    /// Namespaces whose pods may use the pool, by name; wins over `namespaceAffinity`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespace_name: Vec<String>,
    /// Nodes whose pods may use the pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_affinity: Option<LabelSelector>,
    /// Nodes whose pods may use the pool, by name; wins over `nodeAffinity`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub node_name: Vec<String>,
    /// Attachments (`namespace/name`) that may use the pool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub multus_name: Vec<String>,
    /// Used by pods that name no pool.
    #[serde(default)]
    pub default: bool,
    /// Gives no address any more; what pods have stays theirs.
    #[serde(default)]
    pub disable: bool,
}

/// A route of the pods.
#[derive(Serialize, Deserialize, KubeSchema, Clone, Debug, Default, PartialEq)]
pub struct Route {
    /// Destination, as a subnet.
    pub dst: String,
    /// Gateway to it.
    pub gw: String,
}

/// Whether `status.allocatedIPs` stands for any record. Of a text that cannot be read nobody knows what it stands for.
#[must_use]
pub fn has_records(text: &str) -> bool {
    let plain: String = text.chars().filter(|c| !c.is_whitespace()).take(5).collect();
    !matches!(plain.as_str(), "" | "{}" | "null")
}

/// What is known of the pool.
#[derive(Serialize, Deserialize, KubeSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct IpPoolStatus {
    /// Records of an earlier system, as JSON; each becomes a SpiderIPAllocation when the pool is taken over.
    #[serde(default, rename = "allocatedIPs", skip_serializing_if = "Option::is_none")]
    pub allocated_ips: Option<String>,
    /// Addresses that pods have.
    #[serde(default, rename = "allocatedIPCount", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub allocated_ip_count: Option<i64>,
    /// Addresses that the pool has.
    #[serde(default, rename = "totalIPCount", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub total_ip_count: Option<i64>,
    /// What is wrong with the pool, or was done to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

#[cfg(test)]
mod tests {
    use super::has_records;

    #[test]
    fn only_what_certainly_has_none_has_none() {
        for none in ["", "{}", " { }\n", "null"] {
            assert!(!has_records(none), "{none:?}");
        }
        for some in ["{", "[]", "nullx", "{}x", "x", r#"{"10.0.0.1": {}}"#] {
            assert!(has_records(some), "{some:?}");
        }
    }
}
