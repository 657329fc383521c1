//! Attachments by what selects them, so that a pod costs no look at all of them.

use super::config::Config;
use k8s_api::attachment::by_annotation::Kind;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Namespaces and names of configs by their values of the two annotations. An empty value selects nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct ByValue {
    rdma: Names,
    network: Names,
}

type Names = HashMap<Arc<str>, BTreeSet<(String, String)>>;

impl ByValue {
    /// The configs with this value, in the order of their names.
    pub(super) fn get(&self, kind: Kind, value: &str) -> impl Iterator<Item = &(String, String)> {
        let names = match kind {
            Kind::Rdma => &self.rdma,
            Kind::Network => &self.network,
        };
        names.get(value).into_iter().flatten()
    }

    pub(super) fn put(&mut self, config: &Config) {
        for (names, value) in self.of(config) {
            names.entry(Arc::clone(value)).or_default().insert((config.namespace.clone(), config.name.clone()));
        }
    }

    pub(super) fn remove(&mut self, config: &Config) {
        for (names, value) in self.of(config) {
            let Some(found) = names.get_mut(value) else { continue };
            found.remove(&(config.namespace.clone(), config.name.clone()));
            if found.is_empty() {
                names.remove(value);
            }
        }
    }

    fn of<'a>(&'a mut self, config: &'a Config) -> impl Iterator<Item = (&'a mut Names, &'a Arc<str>)> {
        let both = [&mut self.rdma, &mut self.network].into_iter().zip(&config.inject);
        both.filter_map(|(names, value)| Some((names, value.as_ref().filter(|value| !value.is_empty())?)))
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.rdma.is_empty() && self.network.is_empty()
    }
}
