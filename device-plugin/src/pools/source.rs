//! Who names pools for an interface: the pod, its namespace, the network's configuration.

use super::Known;
use ipam_core::{Family, Named as Choice, NoPool, PodFacts, Source};
use k8s_api::ipam::{Names, PoolName, namespace_pools, pod_pool, pod_pools};
use k8s_api::names::{POD_POOL, POD_POOLS};
use std::collections::BTreeMap;

/// Those of one interface, in the order in which they count.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) sources: Vec<Source>,
    /// The pod's own wish about the default route.
    pub(crate) clean_gateway: Option<bool>,
}

/// Reads what everybody names. A fault in what would count is the pod's, with the annotation's name.
pub(crate) fn sources(
    known: &Known,
    pod: &PodFacts,
    interface: &str,
    index: usize,
    namespace: &BTreeMap<String, String>,
    conf: (&[String], &[String]),
) -> Result<Named, NoPool> {
    let refuse = |why: &dyn std::fmt::Display| NoPool(why.to_string());
    let mut named = Named { sources: Vec::new(), clean_gateway: None };
    if let Some(text) = pod.annotations.get(POD_POOLS) {
        let pools = pod_pools(text).map_err(|why| refuse(&why))?;
        if let Some(pools) = pools.of(interface, index) {
            named.clean_gateway = Some(pools.clean_gateway);
            named.sources.push(source(known, "Pod annotation 'ipam.spidernet.io/ippools'", &pools.names));
        }
    }
    if let Some(text) = pod.annotations.get(POD_POOL) {
        let names = pod_pool(text).map_err(|why| refuse(&why))?;
        named.sources.push(source(known, "Pod annotation 'ipam.spidernet.io/ippool'", &names));
    }
    let names = namespace_pools(namespace).map_err(|why| refuse(&why))?;
    named.sources.push(source(known, "Namespace annotation", &names));
    let read = |texts: &[String]| -> Result<Vec<PoolName>, NoPool> {
        texts.iter().map(|text| PoolName::read(text).map_err(|why| NoPool(format!("CNI configuration: {text:?} {why}")))).collect()
    };
    let names = Names { ipv4: read(conf.0)?, ipv6: read(conf.1)? };
    named.sources.push(source(known, "CNI configuration", &names));
    Ok(named)
}

fn source(known: &Known, place: &'static str, names: &Names) -> Source {
    let expand = |names: &[PoolName], family: Family| {
        let expanded = names.iter().map(|name| match name {
            PoolName::Exact(name) => Choice::Exact(name.clone()),
            PoolName::Pattern(glob) => {
                let all = known.catalog().of(family).map(|pool| pool.candidate.pool.clone());
                Choice::Pattern { text: glob.to_string(), pools: all.filter(|pool| glob.matches(pool)).collect() }
            }
        });
        expanded.collect()
    };
    Source { place, ipv4: expand(&names.ipv4, Family::V4), ipv6: expand(&names.ipv6, Family::V6) }
}
