//! The store: its parts, and which of them answers what.

use crate::allocation::read;
use crate::call::Caller;
use crate::owner::Owners;
use crate::pod::Namespaces;
use crate::pools::Pools;
use crate::retained::Retain;
use crate::shared::Shared;
use crate::{machine, name, named, pod, publish, retained, watch, write};
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
    retain: Retain,
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
        retain: Retain,
    ) -> (Self, impl Future<Output = Infallible> + Send + use<>) {
        let node = match scope {
            Scope::Node(node) => Some(node),
            Scope::All => None,
        };
        let store = Self::with(client, node, deadline, clock, retain);
        let keep = watch::run(store.0.caller.clone(), Arc::clone(&store.0.shared));
        (store, keep)
    }

    /// A store whose index has what was [looked](Self::look) at, and nothing else: for who knows from elsewhere what there is.
    #[must_use]
    pub fn unwatched(client: Client, deadline: Duration, clock: Clock, retain: Retain) -> Self {
        Self::with(client, None, deadline, clock, retain)
    }

    fn with(client: Client, node: Option<String>, deadline: Duration, clock: Clock, retain: Retain) -> Self {
        Self(Arc::new(Inner {
            caller: Caller::new(client, deadline),
            retain,
            shared: Arc::new(Shared::new(node, clock)),
            pools: Pools::default(),
            owners: Owners::default(),
            namespaces: Namespaces::default(),
        }))
    }

    /// Pods of a machine that are on a node and not ending, read live: one, or two for a moment.
    pub async fn pods_of(&self, namespace: &str, machine: &Owner) -> Result<Vec<(String, PodFacts)>, StoreError> {
        let mut found = Vec::new();
        for name in machine::pods(&self.0.caller, namespace, machine).await? {
            let facts = self.pod(namespace, &name).await?;
            let of = |facts: &PodFacts| facts.owner.as_ref().is_some_and(|owner| owner.uid == machine.uid);
            found.extend(facts.filter(of).map(|facts| (name, facts)));
        }
        Ok(found)
    }

    /// Reads one allocation live, into an index that nobody else keeps.
    pub async fn look(&self, address: Address) -> Result<Option<Stored<Allocation>>, StoreError> {
        let found = write::live(&self.0.caller, address).await?;
        let Some(object) = found.as_ref().map(read).transpose()? else {
            self.forget(address);
            return Ok(None);
        };
        self.0.shared.put(object).map(Some).map_err(StoreError::Refused)
    }

    /// It is not looked at any more.
    pub fn forget(&self, address: Address) {
        self.0.shared.index().forget(&name::of(address));
    }

    /// Deletes the endpoint of a name under which nothing is held, by live reads, once the pod that it shows is gone. Whether
    /// it did.
    pub async fn remove_endpoint(&self, namespace: &str, pod: &str) -> Result<bool, StoreError> {
        let Some(stored) = self.endpoint(namespace, pod).await? else { return Ok(false) };
        // Somebody else has a use for it, or it goes already.
        if publish::is_held(&self.0.caller, namespace, pod).await? {
            return Ok(false);
        }
        let lives = self.pod(namespace, pod).await?.is_some_and(|facts| facts.is(&stored.value.pod.uid));
        // After the endpoint was read: an allocation that comes later finds it gone, or its publish is a conflict.
        if lives || !self.named(namespace, pod, None).await?.is_empty() {
            return Ok(false);
        }
        match publish::remove(&self.0.caller, namespace, pod, &stored.version).await {
            Ok(()) => Ok(true),
            Err(StoreError::Gone | StoreError::Conflict) => Ok(false),
            Err(error) => Err(error),
        }
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

    fn addresses(&self) -> Vec<Address> {
        self.0.shared.index().addresses()
    }

    async fn named(
        &self,
        namespace: &str,
        name: &str,
        owner: Option<&Owner>,
    ) -> Result<Vec<Stored<Allocation>>, StoreError> {
        named::named(&self.0.caller, &self.0.shared, namespace, name, owner).await
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
        if (self.0.retain)().is_for(owner) {
            return retained::retained(&self.0.caller, namespace, owner, pod).await;
        }
        Ok(false)
    }
}
