//! A network in a few words.

use k8s_api::crd::multus_config::{CniType, MultusConfigSpec, VlanMode};

/// `vlan on eth1, its VLAN from the provider`.
pub(super) fn network(spec: &MultusConfigSpec) -> String {
    let kind = spec.cni_type.name();
    let on = |masters: &[String]| if masters.is_empty() { String::new() } else { format!(" on {}", masters.join("+")) };
    match spec.cni_type {
        CniType::Vlan => {
            let Some(vlan) = &spec.vlan else { return kind.to_owned() };
            let tag = match (vlan.vlan_mode, vlan.vlan_id) {
                (Some(VlanMode::Manual) | None, Some(id)) => format!("VLAN {id}"),
                (Some(VlanMode::Auto) | None, _) => "its VLAN from the provider".to_owned(),
                (Some(VlanMode::Manual), None) => "without a VLAN, which manual mode needs".to_owned(),
            };
            format!("{kind}{}, {tag}", on(&vlan.master))
        }
        CniType::Macvlan | CniType::Ipvlan => {
            let block = spec.macvlan.as_ref().or(spec.ipvlan.as_ref());
            let masters = block.map(|block| block.master.as_slice()).unwrap_or_default();
            let tag = block.and_then(|block| block.vlan_id).filter(|id| *id != 0);
            format!("{kind}{}{}", on(masters), tag.map(|id| format!(", VLAN {id}")).unwrap_or_default())
        }
        CniType::Ipoib => {
            let master = spec.ipoib.as_ref().map(|ipoib| vec![ipoib.master.clone()]).unwrap_or_default();
            format!("{kind}{}", on(&master))
        }
        CniType::Sriov | CniType::IbSriov | CniType::Ovs | CniType::Custom => kind.to_owned(),
    }
}
