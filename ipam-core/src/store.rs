//! Where allocations and endpoints are kept.

use crate::{Address, Allocation, Endpoint, Owner, Stored, Version};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// The API server, as the flows need it. An agent's store knows the allocations of its own node (the *index*): the first list
/// and relists are consistent, an own write is in it before the call returns, an event older than the indexed version is
/// dropped, and an own deletion is remembered until the watch has passed it.
pub trait Store: Send + Sync {
    /// From the index: allocations of one pod UID.
    fn of_pod(&self, uid: &str) -> Vec<Stored<Allocation>>;
    /// From the index: allocations of one sandbox.
    fn of_container(&self, id: &str) -> Vec<Stored<Allocation>>;
    /// From the index: the one of an address.
    fn of_address(&self, address: Address) -> Option<Stored<Allocation>>;
    /// From the index: all.
    fn all(&self) -> Vec<Stored<Allocation>>;
    /// From the index: the addresses of all.
    fn addresses(&self) -> Vec<Address> {
        self.all().into_iter().map(|one| one.value.address).collect()
    }
    /// By a consistent look-up, on all nodes: allocations of a pod's name, or of its machine ([`Owner::is_machine`]).
    fn named(
        &self,
        namespace: &str,
        name: &str,
        owner: Option<&Owner>,
    ) -> impl Future<Output = Result<Vec<Stored<Allocation>>, StoreError>> + Send;
    /// Addresses of a pool that somebody has, by a consistent list. Callers who ask at the same time share one; there is at
    /// most one a second for each pool.
    fn in_pool(&self, pool: &str) -> impl Future<Output = Result<Vec<Address>, StoreError>> + Send;
    /// Creates an allocation.
    fn reserve(&self, new: Allocation) -> impl Future<Output = Result<Reserved, StoreError>> + Send;
    /// Replaces an allocation if it still has that version. What is not in the new value is gone.
    fn advance(
        &self,
        address: Address,
        version: &Version,
        next: Allocation,
    ) -> impl Future<Output = Result<Stored<Allocation>, StoreError>> + Send;
    /// Deletes an allocation if it still has that version (preconditions: UID and resourceVersion).
    fn remove(&self, address: Address, version: &Version) -> impl Future<Output = Result<(), StoreError>> + Send;
    /// Reads an endpoint live.
    fn endpoint(
        &self,
        namespace: &str,
        name: &str,
    ) -> impl Future<Output = Result<Option<Stored<Endpoint>>, StoreError>> + Send;
    /// Creates an endpoint (`None`: there must be none), or replaces the one of that version. Makes a new version even if
    /// nothing differs: a publish that is on its way is a conflict then.
    fn publish(
        &self,
        version: Option<&Version>,
        endpoint: Endpoint,
    ) -> impl Future<Output = Result<Version, StoreError>> + Send;
    /// Reads a pod live.
    fn pod(&self, namespace: &str, name: &str) -> impl Future<Output = Result<Option<PodFacts>, StoreError>> + Send;
    /// Reads live whether `owner` still exists with that UID and has a place for a pod of this name (a StatefulSet: within its
    /// ordinals). Asked only if [`Owner::retains`].
    fn retained(
        &self,
        namespace: &str,
        owner: &Owner,
        pod: &str,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;
}

/// What came of a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reserved {
    /// It is ours. (Also when it already was, of the same pod UID, interface and flow: a reply had been lost.)
    Created(Box<Stored<Allocation>>),
    /// Somebody has it.
    Taken,
}

/// What a pod says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodFacts {
    /// UID of the object.
    pub uid: String,
    /// Annotation `kubernetes.io/config.hash`: the UID by which a kubelet knows a static pod.
    pub config_hash: Option<String>,
    /// The API server made up the end of its name, so that nobody had the name before.
    pub generated: bool,
    /// Node that it is bound to.
    pub node: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// It has a deletionTimestamp.
    pub terminating: bool,
    /// Its phase is Succeeded or Failed.
    pub terminal: bool,
    /// Its namespace, as of a moment ago.
    pub namespace: Arc<NamespaceFacts>,
    /// Its top controller: the Deployment of a `ReplicaSet`, the `CronJob` of a Job.
    pub owner: Option<Owner>,
}

/// What a namespace says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespaceFacts {
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// It is going, or gone.
    pub terminating: bool,
}

impl PodFacts {
    /// Whether this is the pod that the kubelet calls `uid`.
    #[must_use]
    pub fn is(&self, uid: &str) -> bool {
        self.uid == uid || self.config_hash.as_deref() == Some(uid)
    }

    /// Whether the pod of that UID runs or may start to.
    #[must_use]
    pub fn lives_as(&self, uid: &str) -> bool {
        self.is(uid) && !self.terminating && !self.terminal
    }
}

/// Why the API server did not do it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The object has another version by now.
    #[error("it was changed meanwhile")]
    Conflict,
    /// The object, or what it belongs to, is not there any more.
    #[error("it is gone")]
    Gone,
    /// Not now: too many requests.
    #[error("the API server is busy{}", .after.map(|after| format!("; it asks for {after:?} of quiet")).unwrap_or_default())]
    Throttled {
        /// How long it wants to be left alone.
        after: Option<Duration>,
    },
    /// It will not: rights, a policy, an invalid object.
    #[error("the API server refuses: {0}")]
    Refused(String),
    /// No complete answer. The write may have been done: re-read live.
    #[error("the API server gave no answer: {0}")]
    Unknown(String),
}
