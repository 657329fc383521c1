//! The pools that an attachment names.

use super::block::Block;
use crate::objects::Findings;
use crate::pools::{Known, Pools};
use ipam_core::Family;
use k8s_api::attachment::Needs;
use k8s_api::conf::Conf;
use k8s_api::crd::multus_config::{CniType, MultusConfigSpec};
use k8s_api::crd::texts;
use k8s_api::glob::Glob;
use k8s_api::syntax;
use std::collections::BTreeSet;

pub(super) fn check(
    block: &Block<'_>,
    spec: &MultusConfigSpec,
    conf: &Conf,
    known: Option<&Pools>,
    findings: &mut Findings,
) {
    let Some(pools) = &block.pools else { return };
    let field = format!("{}.ippools", block.field);
    for (family, names, on) in [(Family::V4, &pools.ipv4, conf.ipv4), (Family::V6, &pools.ipv6, conf.ipv6)] {
        let field = format!("{field}.ipv{}", family.version());
        if !on && !names.is_empty() {
            findings.warn(format!(
                "{field} is not used: {family} is disabled (chart value ipam.enableIPv{})",
                family.version()
            ));
        }
        let mut seen = BTreeSet::new();
        for (n, name) in names.iter().enumerate() {
            match Named::read(name) {
                Err(text) => findings.invalid(format!("{field}[{n}]"), name, text),
                Ok(_) if !seen.insert(name) => {
                    findings.duplicate(format!("{field}[{n}]"), name, "name each pool once");
                }
                Ok(named) => {
                    if let Some(known) = known {
                        named.look_up(&field, family, known, findings);
                    }
                }
            }
        }
    }
    if pools.match_master_subnet == Some(true) {
        match block.cni_type {
            CniType::Vlan => {
                findings.forbidden(format!("{field}.matchMasterSubnet"), texts::MATCH_MASTER_SUBNET);
            }
            CniType::Sriov => {}
            other => findings.warn(format!("{field}.matchMasterSubnet is not used with cniType {}", other.name())),
        }
    }
    if spec.disable_ipam && !(pools.ipv4.is_empty() && pools.ipv6.is_empty()) {
        findings.warn(format!("{field} is not used: spec.disableIPAM is true"));
    }
    if !pools.ipv6.is_empty() && conf.provider.is_some() && Needs::of(spec).sub_eni {
        findings.warn(format!(
            "{field}.ipv6: a cloud provider binds IPv4 alone; pods that would get IPv6 here are refused. Remove it, or set vlanID"
        ));
    }
}

/// What an entry means.
enum Named<'a> {
    Pool(&'a str),
    Pattern(Glob),
}

impl<'a> Named<'a> {
    fn read(name: &'a str) -> Result<Self, String> {
        if name.contains(['*', '?', '[', '\\']) {
            let glob = name.parse::<Glob>();
            glob.map(Self::Pattern).map_err(|error| format!("{error}; patterns are made of *, ? and [a-z]"))
        } else if syntax::is_subdomain(name) {
            Ok(Self::Pool(name))
        } else if name.is_empty() {
            Err("it is empty; write the name of a SpiderIPPool, or remove it".to_owned())
        } else {
            Err("it is not the name of a SpiderIPPool: lower-case letters, digits, inner dashes and dots".to_owned())
        }
    }

    fn look_up(&self, field: &str, family: Family, known: &Pools, findings: &mut Findings) {
        let other = |found: &Known| found.family().is_some_and(|found| found != family);
        match self {
            Self::Pool(name) => match known.get(*name) {
                None => findings
                    .warn(format!("{field}: there is no SpiderIPPool {name} yet; pods of this network wait for it")),
                Some(found) if other(found) => {
                    findings
                        .warn(format!("{field}: SpiderIPPool {name} is not {family}; pods get nothing from it here"));
                }
                Some(_) => {}
            },
            Self::Pattern(glob) => {
                let mut matching = known.iter().filter(|(name, _)| glob.matches(name)).peekable();
                if matching.peek().is_none() {
                    findings.warn(format!(
                        "{field}: no SpiderIPPool matches {glob} yet; pods of this network wait for one"
                    ));
                } else if matching.all(|(_, found)| other(found)) {
                    findings.warn(format!("{field}: no SpiderIPPool that matches {glob} is {family}"));
                }
            }
        }
    }
}
