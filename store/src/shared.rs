//! The index, between its writers and its readers.

use crate::allocation::Object;
use crate::index::Index;
use crate::kube_store::Clock;
use crate::object::Numbered;
use ipam_core::{Allocation, Stored};
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// What watchers of the index are told: that it is another one than before.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Edition {
    pub(crate) synced: bool,
    pub(crate) number: u64,
}

pub(crate) struct Shared {
    index: Mutex<Index>,
    editions: watch::Sender<Edition>,
    clock: Clock,
    /// The node whose allocations are kept; all of them without one.
    node: Option<String>,
}

impl Shared {
    pub(crate) fn new(node: Option<String>, clock: Clock) -> Self {
        Self { index: Mutex::default(), editions: watch::Sender::default(), clock, node }
    }

    /// As an answer or the watch shows it. Returns the value as it is seen now.
    pub(crate) fn put(&self, object: Object) -> Result<Stored<Allocation>, String> {
        let now = (self.clock)();
        let value = object.what.clone();
        let (name, version) = (object.name.clone(), object.version.clone());
        let elsewhere = |value: &Allocation| self.node.as_ref().is_some_and(|node| value.node.name != *node);
        let stored = {
            let mut index = self.index();
            let changed = match &value {
                Ok(value) if elsewhere(value) => index.delete(&name, &version),
                _ => index.put(object, now),
            };
            let seen = index.get(&name).filter(|stored| stored.version == version.version()).map(|stored| stored.seen);
            drop(index);
            self.tell(changed);
            value.map(|value| Stored { value, version: version.version(), seen: seen.unwrap_or(now) })
        };
        stored.map_err(|why| format!("SpiderIPAllocation {name} cannot be read: {why}"))
    }

    /// The watch does not show it any more.
    pub(crate) fn delete(&self, name: &str, version: &Numbered) {
        let changed = self.index().delete(name, version);
        self.tell(changed);
    }

    /// The watch has shown all up to this version.
    pub(crate) fn passed(&self, version: u64) {
        self.index().passed(version);
    }

    /// It is deleted for good.
    pub(crate) fn removed(&self, name: &str, version: &Numbered) {
        let changed = self.index().removed(name, version);
        self.tell(changed);
    }

    /// A whole list has been put.
    pub(crate) fn listed(&self, uids: &BTreeSet<String>, version: u64) {
        self.index().sweep(uids, version);
        self.editions.send_modify(|edition| *edition = Edition { synced: true, number: edition.number + 1 });
    }

    fn tell(&self, changed: bool) {
        if changed {
            self.editions.send_modify(|edition| edition.number += 1);
        }
    }

    pub(crate) fn index(&self) -> MutexGuard<'_, Index> {
        // Nothing in it panics half-way.
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn editions(&self) -> watch::Receiver<Edition> {
        self.editions.subscribe()
    }

    pub(crate) fn node(&self) -> Option<&str> {
        self.node.as_deref()
    }

    pub(crate) fn now(&self) -> std::time::Duration {
        (self.clock)()
    }
}
