//! The NICs that carry the interface, and its own numbers.

use super::block::Block;
use crate::objects::Findings;
use k8s_api::crd::multus_config::{Bond, CniType, VlanMode};
use k8s_api::crd::texts;
use k8s_api::interface;
use std::collections::BTreeSet;

/// An IPv4 host must take datagrams of this length (RFC 791), and no device of the kernel takes a smaller MTU for them.
const MTU_MIN: i32 = 68;
/// The length of an IP packet is a number of 16 bits.
const MTU_MAX: i32 = 65535;

pub(super) fn check(block: &Block<'_>, findings: &mut Findings) {
    if let Some(masters) = block.masters {
        names(block, masters, findings);
    }
    let field = &block.field;
    match block.mtu.unwrap_or_default() {
        0 | MTU_MIN..=MTU_MAX => {}
        mtu if mtu < 0 => findings.invalid(format!("{field}.mtu"), mtu, texts::MTU),
        mtu => {
            let text = format!("MTU must be 0 (the kernel's choice) or in the range [{MTU_MIN},{MTU_MAX}]");
            findings.invalid(format!("{field}.mtu"), mtu, text);
        }
    }
    match (block.vlan_mode, block.vlan_id) {
        (Some(VlanMode::Manual), None) => findings.required(format!("{field}.vlanID"), texts::MANUAL_WITHOUT_ID),
        (Some(VlanMode::Auto), Some(_)) => findings.forbidden(format!("{field}.vlanID"), texts::AUTO_WITH_ID),
        (_, Some(id)) if !(0..=4094).contains(&id) => {
            findings.invalid(format!("{field}.vlanID"), id, texts::VLAN_ID);
        }
        (_, id) => below(block, id, findings),
    }
}

/// A VLAN between the master and the interface has a name of its own, `eth1.5`.
fn below(block: &Block<'_>, id: Option<i32>, findings: &mut Findings) {
    let base = match (block.masters, block.bond) {
        (Some([master]), _) => master,
        (Some([_, _, ..]), Some(bond)) => &bond.name,
        _ => return,
    };
    let Some(id) = id.filter(|id| *id != 0 && block.cni_type != CniType::Vlan) else { return };
    let name = format!("{base}.{id}");
    if interface::check(base).is_ok()
        && let Err(error) = interface::check(&name)
    {
        let text = format!("the interface between would be called {name:?}: {error}");
        findings.invalid(format!("{}.vlanID", block.field), id, text);
    }
}

fn names(block: &Block<'_>, masters: &[String], findings: &mut Findings) {
    let at = |n: usize| match block.cni_type {
        CniType::Ipoib => format!("{}.master", block.field),
        _ => format!("{}.master[{n}]", block.field),
    };
    if masters.is_empty() {
        findings.required(format!("{}.master", block.field), texts::NO_MASTER);
    }
    let mut seen = BTreeSet::new();
    for (n, master) in masters.iter().enumerate() {
        if let Err(error) = interface::check(master) {
            findings.invalid(at(n), master, format!("{error}; write the name of a NIC of the node, such as eth1"));
        } else if !seen.insert(master) {
            findings.duplicate(at(n), master, "name each NIC once");
        }
    }
    let field = format!("{}.bond", block.field);
    match block.bond {
        None if masters.len() > 1 => findings.required(field, texts::NO_BOND),
        None => {}
        Some(bond) if masters.len() > 1 => self::bond(&field, bond, masters, findings),
        Some(_) => findings.warn(format!("{field} is not used: a bond needs several masters, and there is one")),
    }
}

fn bond(field: &str, bond: &Bond, masters: &[String], findings: &mut Findings) {
    let Bond { name, mode: _, options: _ } = bond;
    let field = format!("{field}.name");
    if name.is_empty() {
        findings.required(field, texts::NO_BOND_NAME);
    } else if let Err(error) = interface::check(name) {
        findings.invalid(field, name, error.to_string());
    } else if masters.contains(name) {
        findings.invalid(field, name, "the bond must not be called as one of its masters; choose another name");
    }
}
