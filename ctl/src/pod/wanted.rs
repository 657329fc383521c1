//! Which pools an interface may use: who names them, and which of them there are.

use super::facts::Facts;
use crate::pools::Pool;
use k8s_api::ipam::{Names, PoolName, namespace_pools, pod_pool, pod_pools};
use k8s_api::names::{POD_POOL, POD_POOLS};
use std::collections::BTreeSet;
use store::Family;

/// What one interface wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) interface: String,
    /// `namespace/name` of its network; empty where nobody names it.
    pub(super) network: String,
    /// Who names the pools, or why that cannot be told.
    pub(super) from: Result<Place, String>,
    /// Of each family that is named.
    pub(super) families: Vec<OfFamily>,
}

/// Who names pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// An annotation, or the network.
    Named(&'static str),
    /// Nobody; pools that are the default.
    Default,
}

/// Pools of one family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OfFamily {
    pub(super) family: Family,
    /// In the order in which they are named.
    pub(super) pools: Vec<String>,
    /// Names that no pool has.
    pub(super) missing: Vec<String>,
    /// As written.
    pub(super) written: Vec<String>,
}

/// Of every interface whose addresses come from us, as far as that can be seen.
pub(super) fn wanted(facts: &Facts) -> Vec<Wanted> {
    let Ok(pools) = &facts.pools else { return Vec::new() };
    let ours = facts.networks.iter().filter_map(|network| Some((&network.mention, network.pools()?)));
    let mut all: Vec<_> = ours
        .map(|(mention, names)| of(facts, pools, &mention.interface, mention.index, Some((mention.network(), &names))))
        .collect();
    // The runtime's own network is named nowhere; who names pools for it means it.
    let first =
        all.iter().any(|one| one.interface == "eth0") || facts.networks.iter().any(|one| one.mention.index == 0);
    let meant = match facts.annotation(POD_POOLS).map(pod_pools) {
        Some(Ok(pools)) => pools.of("eth0", 0).is_some(),
        Some(Err(_)) => all.is_empty(),
        None => all.is_empty() && facts.annotation(POD_POOL).is_some(),
    };
    if meant && !first {
        all.insert(0, of(facts, pools, "eth0", 0, None));
    }
    all
}

fn of(facts: &Facts, pools: &[Pool], interface: &str, index: usize, network: Option<(String, &Names)>) -> Wanted {
    let (network_name, network) = network.map_or_else(|| (String::new(), None), |(name, names)| (name, Some(names)));
    let interface_name = interface.to_owned();
    let by = |place, names: &Names| Wanted {
        interface: interface_name.clone(),
        network: network_name.clone(),
        from: Ok(Place::Named(place)),
        families: families(pools, names),
    };
    let unclear = |why: String| Wanted {
        interface: interface_name.clone(),
        network: network_name.clone(),
        from: Err(why),
        families: Vec::new(),
    };
    match facts.annotation(POD_POOLS).map(pod_pools).transpose() {
        Err(error) => return unclear(error.to_string()),
        Ok(all) => {
            if let Some(found) = all.as_ref().and_then(|all| all.of(interface, index)) {
                return by("Pod annotation ipam.spidernet.io/ippools", &found.names);
            }
        }
    }
    match facts.annotation(POD_POOL).map(pod_pool).transpose() {
        Err(error) => return unclear(error.to_string()),
        Ok(Some(names)) if !names.is_empty() => return by("Pod annotation ipam.spidernet.io/ippool", &names),
        Ok(_) => {}
    }
    if let Ok(Some(namespace)) = &facts.of_namespace {
        match namespace_pools(&namespace.metadata.annotations.clone().unwrap_or_default()) {
            Err(error) => return unclear(error.to_string()),
            Ok(names) if !names.is_empty() => {
                return by("Namespace annotations ipam.spidernet.io/default-ipv4-ippool, …-ipv6-ippool", &names);
            }
            Ok(_) => {}
        }
    }
    if let Some(names) = network.filter(|names| !names.is_empty()) {
        return by("the network's configuration", names);
    }
    Wanted { interface: interface_name, network: network_name, from: Ok(Place::Default), families: defaults(pools) }
}

fn families(pools: &[Pool], names: &Names) -> Vec<OfFamily> {
    let of = |family: Family, names: &[PoolName]| {
        let (mut found, mut missing, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
        for name in names {
            let covered: Vec<&Pool> = match name {
                PoolName::Exact(name) => pools.iter().filter(|pool| pool.name == *name).collect(),
                PoolName::Pattern(glob) => {
                    let of_family = pools.iter().filter(|pool| pool.family == Some(family));
                    of_family.filter(|pool| glob.matches(&pool.name)).collect()
                }
            };
            if covered.is_empty() && matches!(name, PoolName::Exact(_)) {
                missing.push(name.to_string());
            }
            found.extend(covered.into_iter().filter(|pool| seen.insert(&pool.name)).map(|pool| pool.name.clone()));
        }
        OfFamily { family, pools: found, missing, written: names.iter().map(ToString::to_string).collect() }
    };
    let both = [(Family::V4, &names.ipv4), (Family::V6, &names.ipv6)];
    both.into_iter().filter(|(_, names)| !names.is_empty()).map(|(family, names)| of(family, names)).collect()
}

fn defaults(pools: &[Pool]) -> Vec<OfFamily> {
    let of = |family| {
        let found = pools.iter().filter(|pool| pool.default && pool.family == Some(family));
        let pools: Vec<_> = found.map(|pool| pool.name.clone()).collect();
        (!pools.is_empty()).then(|| OfFamily { family, pools, missing: Vec::new(), written: Vec::new() })
    };
    [Family::V4, Family::V6].into_iter().filter_map(of).collect()
}
