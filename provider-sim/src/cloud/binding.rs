//! One address on one NIC, and how it is shown.

use super::{LAST_VLAN, Nic};
use crate::ask::{Allocate, Pod, Wanted};
use crate::mac::Mac;
use crate::wire::BoundAddress;
use ipam_core::{Address, Subnet};
use serde::{Deserialize, Serialize};

/// A bound address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Binding {
    /// For whom.
    pub pod: Pod,
    /// On which node.
    pub node: String,
    /// On which of its NICs.
    pub parent: Mac,
    /// The subnet.
    pub subnet: Subnet,
    /// The address.
    pub address: Address,
    /// What the pod's interface is to have.
    pub mac: Mac,
    /// What the pod's interface is to have; no other address of the NIC has it.
    pub vlan: u16,
}

/// A binding as people, tests and the state file see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(missing_docs)]
pub struct View {
    pub pod_namespace: String,
    pub pod_name: String,
    #[serde(rename = "podUID")]
    pub pod_uid: String,
    pub node_name: String,
    pub parent_nic_mac: String,
    pub subnet: String,
    pub ip_address: String,
    pub mac_address: String,
    pub vlan_id: u16,
}

/// A view that shows no binding.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} of {1:?} cannot be read")]
pub(crate) struct Unreadable(&'static str, String);

impl Binding {
    pub(super) fn new(asked: &Allocate, wanted: &Wanted, mac: Mac, vlan: u16) -> Self {
        let Wanted { address, subnet, parent } = *wanted;
        Self { pod: asked.pod.clone(), node: asked.node.clone(), parent, subnet, address, mac, vlan }
    }

    /// Whether it is what this call wants: the same pod, node, NIC and subnet.
    pub(super) fn is_for(&self, asked: &Allocate, wanted: &Wanted) -> bool {
        let same_pod = if self.pod.uid.is_empty() && asked.pod.uid.is_empty() {
            self.pod == asked.pod
        } else {
            self.pod.uid == asked.pod.uid
        };
        same_pod && self.node == asked.node && self.parent == wanted.parent && self.subnet == wanted.subnet
    }

    pub(super) fn holder(&self) -> String {
        let Self { pod: Pod { namespace, name, uid }, node, parent, .. } = self;
        format!("pod {namespace}/{name} (UID {uid}) on {node}, NIC {parent}")
    }

    pub(super) fn nic(&self) -> Nic {
        Nic { node: self.node.clone(), parent: self.parent }
    }

    /// As the answer to a call says it.
    #[must_use]
    pub(crate) fn answer(&self) -> BoundAddress {
        BoundAddress {
            parent_nic_mac: self.parent.to_string(),
            subnet: self.subnet.to_string(),
            ip_address: self.address.to_string(),
            mac_address: self.mac.to_string(),
            vlan_id: Some(i64::from(self.vlan)),
        }
    }

    /// As people see it.
    #[must_use]
    pub(crate) fn view(&self) -> View {
        let Self { pod: Pod { namespace, name, uid }, node, parent, subnet, address, mac, vlan } = self;
        View {
            pod_namespace: namespace.clone(),
            pod_name: name.clone(),
            pod_uid: uid.clone(),
            node_name: node.clone(),
            parent_nic_mac: parent.to_string(),
            subnet: subnet.to_string(),
            ip_address: address.to_string(),
            mac_address: mac.to_string(),
            vlan_id: *vlan,
        }
    }
}

impl TryFrom<View> for Binding {
    type Error = Unreadable;

    fn try_from(view: View) -> Result<Self, Unreadable> {
        let wrong = |field| Unreadable(field, view.ip_address.clone());
        if !(1..=LAST_VLAN).contains(&view.vlan_id) {
            return Err(wrong("vlanId"));
        }
        let subnet: Subnet = view.subnet.parse().map_err(|_| wrong("subnet"))?;
        let address: Address = view.ip_address.parse().map_err(|_| wrong("ipAddress"))?;
        let parent = view.parent_nic_mac.parse().map_err(|_| wrong("parentNicMac"))?;
        let mac = view.mac_address.parse().map_err(|_| wrong("macAddress"))?;
        let pod = Pod { namespace: view.pod_namespace, name: view.pod_name, uid: view.pod_uid };
        Ok(Self { pod, node: view.node_name, parent, subnet, address, mac, vlan: view.vlan_id })
    }
}
