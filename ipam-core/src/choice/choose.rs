//! The choice itself.

use super::catalog::{Catalog, Pool};
use super::names::{Named, Source};
use super::refusal;
use super::rules::{Rank, Rules, Unfit};
use crate::{Candidate, Family, NoPool, Wanted};
use std::collections::BTreeSet;

/// For one interface of one pod.
#[derive(Clone, Debug)]
pub struct Request<'r> {
    /// The interface.
    pub nic: &'r str,
    /// Who names pools, the first that names some counting for both families. When nobody does, default pools are taken.
    pub sources: &'r [Source],
    /// Whether pods get IPv4 addresses.
    pub ipv4: bool,
    /// Whether pods get IPv6 addresses.
    pub ipv6: bool,
}

/// What the interface shall have: of each family that is named, or for which a default pool fits. `rules` says how what a pool
/// asks stands to this pod. What is named and cannot be given is a refusal, never left out silently.
pub fn choose(request: &Request<'_>, catalog: &Catalog, rules: impl Fn(&Pool) -> Rules) -> Result<Vec<Wanted>, NoPool> {
    match request.sources.iter().find(|source| !source.is_empty()) {
        Some(source) => named(request, source, catalog, rules),
        None => by_default(request, catalog, rules),
    }
}

fn named(
    request: &Request<'_>,
    source: &Source,
    catalog: &Catalog,
    rules: impl Fn(&Pool) -> Rules,
) -> Result<Vec<Wanted>, NoPool> {
    let mut wanted = Vec::new();
    for (family, on) in families(request) {
        if source.of(family).is_empty() {
            continue;
        }
        if !on {
            return Err(refusal::off(source, family, request.nic));
        }
        let pools = expand(request, source, family, catalog)?;
        if pools.is_empty() {
            return Err(refusal::uncovered(source, family, request.nic));
        }
        let sifted = Sifted::of(pools, family, &rules);
        wanted.push(sifted.wanted(family).map_err(|left_out| refusal::filtered(&left_out, family, request.nic))?);
    }
    Ok(wanted)
}

fn by_default(request: &Request<'_>, catalog: &Catalog, rules: impl Fn(&Pool) -> Rules) -> Result<Vec<Wanted>, NoPool> {
    let (mut wanted, mut refused) = (Vec::new(), None);
    for (family, on) in families(request) {
        let pools: Vec<_> = catalog.of(family).filter(|pool| on && pool.default).collect();
        if pools.is_empty() {
            continue;
        }
        match Sifted::of(pools, family, &rules).wanted(family) {
            Ok(one) => wanted.push(one),
            // It will have something of this family in a moment; a pod that started without would stay without.
            Err(left_out) if left_out.iter().any(|(_, unfit)| *unfit == Unfit::Unadopted) => {
                return Err(refusal::filtered(&left_out, family, request.nic));
            }
            Err(left_out) => {
                refused.get_or_insert_with(|| refusal::filtered(&left_out, family, request.nic));
            }
        }
    }
    if wanted.is_empty() { Err(refused.unwrap_or_else(refusal::nothing_named)) } else { Ok(wanted) }
}

fn families(request: &Request<'_>) -> [(Family, bool); 2] {
    [(Family::V4, request.ipv4), (Family::V6, request.ipv6)]
}

/// The pools of a list, each once, in its order. A pattern does not repeat what stands before it; only a person's own
/// repetition is a fault.
fn expand<'c>(
    request: &Request<'_>,
    source: &Source,
    family: Family,
    catalog: &'c Catalog,
) -> Result<Vec<&'c Pool>, NoPool> {
    let (mut written, mut taken, mut pools) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for named in source.of(family) {
        let (text, covered) = match named {
            Named::Exact(name) => (name, std::slice::from_ref(name)),
            Named::Pattern { text, pools } => (text, pools.as_slice()),
        };
        if !written.insert(text) {
            return Err(refusal::duplicate(named, source, request.nic));
        }
        for name in covered {
            match (catalog.get(name), named) {
                (Some(pool), _) if taken.insert(name) => pools.push(pool),
                (None, Named::Exact(_)) => return Err(refusal::unknown(name, source, request.nic)),
                (Some(_), _) | (None, Named::Pattern { .. }) => {}
            }
        }
    }
    Ok(pools)
}

/// Pools that fit, and those that do not.
struct Sifted<'c> {
    fit: Vec<(Rank, &'c Candidate)>,
    left_out: Vec<(&'c str, Unfit)>,
}

impl<'c> Sifted<'c> {
    fn of(pools: Vec<&'c Pool>, family: Family, rules: impl Fn(&Pool) -> Rules) -> Self {
        let mut sifted = Self { fit: Vec::new(), left_out: Vec::new() };
        for pool in pools {
            let Pool { candidate, default: _, disabled, terminating, unadopted } = pool;
            let ranked = if *terminating {
                Err(Unfit::Terminating)
            } else if *disabled {
                Err(Unfit::Disabled)
            } else if *unadopted {
                Err(Unfit::Unadopted)
            } else if candidate.subnet.family() != family {
                Err(Unfit::Version)
            } else {
                rules(pool).rank()
            };
            match ranked {
                Ok(rank) => sifted.fit.push((rank, candidate)),
                Err(unfit) => sifted.left_out.push((&candidate.pool, unfit)),
            }
        }
        // Stable: among equals the user's order counts.
        sifted.fit.sort_by_key(|(rank, _)| *rank);
        sifted
    }

    fn wanted(self, family: Family) -> Result<Wanted, Vec<(&'c str, Unfit)>> {
        if self.fit.is_empty() {
            return Err(self.left_out);
        }
        Ok(Wanted { family, candidates: self.fit.into_iter().map(|(_, candidate)| candidate.clone()).collect() })
    }
}

#[cfg(test)]
mod tests;
