//! SpiderIPAllocation: one address in use. Creating the object is the reservation.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One address in use, named by it: `172.91.0.100`; IPv6 fully written out, with dashes.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "spiderpool.spidernet.io",
    version = "v2beta1",
    kind = "SpiderIPAllocation",
    plural = "spideripallocations",
    shortname = "sia",
    category = "spiderpool",
    derive = "PartialEq",
    doc = "One address in use. Creating the object is the reservation.",
    selectable = ".spec.node.name",
    selectable = ".spec.pool",
    selectable = ".spec.pod.name",
    selectable = ".spec.owner.name",
    // Two names of one address would be two reservations of it.
    validation = Rule::new("self.spec.address.contains(':') ? self.metadata.name.matches('^([0-9a-f]{4}-){7}[0-9a-f]{4}$') && ip(self.metadata.name.replace('-', ':')) == ip(self.spec.address) : self.metadata.name == self.spec.address").message("metadata.name must be the address, one of IPv6 fully written out with dashes"),
    printcolumn(name = "POOL", type_ = "string", json_path = ".spec.pool"),
    printcolumn(name = "NODE", type_ = "string", json_path = ".spec.node.name"),
    printcolumn(name = "NAMESPACE", type_ = "string", json_path = ".spec.pod.namespace"),
    printcolumn(name = "POD", type_ = "string", json_path = ".spec.pod.name"),
    printcolumn(name = "INTERFACE", type_ = "string", json_path = ".spec.interface"),
    printcolumn(name = "STATE", type_ = "string", json_path = ".spec.state"),
    printcolumn(name = "AGE", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("(self.state == 'Releasing') == has(self.releasing)").message("releasing belongs to state Releasing, and to no other"))]
pub struct IpAllocationSpec {
    /// SpiderIPPool of the address.
    #[x_kube(validation = Rule::new("self == oldSelf").message("is not changeable"))]
    pub pool: String,
    /// The address, without prefix.
    #[schemars(length(max = 50))]
    #[x_kube(validation = Rule::new("isIP(self)").message("must be an address"))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("is not changeable"))]
    pub address: String,
    /// Who holds it.
    pub node: NodeRef,
    /// The pod that it is for.
    pub pod: PodRef,
    /// The pod's top controller when the address was reserved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<OwnerRef>,
    /// Sandbox that uses it.
    #[serde(default, rename = "containerId")]
    pub container_id: String,
    /// Interface in the pod.
    #[serde(default)]
    pub interface: String,
    /// Attachment (`namespace/name`) that it is for.
    #[serde(default)]
    pub network: String,
    /// Network namespace of the sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netns: Option<Netns>,
    /// Boot of the node in which the sandbox was made.
    #[serde(default)]
    pub boot_id: String,
    /// New in every write that precedes a publish: fences older ones.
    #[serde(default)]
    pub flow_id: String,
    /// What is being done with it.
    pub state: State,
    /// State Releasing: who releases, and what then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub releasing: Option<Releasing>,
    /// Present as soon as the cloud may know the address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<ProviderRef>,
    /// The sandbox is gone while the pod lives on or is retained.
    #[serde(default)]
    pub detached: bool,
    /// What a person asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_request: Option<ReleaseRequest>,
}

/// What is being done with an address.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It belongs to the pod.
    Held,
    /// The cloud is being asked to let go of it.
    Releasing,
}

/// A release on its way.
#[derive(Serialize, Deserialize, KubeSchema, Clone, Debug, PartialEq)]
pub struct Releasing {
    /// Random id of the process that releases, never a node's name.
    pub releaser: String,
    /// What becomes of the object when the cloud has let go.
    pub then: Then,
}

/// What becomes of an allocation after its release.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The address is free.
    Delete,
    /// It stays with its pod, unbound.
    Keep,
}

/// A node, told apart from others of its name.
#[derive(Serialize, Deserialize, KubeSchema, Clone, Debug, Default, PartialEq)]
pub struct NodeRef {
    /// Name of the Node.
    pub name: String,
    /// UID of the Node.
    #[serde(default)]
    pub uid: String,
    /// The machine behind it.
    #[serde(default, rename = "machineID")]
    pub machine_id: String,
}

/// A pod, told apart from others of its name.
#[derive(Serialize, Deserialize, KubeSchema, Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "as in ObjectMeta")]
pub struct PodRef {
    pub namespace: String,
    pub name: String,
    pub uid: String,
}

/// A controller of pods.
#[derive(Serialize, Deserialize, KubeSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "as in OwnerReference")]
pub struct OwnerRef {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub uid: String,
}

/// A network namespace, told apart from others at its path.
#[derive(Serialize, Deserialize, KubeSchema, Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "as in stat(2)")]
pub struct Netns {
    pub path: String,
    pub dev: i64,
    pub inode: i64,
}

/// What the cloud was told.
#[derive(Serialize, Deserialize, KubeSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ProviderRef {
    /// Which provider: its `serverUrl`.
    pub server: String,
    /// Subnet of the address.
    pub subnet: String,
    /// NIC of the node that carries it.
    #[serde(default)]
    pub parent_nic_mac: String,
    /// Fresh in every write that precedes an allocate call.
    pub bind_id: String,
    /// How long calls that were sent under this version may still take effect, in milliseconds.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub settle_milliseconds: i64,
}

/// A person's wish to release an address.
#[derive(Serialize, Deserialize, KubeSchema, Clone, Debug, Default, PartialEq)]
pub struct ReleaseRequest {
    /// Who.
    pub by: String,
    /// When, RFC 3339.
    pub at: String,
    /// Do not ask the cloud: it is known to be free there, or that is accepted.
    #[serde(default)]
    pub abandon: bool,
}
