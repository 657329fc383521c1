//! What is known of the allocations: by their names, pods and sandboxes.
//!
//! ```text
//! list, watch ──> put, delete, sweep ──┐
//! own writes ───> put, removed ────────┴──> entries (newest version of each) ──> flows
//! ```
//!
//! Watch, lists and answers to own writes overtake one another. Since resourceVersions of a kind are ordered, each is judged
//! by its number alone: what is older than what is known is dropped.

use crate::allocation::Object;
use crate::lookup::Lookup;
use crate::object::Numbered;
use ipam_core::{Address, Allocation, Stored};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The newest of every allocation.
#[derive(Debug, Default)]
pub(crate) struct Index {
    entries: BTreeMap<String, Entry>,
    pods: Lookup,
    containers: Lookup,
    /// All that happened up to this version has been shown, by a list or by the watch.
    shown: u64,
    /// UIDs of own deletions that have not been shown yet, with the last version of each.
    removed: BTreeMap<String, u64>,
}

#[derive(Debug)]
struct Entry {
    version: Numbered,
    what: Result<Stored<Allocation>, String>,
}

impl Index {
    /// An object as somebody has shown it. Whether that was news.
    pub(crate) fn put(&mut self, object: Object, now: Duration) -> bool {
        let Object { name, version, what } = object;
        let known = self.entries.get(&name).is_some_and(|entry| version.resource <= entry.version.resource);
        if known || version.resource <= self.shown || self.removed.contains_key(&version.uid) {
            return false;
        }
        self.take(&name);
        let what = what.map(|value| Stored { value, version: version.version(), seen: now });
        match &what {
            Ok(Stored { value, .. }) => {
                self.pods.insert(&value.pod.uid, &name);
                self.containers.insert(&value.container_id, &name);
            }
            Err(why) => tracing::warn!(allocation = name, why, "cannot be read; its address counts as taken"),
        }
        self.entries.insert(name, Entry { version, what });
        true
    }

    /// The watch has shown all up to this version.
    pub(crate) fn passed(&mut self, version: u64) {
        self.shown = self.shown.max(version);
    }

    /// An object ended at that version, or left this node; it may come back to it.
    pub(crate) fn delete(&mut self, name: &str, version: &Numbered) -> bool {
        self.removed.retain(|uid, last| *uid != version.uid || *last > version.resource);
        let ours = |entry: &Entry| entry.version.uid == version.uid && entry.version.resource <= version.resource;
        self.entries.get(name).is_some_and(ours) && self.take(name)
    }

    /// An object is deleted for good, as the answer to an own request says. The watch may still show it for a while.
    pub(crate) fn removed(&mut self, name: &str, version: &Numbered) -> bool {
        // An older one of another UID had ended before this one could be.
        let here = |entry: &Entry| entry.version.uid == version.uid || entry.version.resource < version.resource;
        let here = self.entries.get(name).is_some_and(here);
        if here || version.resource > self.shown {
            self.removed.insert(version.uid.clone(), version.resource);
        }
        here && self.take(name)
    }

    /// Without a watch: it is read again before anybody asks for it.
    pub(crate) fn forget(&mut self, name: &str) {
        self.take(name);
        self.removed.clear();
    }

    /// A list of that version is complete; it had these UIDs and no others.
    pub(crate) fn sweep(&mut self, listed: &BTreeSet<String>, version: u64) -> bool {
        let absent = |entry: &Entry| entry.version.resource <= version && !listed.contains(&entry.version.uid);
        let absent = self.entries.iter().filter(|(_, entry)| absent(entry));
        let absent: Vec<_> = absent.map(|(name, _)| name.clone()).collect();
        for name in &absent {
            self.take(name);
        }
        self.removed.retain(|uid, last| *last > version || listed.contains(uid));
        self.passed(version);
        !absent.is_empty()
    }

    fn take(&mut self, name: &str) -> bool {
        let Some(entry) = self.entries.remove(name) else { return false };
        if let Ok(Stored { value, .. }) = entry.what {
            self.pods.remove(&value.pod.uid, name);
            self.containers.remove(&value.container_id, name);
        }
        true
    }

    /// The allocation of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&Stored<Allocation>> {
        self.entries.get(name)?.what.as_ref().ok()
    }

    /// Those of a pod UID.
    pub(crate) fn of_pod(&self, uid: &str) -> Vec<Stored<Allocation>> {
        self.pods.names(uid).filter_map(|name| self.get(name)).cloned().collect()
    }

    /// Those of a sandbox.
    pub(crate) fn of_container(&self, id: &str) -> Vec<Stored<Allocation>> {
        self.containers.names(id).filter_map(|name| self.get(name)).cloned().collect()
    }

    /// All that can be read.
    pub(crate) fn all(&self) -> Vec<Stored<Allocation>> {
        self.entries.values().filter_map(|entry| entry.what.as_ref().ok()).cloned().collect()
    }

    /// The addresses of all.
    pub(crate) fn addresses(&self) -> Vec<Address> {
        self.entries.values().filter_map(|entry| entry.what.as_ref().ok()).map(|one| one.value.address).collect()
    }

    /// Name and fault of those that cannot be read.
    pub(crate) fn unreadable(&self) -> Vec<(String, String)> {
        let faults = self.entries.iter().filter_map(|(name, entry)| Some((name, entry.what.as_ref().err()?)));
        faults.map(|(name, why)| (name.clone(), why.clone())).collect()
    }
}

#[cfg(test)]
mod tests;
