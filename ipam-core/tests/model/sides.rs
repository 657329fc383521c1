//! The traits of ipam-core over the world. Every call is an operation that the driver lets happen, when and if it wants.

use crate::world::{Ask, INTERFACE, Op, Phase, Up, World, node_name};
use ipam_core::{
    Address, Allocation, Bound, Call, Endpoint, Host, Interface, Kept, Outcome, Owner, PodFacts, Provider, Reserved,
    Step, Store, StoreError, Stored, Version,
};
use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Poll;
use std::time::Duration;

pub(crate) enum Reply {
    Done,
    Failed(StoreError),
    Reserved(Reserved),
    Advanced(Box<Stored<Allocation>>),
    Endpoint(Option<Box<Stored<Endpoint>>>),
    Version(Version),
    Pod(Option<Box<PodFacts>>),
    Yes(bool),
    Named(Vec<Stored<Allocation>>),
    Addresses(Vec<Address>),
    Bound(Outcome<Bound>),
    Released(Outcome<()>),
    Kept(Kept),
}

#[derive(Clone)]
pub(crate) struct Side {
    pub(crate) world: Arc<Mutex<World>>,
    pub(crate) process: usize,
}

thread_local! {
    /// The task that is being polled.
    pub(crate) static TASK: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Takes an operation out of the world when its flow gives it up.
struct Waiting<'a>(&'a Side, u64);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut world = self.0.world();
        world.done.remove(&self.1);
        if let Some(op) = world.ops.get_mut(&self.1) {
            op.sent = true;
        }
    }
}

impl Side {
    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().expect("whole")
    }

    fn ask(&self, ask: Ask) -> impl Future<Output = Reply> + Send {
        let mut ask = Some(ask);
        let mut waiting = None;
        poll_fn(move |_| {
            if let Some(ask) = ask.take() {
                let mut world = self.world();
                let id = world.id();
                let task = TASK.get();
                world.ops.insert(id, Op { process: self.process, task, ask, sent: false });
                drop(world);
                waiting = Some(Waiting(self, id));
            }
            let id = waiting.as_ref().map_or(0, |waiting| waiting.1);
            match self.world().done.remove(&id) {
                Some(reply) => Poll::Ready(reply),
                None => Poll::Pending,
            }
        })
    }
}

/// Lets an operation happen. `None`: its answer comes later (a call of the provider, a sleep).
pub(crate) fn happen(world: &mut World, id: u64, process: usize, ask: &Ask) -> Option<Reply> {
    let now = world.now + world.skew[process];
    let conflict = |version: Option<Version>| version.map_or(Reply::Failed(StoreError::Conflict), Reply::Version);
    Some(match ask {
        Ask::At => Reply::Done,
        Ask::Sleep(until) => {
            if now < *until {
                return None;
            }
            Reply::Done
        }
        Ask::Reserve(new) => match world.create((**new).clone()) {
            Some(version) => {
                let stored = Stored { value: (**new).clone(), version, seen: now };
                Reply::Reserved(Reserved::Created(Box::new(stored)))
            }
            None => Reply::Reserved(Reserved::Taken),
        },
        Ask::Advance(address, version, next) => match world.replace(*address, version, (**next).clone()) {
            Some(version) => Reply::Advanced(Box::new(Stored { value: (**next).clone(), version, seen: now })),
            None => Reply::Failed(StoreError::Conflict),
        },
        Ask::Remove(address, version) => {
            if world.delete(*address, version) {
                Reply::Done
            } else {
                Reply::Failed(StoreError::Conflict)
            }
        }
        Ask::ReadEndpoint(name) => {
            let found = world.endpoints.get(name).cloned();
            Reply::Endpoint(found.map(|(value, version)| Box::new(Stored { value, version, seen: now })))
        }
        Ask::Publish(version, endpoint) => conflict(world.write_endpoint(version.as_ref(), (**endpoint).clone())),
        Ask::ReadPod(name) => Reply::Pod(world.named(name).map(|pod| {
            Box::new(PodFacts {
                uid: pod.uid.clone(),
                node: node_name(pod.node),
                terminating: pod.phase == Phase::Terminating,
                terminal: pod.phase == Phase::Terminal,
                owner: world.setup.retained.then(owner),
                // Names are used again here, all the same: who takes them for new ones must do no harm.
                generated: !world.setup.retained,
                ..PodFacts::default()
            })
        })),
        Ask::ReadOwner => Reply::Yes(world.owner),
        Ask::Named(name) => {
            let known = &world.index[process].known;
            let named = world.allocations.iter().filter(|(_, (allocation, _))| allocation.pod.name == *name);
            let stored = named.map(|(address, (value, version))| {
                let before = known.get(address).filter(|before| before.version == *version);
                let seen = before.map_or(now, |before| before.seen);
                Stored { value: value.clone(), version: version.clone(), seen }
            });
            Reply::Named(stored.collect())
        }
        Ask::InPool => Reply::Addresses(world.allocations.keys().copied().collect()),
        Ask::Allocate(call) | Ask::Release(call) => {
            let allocate = matches!(ask, Ask::Allocate(_));
            // It is sent by the caller's own clock, before its deadline or not at all.
            if now >= call.deadline.at {
                return Some(unsent(allocate));
            }
            let deadline = call.deadline.at.saturating_sub(world.skew[process]);
            world.pending.push(crate::world::Pending { call: call.clone(), allocate, deadline, from: Some(id) });
            return None;
        }
        Ask::Kept(key) => {
            let kept = world.disks.get(process).and_then(|disk| disk.get(key)).cloned();
            Reply::Kept(kept.map_or(Kept::Nothing, |kept| Kept::Result(Box::new(kept))))
        }
        Ask::Keep(key, result) => {
            if let Some(disk) = world.disks.get_mut(process) {
                disk.insert(key.clone(), (**result).clone());
            }
            Reply::Done
        }
        Ask::SandboxGone(allocation) => {
            let sandboxes = world.pod(&allocation.pod.uid).map(|pod| &pod.sandboxes);
            let there =
                |sandbox: &crate::world::Sandbox| sandbox.id == allocation.container_id && sandbox.up != Up::Gone;
            Reply::Yes(!sandboxes.is_some_and(|sandboxes| sandboxes.iter().any(there)))
        }
    })
}

pub(crate) fn unknown(allocate: bool) -> Reply {
    let why = "no answer".to_owned();
    if allocate { Reply::Bound(Outcome::Unknown(why)) } else { Reply::Released(Outcome::Unknown(why)) }
}

pub(crate) fn unsent(allocate: bool) -> Reply {
    let why = "no connection".to_owned();
    if allocate { Reply::Bound(Outcome::Unsent(why)) } else { Reply::Released(Outcome::Unsent(why)) }
}

/// What the process itself learns from an answer that reaches it.
pub(crate) fn learn(world: &mut World, process: usize, ask: &Ask, reply: &Reply) {
    let index = &mut world.index[process];
    let mine =
        |allocation: &Allocation| process == crate::world::CONTROLLER || allocation.node.name == node_name(process);
    match (ask, reply) {
        (_, Reply::Reserved(Reserved::Created(stored)) | Reply::Advanced(stored)) => {
            if mine(&stored.value) {
                index.known.insert(stored.value.address, (**stored).clone());
            } else {
                index.known.remove(&stored.value.address);
                index.tombs.insert(stored.value.address, stored.version.resource.parse().expect("a number"));
            }
        }
        (Ask::Remove(address, _), Reply::Done) => {
            index.known.remove(address);
            index.tombs.insert(*address, world.versions);
        }
        _ => {}
    }
}

pub(crate) fn owner() -> Owner {
    Owner { api_version: "apps/v1".into(), kind: "StatefulSet".into(), name: "db".into(), uid: "set".into() }
}

macro_rules! expect {
    ($reply:expr, $($pattern:pat => $value:expr),+) => {
        match $reply { Reply::Failed(error) => Err(error), $($pattern => Ok($value),)+ _ => unreachable!("another reply") }
    };
}

impl Store for Side {
    fn of_pod(&self, uid: &str) -> Vec<Stored<Allocation>> {
        self.all().into_iter().filter(|one| one.value.pod.uid == uid).collect()
    }
    fn of_container(&self, id: &str) -> Vec<Stored<Allocation>> {
        self.all().into_iter().filter(|one| one.value.container_id == id).collect()
    }
    fn of_address(&self, address: Address) -> Option<Stored<Allocation>> {
        self.world().index[self.process].known.get(&address).cloned()
    }
    fn all(&self) -> Vec<Stored<Allocation>> {
        self.world().index[self.process].known.values().cloned().collect()
    }
    async fn named(&self, _: &str, name: &str, _: Option<&Owner>) -> Result<Vec<Stored<Allocation>>, StoreError> {
        expect!(self.ask(Ask::Named(name.to_owned())).await, Reply::Named(named) => named)
    }
    async fn in_pool(&self, _: &str) -> Result<Vec<Address>, StoreError> {
        expect!(self.ask(Ask::InPool).await, Reply::Addresses(addresses) => addresses)
    }
    async fn reserve(&self, new: Allocation) -> Result<Reserved, StoreError> {
        expect!(self.ask(Ask::Reserve(Box::new(new))).await, Reply::Reserved(reserved) => reserved)
    }
    async fn advance(
        &self,
        address: Address,
        at: &Version,
        next: Allocation,
    ) -> Result<Stored<Allocation>, StoreError> {
        expect!(self.ask(Ask::Advance(address, at.clone(), Box::new(next))).await, Reply::Advanced(stored) => *stored)
    }
    async fn remove(&self, address: Address, at: &Version) -> Result<(), StoreError> {
        expect!(self.ask(Ask::Remove(address, at.clone())).await, Reply::Done => ())
    }
    async fn endpoint(&self, _: &str, name: &str) -> Result<Option<Stored<Endpoint>>, StoreError> {
        expect!(self.ask(Ask::ReadEndpoint(name.to_owned())).await, Reply::Endpoint(found) => found.map(|found| *found))
    }
    async fn publish(&self, at: Option<&Version>, endpoint: Endpoint) -> Result<Version, StoreError> {
        expect!(self.ask(Ask::Publish(at.cloned(), Box::new(endpoint))).await, Reply::Version(version) => version)
    }
    async fn pod(&self, _: &str, name: &str) -> Result<Option<PodFacts>, StoreError> {
        expect!(self.ask(Ask::ReadPod(name.to_owned())).await, Reply::Pod(pod) => pod.map(|pod| *pod))
    }
    async fn retained(&self, _: &str, _: &Owner, _: &str) -> Result<bool, StoreError> {
        expect!(self.ask(Ask::ReadOwner).await, Reply::Yes(yes) => yes)
    }
}

impl Provider for Side {
    async fn allocate(&self, call: &Call) -> Outcome<Bound> {
        match self.ask(Ask::Allocate(call.clone())).await {
            Reply::Bound(outcome) => outcome,
            _ => unreachable!("another reply"),
        }
    }
    async fn release(&self, call: &Call) -> Outcome<()> {
        match self.ask(Ask::Release(call.clone())).await {
            Reply::Released(outcome) => outcome,
            _ => unreachable!("another reply"),
        }
    }
    fn limit(&self) -> Duration {
        Duration::from_secs(50)
    }
    fn serves(&self, _: &str) -> bool {
        true
    }
}

impl Host for Side {
    fn now(&self) -> Duration {
        let world = self.world();
        world.now + world.skew[self.process]
    }
    async fn sleep(&self, time: Duration) {
        let until = self.now().saturating_add(time);
        self.ask(Ask::Sleep(until)).await;
    }
    async fn pause(&self, time: Duration) -> bool {
        self.sleep(time).await;
        true
    }
    fn unreleased(&self, _: &Allocation, _: String) {}
    fn random(&self) -> u128 {
        let random = &mut self.world().random;
        u128::from(random.next()) << 64 | u128::from(random.next())
    }
    async fn kept(&self, uid: &str, interface: &str) -> Kept {
        match self.ask(Ask::Kept(format!("{uid}_{interface}"))).await {
            Reply::Kept(kept) => kept,
            _ => unreachable!("another reply"),
        }
    }
    async fn keep(&self, uid: &str, result: &Interface) {
        self.ask(Ask::Keep(format!("{uid}_{INTERFACE}"), Box::new(result.clone()))).await;
    }
    async fn sandbox_gone(&self, allocation: &Allocation) -> bool {
        match self.ask(Ask::SandboxGone(Box::new(allocation.clone()))).await {
            Reply::Yes(yes) => yes,
            _ => unreachable!("another reply"),
        }
    }
    async fn at(&self, step: Step) {
        self.world().steps.insert(TASK.get(), step);
        self.ask(Ask::At).await;
    }
}
