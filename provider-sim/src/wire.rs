//! Both calls as they stand on the wire. Written for this crate alone: were the client's types used here, a field that both
//! spell wrong would never be noticed.

use serde::{Deserialize, Serialize};

/// Where addresses are bound.
pub const ALLOCATE: &str = "/v1/apis/network.iaas.io/ipam/allocate-ips";
/// Where they are released.
pub const RELEASE: &str = "/v1/apis/network.iaas.io/ipam/release-ip";
/// How many milliseconds the provider has, from when it received the request.
pub const BUDGET: &str = "x-request-timeout-ms";
/// More than this is read by neither side.
pub const MAX_BODY: usize = 1024 * 1024;

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// [`ALLOCATE`].
    Allocate,
    /// [`RELEASE`].
    Release,
}

impl Operation {
    /// As metrics and rules of faults call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allocate => "allocate",
            Self::Release => "release",
        }
    }

    /// Its path.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Self::Allocate => ALLOCATE,
            Self::Release => RELEASE,
        }
    }
}

/// Asks to bind addresses for a pod. An empty text of an optional field means that it is not known, and is not sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AllocateRequest {
    /// Name of the pod.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pod_name: String,
    /// Its namespace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pod_namespace: String,
    /// Its UID.
    #[serde(rename = "podUID", default, skip_serializing_if = "String::is_empty")]
    pub pod_uid: String,
    /// The node that it is on.
    pub node_name: String,
    /// The addresses.
    #[serde(rename = "iaasIPsAllocationRequest")]
    pub addresses: Vec<AskedAddress>,
}

/// An address that is to be bound.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskedAddress {
    /// Without prefix.
    pub ip_address: String,
    /// The subnet that it is of.
    pub subnet: String,
    /// MAC address of the node's NIC that carries it.
    pub parent_nic_mac: String,
}

/// What was bound.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AllocateResponse {
    /// As asked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pod_name: String,
    /// As asked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pod_namespace: String,
    /// As asked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node_name: String,
    /// The addresses.
    #[serde(rename = "iaasIPsAllocationResponse")]
    pub addresses: Vec<BoundAddress>,
}

/// An address that is bound.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BoundAddress {
    /// As asked.
    pub parent_nic_mac: String,
    /// As asked.
    pub subnet: String,
    /// As asked.
    pub ip_address: String,
    /// MAC address that the pod's interface is to have.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub mac_address: String,
    /// VLAN id that the pod's interface is to have. Wide enough for ids that no VLAN has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan_id: Option<i64>,
}

/// Asks to release one address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseRequest {
    /// Name of the pod.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pod_name: String,
    /// Its namespace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pod_namespace: String,
    /// Its UID.
    #[serde(rename = "podUID", default, skip_serializing_if = "String::is_empty")]
    pub pod_uid: String,
    /// The node that it was on.
    pub node_name: String,
    /// MAC address of the NIC that carried it, where the sender knows it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub parent_nic_mac: String,
    /// The subnet that it is of.
    pub subnet: String,
    /// Without prefix.
    pub ip_address: String,
}
