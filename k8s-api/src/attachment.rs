//! What a pod needs of its node because of one attachment.

pub mod by_annotation;

use crate::crd::multus_config::{CniType, MultusConfigSpec, VlanMode};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Annotation of a SpiderMultusConfig: another name for what Multus knows it by.
pub const NETWORK_NAME: &str = "multus.spidernet.io/cr-name";
/// Annotation of a SpiderMultusConfig: `cniVersion` of its CNI configuration.
pub const CNI_VERSION: &str = "multus.spidernet.io/cni-version";
/// Annotation of a SpiderMultusConfig: `name` of its CNI configuration, where it is not the network's.
pub const CONFIG_NAME: &str = "cni.spidernet.io/cniconfig-name";
/// Values of [`CNI_VERSION`]: the published versions of the CNI specification.
pub const CNI_VERSIONS: [&str; 7] = ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"];

/// The part of an attachment that scheduling depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// NICs that the node must have, each once; of a bond its members.
    pub masters: BTreeSet<String>,
    /// Whether it takes a sub-interface of the cloud: a VLAN whose id the provider answers.
    pub sub_eni: bool,
    /// What it takes of another's device plugin; requested where an annotation selects the attachment.
    pub device: Option<Device>,
}

/// A resource of a device plugin that is none of ours; the name is as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Device {
    /// An RDMA device that all interfaces of a pod share: one a pod.
    Shared(String),
    /// A virtual function, which becomes the interface: one each.
    Own(String),
}

impl Device {
    /// Of a SpiderMultusConfig; none where no name is written.
    #[must_use]
    pub fn of(spec: &MultusConfigSpec) -> Option<Self> {
        let name = |block: &Option<Map<String, Value>>| {
            block.as_ref()?.get("resourceName").and_then(Value::as_str).map(ToOwned::to_owned)
        };
        let device = match spec.cni_type {
            CniType::Vlan => Self::Shared(spec.vlan.as_ref()?.rdma_resource_name.clone()?),
            CniType::Macvlan => Self::Shared(spec.macvlan.as_ref()?.rdma_resource_name.clone()?),
            CniType::Ipvlan => Self::Shared(spec.ipvlan.as_ref()?.rdma_resource_name.clone()?),
            CniType::Sriov => Self::Own(name(&spec.sriov)?),
            CniType::IbSriov => Self::Own(name(&spec.ibsriov)?),
            CniType::Ipoib | CniType::Ovs | CniType::Custom => return None,
        };
        Some(device).filter(|device| !device.resource().is_empty())
    }

    /// Its name.
    #[must_use]
    pub fn resource(&self) -> &str {
        match self {
            Self::Shared(name) | Self::Own(name) => name,
        }
    }
}

impl Needs {
    /// Of a SpiderMultusConfig. `vlanMode: auto` and no mode at all mean the same; a `vlanID` means that nobody is asked.
    #[must_use]
    pub fn of(spec: &MultusConfigSpec) -> Self {
        let masters = match spec.cni_type {
            CniType::Vlan => spec.vlan.as_ref().map(|vlan| vlan.master.clone()),
            CniType::Macvlan => spec.macvlan.as_ref().map(|macvlan| macvlan.master.clone()),
            CniType::Ipvlan => spec.ipvlan.as_ref().map(|ipvlan| ipvlan.master.clone()),
            CniType::Ipoib => spec.ipoib.as_ref().map(|ipoib| vec![ipoib.master.clone()]),
            CniType::Sriov | CniType::IbSriov | CniType::Ovs | CniType::Custom => None,
        };
        let open = |vlan_mode, vlan_id: Option<i32>| vlan_mode != Some(VlanMode::Manual) && vlan_id.is_none();
        let vlan = spec.vlan.as_ref().filter(|_| spec.cni_type == CniType::Vlan);
        Self {
            masters: masters.unwrap_or_default().into_iter().filter(|master| !master.is_empty()).collect(),
            sub_eni: vlan.is_some_and(|vlan| open(vlan.vlan_mode, vlan.vlan_id)),
            device: Device::of(spec),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(spec: &str) -> (Vec<String>, bool) {
        let spec = serde_saphyr::from_str::<MultusConfigSpec>(spec).expect("a spec");
        let Needs { masters, sub_eni, device: _ } = Needs::of(&spec);
        (masters.into_iter().collect(), sub_eni)
    }

    #[test]
    fn a_vlan_without_an_id_is_a_sub_interface() {
        let master = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        for (spec, wanted) in [
            ("{cniType: vlan, vlan: {master: [eth1]}}", (master(&["eth1"]), true)),
            ("{cniType: vlan, vlan: {master: [eth1], vlanMode: auto}}", (master(&["eth1"]), true)),
            ("{cniType: vlan, vlan: {master: [eth1], vlanID: 0}}", (master(&["eth1"]), false)),
            ("{cniType: vlan, vlan: {master: [eth1], vlanMode: manual, vlanID: 7}}", (master(&["eth1"]), false)),
            ("{cniType: vlan, vlan: {master: [eth2, eth1, eth2], bond: {name: b}}}", (master(&["eth1", "eth2"]), true)),
            ("{cniType: macvlan, macvlan: {master: [eth1], vlanID: 5}}", (master(&["eth1"]), false)),
            ("{cniType: ipvlan, ipvlan: {master: [eth1.100]}}", (master(&["eth1.100"]), false)),
            ("{cniType: ipoib, ipoib: {master: ib0}}", (master(&["ib0"]), false)),
            ("{cniType: sriov, sriov: {resourceName: a/b}}", (vec![], false)),
            ("{cniType: vlan}", (vec![], false)),
            ("{}", (vec![], false)),
        ] {
            assert_eq!(needs(spec), wanted, "{spec}");
        }
    }

    #[test]
    fn devices_of_other_plugins() {
        let shared = |name: &str| Some(Device::Shared(name.to_owned()));
        let own = |name: &str| Some(Device::Own(name.to_owned()));
        for (spec, wanted) in [
            ("{cniType: vlan, vlan: {master: [eth1], rdmaResourceName: a/b}}", shared("a/b")),
            ("{cniType: macvlan, macvlan: {master: [eth1], rdmaResourceName: a/b}}", shared("a/b")),
            ("{cniType: ipvlan, ipvlan: {master: [eth1], rdmaResourceName: ''}}", None),
            ("{cniType: sriov, sriov: {resourceName: a/b}}", own("a/b")),
            ("{cniType: ib-sriov, ibsriov: {resourceName: a/c}}", own("a/c")),
            ("{cniType: sriov, sriov: {resourceName: 5}}", None),
            ("{cniType: sriov}", None),
            ("{cniType: ipoib, ipoib: {master: ib0}}", None),
            ("{cniType: ovs, ovs: {resourceName: a/b}}", None),
        ] {
            let spec = serde_saphyr::from_str::<MultusConfigSpec>(spec).expect("a spec");
            assert_eq!(Needs::of(&spec).device, wanted, "{spec:?}");
        }
    }
}
