//! The block of the type, as far as the types have fields in common.

use k8s_api::crd::multus_config::{Bond, CniType, Ipoib, MultusConfigSpec, Pools, SubInterface, Vlan, VlanMode};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// What has to be looked at, whichever the type.
#[derive(Debug)]
pub(super) struct Block<'a> {
    /// `spec.vlan`
    pub(super) field: String,
    pub(super) cni_type: CniType,
    /// `None` for types that name no NIC.
    pub(super) masters: Option<&'a [String]>,
    pub(super) bond: Option<&'a Bond>,
    pub(super) mtu: Option<i32>,
    pub(super) vlan_mode: Option<VlanMode>,
    pub(super) vlan_id: Option<i32>,
    pub(super) pools: Option<Cow<'a, Pools>>,
    /// The name of the resource that goes with the attachment, and its field.
    pub(super) resource: Option<(&'static str, &'a str)>,
}

impl<'a> Block<'a> {
    /// `None` for a type without a block of its own, and where the block is missing.
    pub(super) fn of(spec: &'a MultusConfigSpec) -> Option<Self> {
        let empty = Self {
            field: format!("spec.{}", spec.cni_type.block()),
            cni_type: spec.cni_type,
            masters: None,
            bond: None,
            mtu: None,
            vlan_mode: None,
            vlan_id: None,
            pools: None,
            resource: None,
        };
        match spec.cni_type {
            CniType::Vlan => spec.vlan.as_ref().map(|block| empty.vlan(block)),
            CniType::Macvlan => spec.macvlan.as_ref().map(|block| empty.sub_interface(block)),
            CniType::Ipvlan => spec.ipvlan.as_ref().map(|block| empty.sub_interface(block)),
            CniType::Sriov => spec.sriov.as_ref().map(|block| empty.open(block)),
            CniType::IbSriov => spec.ibsriov.as_ref().map(|block| empty.open(block)),
            CniType::Ovs => spec.ovs.as_ref().map(|block| empty.open(block)),
            CniType::Ipoib => spec.ipoib.as_ref().map(|block| empty.ipoib(block)),
            CniType::Custom => None,
        }
    }

    fn vlan(self, block: &'a Vlan) -> Self {
        let Vlan { master, vlan_mode, vlan_id, mtu, bond, rdma_resource_name, ippools } = block;
        Self {
            masters: Some(master),
            bond: bond.as_ref(),
            mtu: *mtu,
            vlan_mode: *vlan_mode,
            vlan_id: *vlan_id,
            pools: ippools.as_ref().map(Cow::Borrowed),
            resource: Some(("rdmaResourceName", rdma_resource_name.as_deref().unwrap_or_default())),
            ..self
        }
    }

    fn sub_interface(self, block: &'a SubInterface) -> Self {
        let SubInterface { master, vlan_id, mtu, bond, rdma_resource_name, ippools } = block;
        Self {
            masters: Some(master),
            bond: bond.as_ref(),
            mtu: *mtu,
            vlan_id: *vlan_id,
            pools: ippools.as_ref().map(Cow::Borrowed),
            resource: Some(("rdmaResourceName", rdma_resource_name.as_deref().unwrap_or_default())),
            ..self
        }
    }

    fn ipoib(self, block: &'a Ipoib) -> Self {
        let Ipoib { master, ippools } = block;
        let pools = ippools.as_ref().map(Cow::Borrowed);
        Self { masters: Some(std::slice::from_ref(master)), pools, ..self }
    }

    /// A block whose fields are another plugin's to know.
    fn open(self, block: &'a Map<String, Value>) -> Self {
        let pools = block.get("ippools").and_then(|pools| serde_json::from_value(pools.clone()).ok());
        let name = block.get("resourceName").and_then(Value::as_str).unwrap_or_default();
        let sriov = matches!(self.cni_type, CniType::Sriov | CniType::IbSriov);
        Self { pools: pools.map(Cow::Owned), resource: sriov.then_some(("resourceName", name)), ..self }
    }
}
