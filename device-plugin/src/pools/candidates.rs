//! Which pools an interface of a pod may use.

use super::known::Known;
use super::prepared::Subject;
use ipam_core::{Chosen, Family, Named, NoPool, PodFacts, Request, Route, Source, choose};
use k8s_api::ipam::{InvalidAnnotation, Names, PoolName, namespace_pools, pod_pool, pod_pools, routes};
use k8s_api::names::{POD_POOL, POD_POOLS, POD_ROUTES};
use k8s_api::selector::Labels;

/// One interface of one pod.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) pod: &'a PodFacts,
    pub(crate) node_labels: Option<&'a Labels>,
    /// Its name in the pod.
    pub(crate) interface: &'a str,
    /// Which of the pod's interfaces, from 0.
    pub(crate) index: usize,
    /// Its attachment, `namespace/name`.
    pub(crate) network: &'a str,
    /// What the CNI configuration names.
    pub(crate) configured: &'a Names,
    pub(crate) ipv4: bool,
    pub(crate) ipv6: bool,
}

impl Known {
    /// The pools that `asked` may use, in the order in which they are to be tried.
    pub(crate) fn candidates(&self, asked: &Asked<'_>) -> Result<Chosen, NoPool> {
        let namespace = &asked.pod.namespace;
        let annotation = |key: &str| asked.pod.annotations.get(key).map(String::as_str);
        let of_pod = annotation(POD_POOLS).map(pod_pools).transpose().map_err(|error| refused(&error))?;
        let of_interface = of_pod.as_ref().and_then(|pools| pools.of(asked.interface, asked.index));
        let for_any = annotation(POD_POOL).map(pod_pool).transpose().map_err(|error| refused(&error))?;
        // A namespace's fault concerns only those who need its pools.
        let by_itself = of_interface.is_some() || for_any.is_some();
        let of_namespace = if by_itself {
            None
        } else {
            Some(namespace_pools(&namespace.annotations).map_err(|error| refused(&error))?)
        };
        let sources: Vec<Source> = [
            ("Pod annotation 'ipam.spidernet.io/ippools'", of_interface.map(|pools| &pools.names)),
            ("Pod annotation 'ipam.spidernet.io/ippool'", for_any.as_ref()),
            (
                "Namespace annotations 'ipam.spidernet.io/default-ipv4-ippool' and '…-ipv6-ippool'",
                of_namespace.as_ref(),
            ),
            ("the CNI configuration (SpiderMultusConfig, ippools)", Some(asked.configured)),
        ]
        .into_iter()
        .filter_map(|(place, names)| Some(self.source(place, names?)))
        .collect();
        let subject = Subject {
            labels: &asked.pod.labels,
            node: &asked.pod.node,
            node_labels: asked.node_labels,
            namespace: asked.namespace,
            namespace_labels: Some(&namespace.labels),
            network: asked.network,
        };
        let request = Request { nic: asked.interface, sources: &sources, ipv4: asked.ipv4, ipv6: asked.ipv6 };
        let wanted = choose(&request, &self.catalog, |pool| {
            self.asks.get(&pool.candidate.pool).map(|asks| asks.rules(subject)).unwrap_or_default()
        })?;
        let own = annotation(POD_ROUTES).map(routes).transpose().map_err(|error| refused(&error))?.unwrap_or_default();
        let own = own.into_iter().map(|route| Route { dst: route.dst, gw: route.gw });
        let clean_gateway = of_interface.map(|pools| pools.clean_gateway);
        Ok(Chosen { wanted, clean_gateway, routes: own.collect() })
    }

    fn source(&self, place: &'static str, names: &Names) -> Source {
        let listed = |all: &[PoolName], family| all.iter().map(|name| self.named(name, family)).collect();
        Source { place, ipv4: listed(&names.ipv4, Family::V4), ipv6: listed(&names.ipv6, Family::V6) }
    }

    fn named(&self, name: &PoolName, family: Family) -> Named {
        match name {
            PoolName::Exact(name) => Named::Exact(name.clone()),
            PoolName::Pattern(glob) => {
                let covered =
                    self.catalog.of(family).map(|pool| &pool.candidate.pool).filter(|name| glob.matches(name));
                Named::Pattern { text: glob.to_string(), pools: covered.cloned().collect() }
            }
        }
    }
}

fn refused(error: &InvalidAnnotation) -> NoPool {
    NoPool::new(error.to_string())
}

#[cfg(test)]
mod tests;
