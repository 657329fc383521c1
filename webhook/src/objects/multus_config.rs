//! SpiderMultusConfig.

mod annotations;
mod block;
mod complete;
mod interfaces;
mod plugins;
mod pools;

pub(crate) use annotations::{changed, neighbours, network, same};
pub(crate) use complete::complete;

use super::Findings;
use super::object::Texts;
use crate::pools::Pools;
use block::Block;
use k8s_api::conf::Conf;
use k8s_api::crd::multus_config::{CniType, MultusConfigSpec};
use k8s_api::crd::texts;

/// One attachment, whoever shows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attachment<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) annotations: &'a Texts,
    pub(crate) spec: &'a MultusConfigSpec,
}

/// Checks one attachment by itself. `pools`, where they are known, are looked at for warnings alone.
pub(crate) fn validate(attachment: &Attachment<'_>, conf: &Conf, pools: Option<&Pools>) -> Findings {
    let mut findings = Findings::default();
    let spec = attachment.spec;
    blocks(spec, &mut findings);
    plugins::check(spec, conf, &mut findings);
    let block = Block::of(spec);
    if let Some(block) = &block {
        interfaces::check(block, &mut findings);
        pools::check(block, spec, conf, pools, &mut findings);
    }
    annotations::check(attachment, block.as_ref(), &mut findings);
    findings
}

/// The block of the type is there, and no other.
fn blocks(spec: &MultusConfigSpec, findings: &mut Findings) {
    let MultusConfigSpec {
        cni_type,
        enable_coordinator: _,
        disable_ipam: _,
        vlan,
        macvlan,
        ipvlan,
        sriov,
        ibsriov,
        ipoib,
        ovs,
        coordinator: _,
        custom_cni,
        chain: _,
    } = spec;
    let (name, own) = (cni_type.name(), cni_type.block());
    let there = [
        (CniType::Vlan, vlan.is_some()),
        (CniType::Macvlan, macvlan.is_some()),
        (CniType::Ipvlan, ipvlan.is_some()),
        (CniType::Sriov, sriov.is_some()),
        (CniType::IbSriov, ibsriov.is_some()),
        (CniType::Ipoib, ipoib.is_some()),
        (CniType::Ovs, ovs.is_some()),
        (CniType::Custom, custom_cni.as_ref().is_some_and(|text| !text.is_empty())),
    ];
    if there.iter().any(|(of, there)| of == cni_type && !there) {
        findings.required(format!("spec.{own}"), texts::no_block(own));
    }
    if there.iter().any(|(of, there)| of != cni_type && *there) {
        findings.forbidden("spec.cniType", texts::other_block(name, own));
    }
}

#[cfg(test)]
mod tests;
