//! The store: its parts, and which of them answers what.

use crate::call::Caller;
use crate::owner::Owners;
use crate::pod::Namespaces;
use crate::pools::Pools;
use crate::shared::Shared;
use crate::{name, named, pod, publish, retained, watch, write};
use ipam_core::{Address, Allocation, Endpoint, Owner, PodFacts, Reserved, Store, StoreError, Stored, Version};
use kube::Client;
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A clock that never goes back and counts sleep of the machine: that of [`ipam_core::Host::now`].
pub type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// Whose allocations the index has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// An agent's: those of its node.
    Node(String),
    /// A controller's: all.
    All,
}

/// [`Store`] on an API server. Cheap to clone.
#[derive(Clone)]
pub struct KubeStore(Arc<Inner>);

struct Inner {
    caller: Caller,
    shared: Arc<Shared>,
    pools: Pools,
    owners: Owners,
    namespaces: Namespaces,
}

impl KubeStore {
    /// A store, and the task that keeps its index: it never ends.
    ///
    /// Each request ends after `deadline`; a write whose outcome is unknown is followed by one read, so that a call takes
    /// twice as long at the most.
    pub fn new(
        client: Client,
        scope: Scope,
        deadline: Duration,
        clock: Clock,
    ) -> (Self, impl Future<Output = Infallible> + Send + use<>) {
        let node = match scope {
            Scope::Node(node) => Some(node),
            Scope::All => None,
        };
        let (caller, shared) = (Caller::new(client, deadline), Arc::new(Shared::new(node, clock)));
        let inner = Inner {
            caller: caller.clone(),
            shared: Arc::clone(&shared),
            pools: Pools::default(),
            owners: Owners::default(),
            namespaces: Namespaces::default(),
        };
        (Self(Arc::new(inner)), watch::run(caller, shared))
    }

    /// Whether the first list has been read whole: before that, what is not in the index says nothing.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        self.0.shared.editions().borrow().synced
    }

    /// Waits until the first list has been read whole.
    pub async fn synced(&self) {
        // The sender lives as long as this value.
        let _ = self.0.shared.editions().wait_for(|edition| edition.synced).await;
    }

    /// Waits until the index has another version of an allocation than this one, or none.
    pub async fn changed(&self, address: Address, version: &Version) {
        let other = || self.of_address(address).is_none_or(|stored| stored.version != *version);
        let _ = self.0.shared.editions().wait_for(|_| other()).await;
    }

    /// A number that is another one after every change of the index. A receiver that lags behind gets the latest alone.
    pub async fn changed_since(&self, number: u64) -> u64 {
        let mut editions = self.0.shared.editions();
        editions.wait_for(|edition| edition.number != number).await.map_or(number, |edition| edition.number)
    }

    /// Allocations of the index that cannot be read: name and fault. Their addresses count as taken.
    #[must_use]
    pub fn unreadable(&self) -> Vec<(String, String)> {
        self.0.shared.index().unreadable()
    }
}

impl fmt::Debug for KubeStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubeStore").field("node", &self.0.shared.node()).finish_non_exhaustive()
    }
}

impl Store for KubeStore {
    fn of_pod(&self, uid: &str) -> Vec<Stored<Allocation>> {
        self.0.shared.index().of_pod(uid)
    }

    fn of_container(&self, id: &str) -> Vec<Stored<Allocation>> {
        self.0.shared.index().of_container(id)
    }

    fn of_address(&self, address: Address) -> Option<Stored<Allocation>> {
        self.0.shared.index().get(&name::of(address)).cloned()
    }

    fn all(&self) -> Vec<Stored<Allocation>> {
        self.0.shared.index().all()
    }

    async fn named(&self, namespace: &str, name: &str) -> Result<Vec<Stored<Allocation>>, StoreError> {
        named::named(&self.0.caller, &self.0.shared, namespace, name).await
    }

    async fn in_pool(&self, pool: &str) -> Result<Vec<Address>, StoreError> {
        self.0.pools.addresses(&self.0.caller, pool).await
    }

    async fn reserve(&self, new: Allocation) -> Result<Reserved, StoreError> {
        write::reserve(&self.0.caller, &self.0.shared, new).await
    }

    async fn advance(
        &self,
        address: Address,
        version: &Version,
        next: Allocation,
    ) -> Result<Stored<Allocation>, StoreError> {
        write::advance(&self.0.caller, &self.0.shared, address, version, next).await
    }

    async fn remove(&self, address: Address, version: &Version) -> Result<(), StoreError> {
        write::remove(&self.0.caller, &self.0.shared, address, version).await
    }

    async fn endpoint(&self, namespace: &str, name: &str) -> Result<Option<Stored<Endpoint>>, StoreError> {
        let found = publish::find(&self.0.caller, namespace, name).await?;
        Ok(found.map(|(value, version)| Stored { value, version, seen: self.0.shared.now() }))
    }

    async fn publish(&self, version: Option<&Version>, endpoint: Endpoint) -> Result<Version, StoreError> {
        publish::publish(&self.0.caller, version, &endpoint).await
    }

    async fn pod(&self, namespace: &str, name: &str) -> Result<Option<PodFacts>, StoreError> {
        pod::facts(&self.0.caller, &self.0.namespaces, &self.0.owners, namespace, name).await
    }

    async fn retained(&self, namespace: &str, owner: &Owner, pod: &str) -> Result<bool, StoreError> {
        retained::retained(&self.0.caller, namespace, owner, pod).await
    }
}
