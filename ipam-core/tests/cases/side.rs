//! The traits of ipam-core over the world, for one process.

use crate::world::{Mood, Shared, Trouble, World};
use ipam_core::{
    Address, Allocation, Bound, Call, Endpoint, Host, Interface, Kept, Outcome, Owner, PodFacts, Provider, Reserved,
    Step, Store, StoreError, Stored, Version,
};
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

/// A process on a node, or the controller (of no node).
#[derive(Clone)]
pub(crate) struct Side {
    pub(crate) shared: Shared,
    pub(crate) node: String,
    next: Arc<Mutex<Trouble>>,
}

impl Side {
    pub(crate) fn new(shared: &Shared, node: &str) -> Self {
        Self { shared: shared.clone(), node: node.to_owned(), next: Arc::new(Mutex::new(Trouble::None)) }
    }

    fn trouble(&self) -> Trouble {
        std::mem::replace(&mut *self.next.lock().expect("whole"), Trouble::None)
    }

    fn ask<T>(&self, act: impl FnOnce(&mut World) -> Result<T, StoreError>) -> Result<T, StoreError> {
        match self.trouble() {
            Trouble::Refuse(error) => Err(error),
            Trouble::Lose => {
                let _ = act(&mut self.shared.world());
                Err(StoreError::Unknown("the answer is lost".to_owned()))
            }
            Trouble::None | Trouble::Die => act(&mut self.shared.world()),
        }
    }

    async fn call<T>(&self, allocate: bool, call: &Call, answer: T, act: impl FnOnce(&mut World)) -> Outcome<T> {
        let mood = {
            let mut world = self.shared.world();
            world.called(allocate, call);
            world.mood
        };
        match mood {
            Mood::Works => {}
            Mood::Unsent => return Outcome::Unsent("connection refused".to_owned()),
            Mood::Unknown => {
                self.sleep(call.deadline.at.saturating_sub(self.now())).await;
                return Outcome::Unknown("no answer".to_owned());
            }
        }
        match self.trouble() {
            Trouble::Refuse(StoreError::Unknown(why)) => Outcome::Unknown(why),
            Trouble::Refuse(error) => Outcome::Rejected(error.to_string()),
            Trouble::Lose => {
                act(&mut self.shared.world());
                Outcome::Unknown("the answer is lost".to_owned())
            }
            Trouble::None | Trouble::Die => {
                act(&mut self.shared.world());
                Outcome::Answered(answer)
            }
        }
    }

    fn sees(&self, allocation: &Allocation) -> bool {
        self.node.is_empty() || allocation.node.name == self.node
    }
}

impl Store for Side {
    fn of_pod(&self, uid: &str) -> Vec<Stored<Allocation>> {
        self.all().into_iter().filter(|one| one.value.pod.uid == uid).collect()
    }
    fn of_container(&self, id: &str) -> Vec<Stored<Allocation>> {
        self.all().into_iter().filter(|one| one.value.container_id == id).collect()
    }
    fn of_address(&self, address: Address) -> Option<Stored<Allocation>> {
        self.shared.world().allocations.get(&address).filter(|one| self.sees(&one.value)).cloned()
    }
    fn all(&self) -> Vec<Stored<Allocation>> {
        self.shared.world().allocations.values().filter(|one| self.sees(&one.value)).cloned().collect()
    }
    async fn named(&self, _: &str, name: &str, _: Option<&Owner>) -> Result<Vec<Stored<Allocation>>, StoreError> {
        let named = |one: &&Stored<Allocation>| one.value.pod.name == name;
        self.ask(|world| Ok(world.allocations.values().filter(named).cloned().collect()))
    }
    async fn in_pool(&self, _: &str) -> Result<Vec<Address>, StoreError> {
        self.ask(|world| Ok(world.allocations.keys().copied().collect()))
    }
    async fn reserve(&self, new: Allocation) -> Result<Reserved, StoreError> {
        self.ask(|world| {
            if world.allocations.contains_key(&new.address) {
                return Ok(Reserved::Taken);
            }
            let stored = world.store(new, None);
            world.allocations.insert(stored.value.address, stored.clone());
            Ok(Reserved::Created(Box::new(stored)))
        })
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
            let stored = world.store(next, Some(at.uid.clone()));
            world.allocations.insert(address, stored.clone());
            Ok(stored)
        })
    }
    async fn remove(&self, address: Address, at: &Version) -> Result<(), StoreError> {
        self.ask(|world| {
            let before = world.allocations.get(&address).ok_or(StoreError::Gone)?;
            if before.version != *at {
                return Err(StoreError::Conflict);
            }
            let abandoned = before.value.release_request.as_ref().is_some_and(|request| request.abandon);
            let bound = world.bound.contains_key(&address);
            assert!(!bound || abandoned, "{address} is deleted while the cloud has it");
            world.allocations.remove(&address);
            Ok(())
        })
    }
    async fn endpoint(&self, _: &str, name: &str) -> Result<Option<Stored<Endpoint>>, StoreError> {
        self.ask(|world| Ok(world.endpoints.get(name).cloned()))
    }
    async fn publish(&self, at: Option<&Version>, endpoint: Endpoint) -> Result<Version, StoreError> {
        self.ask(|world| {
            let name = endpoint.pod.name.clone();
            let there = world.endpoints.get(&name).map(|there| there.version.clone());
            if there.as_ref() != at {
                return Err(if there.is_none() { StoreError::Gone } else { StoreError::Conflict });
            }
            let stored = world.store(endpoint, there.map(|there| there.uid));
            let version = stored.version.clone();
            world.endpoints.insert(name, stored);
            Ok(version)
        })
    }
    async fn pod(&self, _: &str, name: &str) -> Result<Option<PodFacts>, StoreError> {
        self.ask(|world| Ok(world.pods.get(name).cloned()))
    }
    async fn retained(&self, _: &str, owner: &Owner, pod: &str) -> Result<bool, StoreError> {
        let ordinal: usize = pod.rsplit_once('-').and_then(|(_, n)| n.parse().ok()).expect("an ordinal");
        self.ask(|world| Ok(owner.uid == "set" && ordinal < world.replicas))
    }
}

impl Provider for Side {
    async fn allocate(&self, call: &Call) -> Outcome<Bound> {
        let (address, node) = (call.address, call.node.clone());
        let own = u16::try_from(address.number() & 0xfff).expect("twelve bits");
        let vlan = self.shared.world().vlan.unwrap_or(own);
        let bind = |world: &mut World| drop(world.bound.insert(address, node));
        self.call(true, call, Bound { mac: None, vlan: Some(vlan) }, bind).await
    }
    async fn release(&self, call: &Call) -> Outcome<()> {
        self.call(false, call, (), |world| drop(world.bound.remove(&call.address))).await
    }
    fn limit(&self) -> Duration {
        Duration::from_secs(50)
    }
    fn serves(&self, server: &str) -> bool {
        !self.shared.world().unserved.contains(server)
    }
}

/// Takes a sleeper out when nobody waits for it any more.
struct Sleeper<'a>(&'a Shared, u64);

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        self.0.world().sleepers.remove(&self.1);
    }
}

impl Host for Side {
    fn now(&self) -> Duration {
        self.shared.world().now
    }
    async fn sleep(&self, time: Duration) {
        let until = self.now().saturating_add(time);
        let id = {
            let mut world = self.shared.world();
            world.happened += 1;
            let id = world.happened;
            world.sleepers.insert(id, until);
            id
        };
        let sleeper = Sleeper(&self.shared, id);
        poll_fn(|_| if sleeper.0.world().now >= until { Poll::Ready(()) } else { Poll::Pending }).await;
    }
    async fn pause(&self, time: Duration) -> bool {
        if self.shared.world().stopping {
            return false;
        }
        self.sleep(time).await;
        true
    }
    fn unreleased(&self, _: &Allocation, _: String) {}
    fn random(&self) -> u128 {
        let mut world = self.shared.world();
        u128::from(world.number()) << 64 | u128::from(world.number())
    }
    async fn kept(&self, uid: &str, interface: &str) -> Kept {
        let key = format!("{} {uid} {interface}", self.node);
        match self.trouble() {
            Trouble::None => {
                self.shared.world().kept.get(&key).map_or(Kept::Nothing, |kept| Kept::Result(Box::new(kept.clone())))
            }
            _ => Kept::Unreadable,
        }
    }
    async fn keep(&self, uid: &str, result: &Interface) {
        if self.trouble() == Trouble::None {
            self.shared.world().kept.insert(format!("{} {uid} {}", self.node, result.name), result.clone());
        }
    }
    async fn sandbox_gone(&self, allocation: &Allocation) -> bool {
        self.shared.world().gone.contains(&allocation.container_id)
    }
    async fn at(&self, step: Step) {
        let trouble = self.shared.world().meet(&self.node, step);
        let dies = trouble == Trouble::Die;
        *self.next.lock().expect("whole") = trouble;
        // Others have their turn.
        let mut turn = false;
        poll_fn(|_| if dies || !std::mem::replace(&mut turn, true) { Poll::Pending } else { Poll::Ready(()) }).await;
    }
}
