//! What goes over the wire, to the letter of the contract of network providers: names, and what may be left out.

use super::Call;
use serde::{Deserialize, Serialize};

/// Path of the call that binds, behind the path of the server's URL. POST.
pub const ALLOCATE: &str = "v1/apis/network.iaas.io/ipam/allocate-ips";
/// Path of the call that unbinds. POST.
pub const RELEASE: &str = "v1/apis/network.iaas.io/ipam/release-ip";
/// Header: milliseconds, from when the provider gets the request, in which it has to be done. A positive integer.
pub const BUDGET_HEADER: &str = "x-request-timeout-ms";

/// Body of a call that binds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AllocateRequest<'a> {
    /// Name of the pod.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub pod_name: &'a str,
    /// Its namespace.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub pod_namespace: &'a str,
    /// Its UID.
    #[serde(rename = "podUID", skip_serializing_if = "str::is_empty")]
    pub pod_uid: &'a str,
    /// Node that it runs on.
    pub node_name: &'a str,
    /// What to bind.
    #[serde(rename = "iaasIPsAllocationRequest")]
    pub items: Vec<AllocateItem<'a>>,
}

/// One address to bind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AllocateItem<'a> {
    /// Without a prefix length.
    pub ip_address: String,
    /// CIDR of its subnet.
    pub subnet: &'a str,
    /// MAC of the node's NIC.
    pub parent_nic_mac: &'a str,
}

/// Body of a call that unbinds one address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseRequest<'a> {
    /// Name of the pod.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub pod_name: &'a str,
    /// Its namespace.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub pod_namespace: &'a str,
    /// Its UID.
    #[serde(rename = "podUID", skip_serializing_if = "str::is_empty")]
    pub pod_uid: &'a str,
    /// Node that it ran on.
    pub node_name: &'a str,
    /// MAC of the node's NIC.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub parent_nic_mac: &'a str,
    /// CIDR of its subnet.
    pub subnet: &'a str,
    /// Without a prefix length.
    pub ip_address: String,
}

/// Answer to a call that binds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AllocateAnswer {
    /// What was bound.
    #[serde(rename = "iaasIPsAllocationResponse")]
    pub items: Vec<BoundItem>,
}

/// One bound address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BoundItem {
    /// As it was asked for.
    pub ip_address: String,
    /// As it was asked for. The contract wants it; who leaves it out contradicts nothing.
    #[serde(default)]
    pub subnet: Option<String>,
    /// As it was asked for. The same.
    #[serde(default)]
    pub parent_nic_mac: Option<String>,
    /// Of the pod's interface.
    #[serde(default)]
    pub mac_address: Option<String>,
    /// 1 to 4094; 0 is none.
    #[serde(default)]
    pub vlan_id: Option<i64>,
}

impl<'a> AllocateRequest<'a> {
    /// The body of a call.
    #[must_use]
    pub fn new(call: &'a Call) -> Self {
        Self {
            pod_name: &call.pod.name,
            pod_namespace: &call.pod.namespace,
            pod_uid: &call.pod.uid,
            node_name: &call.node,
            items: vec![AllocateItem {
                ip_address: call.address.to_string(),
                subnet: &call.subnet,
                parent_nic_mac: &call.parent_nic_mac,
            }],
        }
    }
}

impl<'a> ReleaseRequest<'a> {
    /// The body of a call.
    #[must_use]
    pub fn new(call: &'a Call) -> Self {
        Self {
            pod_name: &call.pod.name,
            pod_namespace: &call.pod.namespace,
            pod_uid: &call.pod.uid,
            node_name: &call.node,
            parent_nic_mac: &call.parent_nic_mac,
            subnet: &call.subnet,
            ip_address: call.address.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Deadline, Pod};
    use std::time::Duration;

    fn call(pod: Pod, parent_nic_mac: &str) -> Call {
        Call {
            server: "http://x".to_owned(),
            pod,
            node: "worker-1".to_owned(),
            parent_nic_mac: parent_nic_mac.to_owned(),
            address: "10.0.0.10".parse().expect("an address"),
            subnet: "10.0.0.0/24".to_owned(),
            deadline: Deadline::new(Duration::ZERO, Duration::from_secs(50), None),
        }
    }

    fn pod() -> Pod {
        Pod { namespace: "default".to_owned(), name: "example-pod".to_owned(), uid: "9f8b".to_owned() }
    }

    /// The contract's own examples.
    #[test]
    fn bodies_are_those_of_the_contract() {
        let call = call(pod(), "fa:16:3e:11:22:33");
        let text = serde_json::to_string(&AllocateRequest::new(&call)).expect("JSON");
        let item = r#"{"ipAddress":"10.0.0.10","subnet":"10.0.0.0/24","parentNicMac":"fa:16:3e:11:22:33"}"#;
        let of = r#""podName":"example-pod","podNamespace":"default","podUID":"9f8b","nodeName":"worker-1""#;
        assert_eq!(text, format!("{{{of},\"iaasIPsAllocationRequest\":[{item}]}}"));
        let text = serde_json::to_string(&ReleaseRequest::new(&call)).expect("JSON");
        let rest = r#""parentNicMac":"fa:16:3e:11:22:33","subnet":"10.0.0.0/24","ipAddress":"10.0.0.10""#;
        assert_eq!(text, format!("{{{of},{rest}}}"));
    }

    #[test]
    fn what_is_not_known_is_left_out_where_it_may_be() {
        let call = call(Pod::default(), "");
        let text = serde_json::to_string(&ReleaseRequest::new(&call)).expect("JSON");
        assert_eq!(text, r#"{"nodeName":"worker-1","subnet":"10.0.0.0/24","ipAddress":"10.0.0.10"}"#);
    }
}
