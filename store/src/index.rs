//! What is known of the allocations: by their names, pods and sandboxes.
//!
//! ```text
//! list, watch ──> put, delete, sweep ──┐
//! own writes ───> put, removed ────────┴──> entries (newest version of each) ──> flows
//! ```
//!
//! Watch, lists and answers to own writes overtake one another. Since resourceVersions of a kind are ordered, each is judged
//! by its number alone: what is older than what is known of an object, or of its end, is dropped.

use crate::allocation::Object;
use crate::lookup::Lookup;
use crate::object::Numbered;
use ipam_core::{Allocation, Stored};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long the end of an object is remembered after the watch has shown it: longer than any answer is waited for.
const MEMORY: Duration = Duration::from_mins(5);

/// The newest of every allocation.
#[derive(Debug, Default)]
pub(crate) struct Index {
    entries: BTreeMap<String, Entry>,
    pods: Lookup,
    containers: Lookup,
    /// Objects that ended, by UID.
    gone: BTreeMap<String, Gone>,
}

#[derive(Debug)]
struct Entry {
    version: Numbered,
    what: Result<Stored<Allocation>, String>,
}

/// The end of an object, or of its belonging here (a selector does not match it any more; it may come back).
#[derive(Debug)]
struct Gone {
    /// Versions up to this one are of before.
    until: u64,
    /// The last version that was known.
    last: u64,
    /// When the watch, or a list, had passed it.
    passed: Option<Duration>,
}

impl Index {
    /// An object as somebody has shown it. Whether that was news.
    pub(crate) fn put(&mut self, object: Object, now: Duration) -> bool {
        let Object { name, version, what } = object;
        let ended = self.gone.get(&version.uid).is_some_and(|gone| version.resource <= gone.until);
        let known = self.entries.get(&name).is_some_and(|entry| version.resource <= entry.version.resource);
        if ended || known {
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

    /// The watch shows that an object does not belong here any more, since that version.
    pub(crate) fn delete(&mut self, name: &str, version: &Numbered, now: Duration) -> bool {
        self.forget_old(now);
        self.end(&version.uid, Gone { until: version.resource, last: version.resource, passed: Some(now) });
        let ours = |entry: &Entry| entry.version.uid == version.uid && entry.version.resource <= version.resource;
        self.entries.get(name).is_some_and(ours) && self.take(name)
    }

    /// An object is deleted for good, as the answer to an own request says. The watch may still show it for a while.
    pub(crate) fn removed(&mut self, name: &str, version: &Numbered) -> bool {
        self.end(&version.uid, Gone { until: u64::MAX, last: version.resource, passed: None });
        self.entries.get(name).is_some_and(|entry| entry.version.uid == version.uid) && self.take(name)
    }

    /// A list of that version is complete; it had these UIDs and no others.
    pub(crate) fn sweep(&mut self, listed: &BTreeSet<String>, version: u64, now: Duration) -> bool {
        let absent = |entry: &Entry| entry.version.resource <= version && !listed.contains(&entry.version.uid);
        let absent = self.entries.iter().filter(|(_, entry)| absent(entry));
        let absent: Vec<_> = absent.map(|(name, entry)| (name.clone(), entry.version.uid.clone())).collect();
        for (name, uid) in &absent {
            self.take(name);
            self.end(uid, Gone { until: version, last: version, passed: Some(now) });
        }
        for (uid, gone) in &mut self.gone {
            if gone.last <= version && !listed.contains(uid) {
                gone.passed.get_or_insert(now);
            }
        }
        self.forget_old(now);
        !absent.is_empty()
    }

    fn end(&mut self, uid: &str, end: Gone) {
        let gone = self.gone.entry(uid.to_owned()).or_insert(Gone { until: 0, last: 0, passed: None });
        gone.until = gone.until.max(end.until);
        gone.last = gone.last.max(end.last);
        gone.passed = gone.passed.max(end.passed);
    }

    fn forget_old(&mut self, now: Duration) {
        self.gone.retain(|_, gone| gone.passed.is_none_or(|at| now.saturating_sub(at) < MEMORY));
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

    /// Name and fault of those that cannot be read.
    pub(crate) fn unreadable(&self) -> Vec<(String, String)> {
        let faults = self.entries.iter().filter_map(|(name, entry)| Some((name, entry.what.as_ref().err()?)));
        faults.map(|(name, why)| (name.clone(), why.clone())).collect()
    }
}

#[cfg(test)]
mod tests;
