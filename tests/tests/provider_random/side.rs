//! The traits of ipam-core over the world, for one start of one process.

use crate::world::{Shared, World};
use ipam_core::{
    Address, Allocation, Endpoint, Host, Interface, Kept, Owner, PodFacts, Reserved, Step, Store, StoreError, Stored,
    Version,
};
use runtime::since_boot;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A request to the API server takes up to twice as long.
const SLOWEST: u64 = 4;

#[derive(Clone)]
pub struct Side {
    shared: Shared,
    /// None: the controller, which sees all.
    node: Option<String>,
    /// What it sees first is seen then, at the earliest.
    born: Duration,
    chance: Arc<Mutex<fastrand::Rng>>,
}

impl Side {
    pub fn new(shared: &Shared, node: Option<&str>, seed: u64) -> Self {
        let chance = Arc::new(Mutex::new(fastrand::Rng::with_seed(seed)));
        Self { shared: shared.clone(), node: node.map(str::to_owned), born: since_boot(), chance }
    }

    fn drawn<T>(&self, draw: impl FnOnce(&mut fastrand::Rng) -> T) -> T {
        draw(&mut self.chance.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The process may die before it is done, and before it is heard of.
    async fn ask<T>(&self, act: impl FnOnce(&mut World) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let [there, back] = [(); 2].map(|()| Duration::from_millis(self.drawn(|chance| chance.u64(0..SLOWEST))));
        tokio::time::sleep(there).await;
        let done = act(&mut self.shared.world());
        tokio::time::sleep(back).await;
        done
    }

    fn indexed(&self, of: impl Fn(&Allocation) -> bool) -> Vec<Stored<Allocation>> {
        let world = self.shared.world();
        let sees = |one: &&Stored<Allocation>| self.node.as_ref().is_none_or(|node| one.value.node.name == *node);
        let all = world.allocations.values().filter(sees).filter(|one| of(&one.value)).cloned();
        all.map(|one| Stored { seen: one.seen.max(self.born), ..one }).collect()
    }

    fn on_disk(&self, uid: &str, interface: &str) -> String {
        format!("{} {uid} {interface}", self.node.as_deref().unwrap_or_default())
    }
}

impl Store for Side {
    fn of_pod(&self, uid: &str) -> Vec<Stored<Allocation>> {
        self.indexed(|one| one.pod.uid == uid)
    }
    fn of_container(&self, id: &str) -> Vec<Stored<Allocation>> {
        self.indexed(|one| one.container_id == id)
    }
    fn of_address(&self, address: Address) -> Option<Stored<Allocation>> {
        self.indexed(|one| one.address == address).pop()
    }
    fn all(&self) -> Vec<Stored<Allocation>> {
        self.indexed(|_| true)
    }
    async fn named(&self, _: &str, name: &str, _: Option<&Owner>) -> Result<Vec<Stored<Allocation>>, StoreError> {
        let named = |one: &&Stored<Allocation>| one.value.pod.name == name;
        self.ask(|world| Ok(world.allocations.values().filter(named).cloned().collect())).await
    }
    async fn in_pool(&self, _: &str) -> Result<Vec<Address>, StoreError> {
        self.ask(|world| Ok(world.allocations.keys().copied().collect())).await
    }
    async fn reserve(&self, new: Allocation) -> Result<Reserved, StoreError> {
        self.ask(|world| {
            if world.allocations.contains_key(&new.address) {
                return Ok(Reserved::Taken);
            }
            let stored = world.store(new, None, since_boot());
            world.allocations.insert(stored.value.address, stored.clone());
            Ok(Reserved::Created(Box::new(stored)))
        })
        .await
    }
    async fn advance(
        &self,
        address: Address,
        at: &Version,
        next: Allocation,
    ) -> Result<Stored<Allocation>, StoreError> {
        self.ask(|world| {
            let before = world.allocations.get(&address).ok_or(StoreError::Gone)?;
            if before.version != *at {
                return Err(StoreError::Conflict);
            }
            if before.value.provider.is_some() && next.provider.is_none() {
                self.shared.unbinding(world, address);
            }
            let stored = world.store(next, Some(at.uid.clone()), since_boot());
            world.allocations.insert(address, stored.clone());
            Ok(stored)
        })
        .await
    }
    async fn remove(&self, address: Address, at: &Version) -> Result<(), StoreError> {
        self.ask(|world| {
            let before = world.allocations.get(&address).ok_or(StoreError::Gone)?;
            if before.version != *at {
                return Err(StoreError::Conflict);
            }
            self.shared.unbinding(world, address);
            world.allocations.remove(&address);
            Ok(())
        })
        .await
    }
    async fn endpoint(&self, _: &str, name: &str) -> Result<Option<Stored<Endpoint>>, StoreError> {
        self.ask(|world| Ok(world.endpoints.get(name).cloned())).await
    }
    async fn publish(&self, at: Option<&Version>, endpoint: Endpoint) -> Result<Version, StoreError> {
        self.ask(|world| {
            let name = endpoint.pod.name.clone();
            let there = world.endpoints.get(&name).map(|there| there.version.clone());
            if there.as_ref() != at {
                return Err(if there.is_none() { StoreError::Gone } else { StoreError::Conflict });
            }
            let stored = world.store(endpoint, there.map(|there| there.uid), since_boot());
            let version = stored.version.clone();
            world.endpoints.insert(name, stored);
            Ok(version)
        })
        .await
    }
    async fn pod(&self, _: &str, name: &str) -> Result<Option<PodFacts>, StoreError> {
        self.ask(|world| Ok(world.pods.get(name).cloned())).await
    }
    async fn retained(&self, _: &str, owner: &Owner, pod: &str) -> Result<bool, StoreError> {
        let ordinal: usize = pod.rsplit_once('-').and_then(|(_, n)| n.parse().ok()).expect("an ordinal");
        self.ask(|world| Ok(owner.uid == "set" && ordinal < world.replicas)).await
    }
}

impl Host for Side {
    fn now(&self) -> Duration {
        since_boot()
    }
    async fn sleep(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
    async fn pause(&self, time: Duration) -> bool {
        tokio::time::sleep(time).await;
        true
    }
    fn unreleased(&self, _: &Allocation, _: String) {}
    fn random(&self) -> u128 {
        self.drawn(|chance| chance.u128(..))
    }
    async fn kept(&self, uid: &str, interface: &str) -> Kept {
        let found = self.shared.world().kept.get(&self.on_disk(uid, interface)).cloned();
        found.map_or(Kept::Nothing, |kept| Kept::Result(Box::new(kept)))
    }
    async fn keep(&self, uid: &str, result: &Interface) {
        self.shared.world().kept.insert(self.on_disk(uid, &result.name), result.clone());
    }
    async fn sandbox_gone(&self, allocation: &Allocation) -> bool {
        self.shared.world().gone.contains(&allocation.container_id)
    }
    async fn at(&self, _: Step) {}
}
