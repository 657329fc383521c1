//! All that is held, and all that there is to hold it.

use crate::agents::Agent;
use crate::fault::Seen;
use crate::held::Held;
use crate::machines::Machine;
use crate::providers::Providers;
use k8s_api::conf::Gc;
use k8s_openapi::jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use store::{Allocation, Endpoint};

/// Namespace and name.
pub(super) type Key = (String, String);

/// Facts, as they were read: allocations before pods, so that a new pod's are never taken for those of nobody.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) now: Timestamp,
    pub(super) gc: Gc,
    /// Who may be asked to unbind.
    pub(super) providers: Providers,
    pub(super) allocations: Vec<Held>,
    /// UIDs of those that have not ended; of a static pod the hash of its file too.
    pub(super) pods: HashMap<Key, Vec<String>>,
    pub(super) endpoints: Seen<Vec<Shown>>,
    pub(super) machines: Seen<BTreeMap<String, Machine>>,
    pub(super) agents: Seen<BTreeMap<String, Agent>>,
    /// Names of allocations whose controller has a place for the pod.
    pub(super) retained: BTreeSet<String>,
    /// A pool has records of an earlier system.
    pub(super) records: bool,
    /// What could not be looked at.
    pub(super) not_seen: Vec<String>,
}

/// A SpiderEndpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) key: Key,
    pub(super) created: Option<Timestamp>,
    /// It goes with its pod.
    pub(super) owned: bool,
    pub(super) finalizers: Vec<String>,
    pub(super) what: Result<Endpoint, String>,
}

impl Facts {
    /// Whether the pod that an allocation names has not ended.
    pub(super) fn lives(&self, one: &Allocation) -> bool {
        self.uids(&key(one)).contains(&one.pod.uid)
    }

    /// UIDs of the pod that has a name now.
    pub(super) fn uids(&self, key: &Key) -> &[String] {
        self.pods.get(key).map(Vec::as_slice).unwrap_or_default()
    }
}

/// Whose it is.
pub(super) fn key(one: &Allocation) -> Key {
    (one.pod.namespace.clone(), one.pod.name.clone())
}
