//! What is true, without chance: an API server, a cloud, machines and clocks as plain values, and one hook for trouble.

use ipam_core::{
    Address, Allocation, Call, Endpoint, Interface, NamespaceFacts, Owner, PodFacts, Step, StoreError, Stored, Version,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// What meets a step of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    None,
    /// It is not done.
    Refuse(StoreError),
    /// It is done, and the answer is lost.
    Lose,
    /// The process dies before it.
    Die,
}

/// What a provider does with calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    Works,
    /// Nobody listens.
    Unsent,
    /// Nobody answers, and nothing is done.
    Unknown,
}

/// A call as the provider got it, or would have.
#[derive(Clone, Debug)]
pub(crate) struct Called {
    pub(crate) allocate: bool,
    pub(crate) at: Duration,
    pub(crate) call: Call,
    /// What the allocation said then.
    pub(crate) settle: Duration,
}

type Hook = Box<dyn FnMut(&mut World, &str, Step) -> Trouble + Send>;

pub(crate) struct World {
    pub(crate) now: Duration,
    pub(crate) allocations: BTreeMap<Address, Stored<Allocation>>,
    pub(crate) endpoints: BTreeMap<String, Stored<Endpoint>>,
    /// By name.
    pub(crate) pods: BTreeMap<String, PodFacts>,
    /// Of the StatefulSet.
    pub(crate) replicas: usize,
    /// The cloud's: which node has which address.
    pub(crate) bound: BTreeMap<Address, String>,
    pub(crate) mood: Mood,
    /// The processes are to end.
    pub(crate) stopping: bool,
    pub(crate) calls: Vec<Called>,
    /// Providers that the configuration does not name any more.
    pub(crate) unserved: BTreeSet<String>,
    /// The one VLAN of this provider.
    pub(crate) vlan: Option<u16>,
    /// Results on the disks of the nodes.
    pub(crate) kept: BTreeMap<String, Interface>,
    /// Containers whose sandbox is gone.
    pub(crate) gone: BTreeSet<String>,
    pub(crate) trouble: Hook,
    /// By when the sleepers want to be woken.
    pub(crate) sleepers: BTreeMap<u64, Duration>,
    /// Grows with whatever happens.
    pub(crate) happened: u64,
    versions: u64,
    random: u64,
}

/// Shared by flows.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Mutex<World>>);

impl Shared {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(World {
            now: Duration::from_secs(1000),
            allocations: BTreeMap::new(),
            endpoints: BTreeMap::new(),
            pods: BTreeMap::new(),
            replicas: 0,
            bound: BTreeMap::new(),
            mood: Mood::Works,
            stopping: false,
            calls: Vec::new(),
            unserved: BTreeSet::new(),
            vlan: None,
            kept: BTreeMap::new(),
            gone: BTreeSet::new(),
            trouble: Box::new(|_, _, _| Trouble::None),
            sleepers: BTreeMap::new(),
            happened: 0,
            versions: 0,
            random: 0x9E37_79B9_7F4A_7C15,
        })))
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().expect("no test of ours panics with it")
    }

    /// What meets each step from now on.
    pub(crate) fn trouble(&self, hook: impl FnMut(&mut World, &str, Step) -> Trouble + Send + 'static) {
        self.world().trouble = Box::new(hook);
    }

    pub(crate) fn no_trouble(&self) {
        self.trouble(|_, _, _| Trouble::None);
    }

    pub(crate) fn pass(&self, time: Duration) {
        self.world().now += time;
    }

    pub(crate) fn addresses(&self) -> Vec<Address> {
        self.world().allocations.keys().copied().collect()
    }

    /// A pod of its own, or of the StatefulSet if it is named so; another of the name is gone.
    pub(crate) fn pod(&self, name: &str, uid: &str, node: &str) {
        let facts = PodFacts {
            uid: uid.to_owned(),
            node: node.to_owned(),
            owner: name.starts_with("db-").then(stateful_set),
            namespace: Arc::new(NamespaceFacts::default()),
            ..PodFacts::default()
        };
        self.world().pods.insert(name.to_owned(), facts);
    }

    /// Of which Kubernetes knows nothing any more; its endpoint goes with it, if it does.
    pub(crate) fn pod_goes(&self, name: &str) {
        let mut world = self.world();
        world.pods.remove(name);
        if world.endpoints.get(name).is_some_and(|endpoint| endpoint.value.goes_with.is_some()) {
            world.endpoints.remove(name);
        }
    }
}

pub(crate) fn stateful_set() -> Owner {
    let text = str::to_owned;
    Owner { api_version: text("apps/v1"), kind: text("StatefulSet"), name: text("db"), uid: text("set") }
}

impl World {
    pub(crate) fn meet(&mut self, node: &str, step: Step) -> Trouble {
        self.happened += 1;
        let mut hook = std::mem::replace(&mut self.trouble, Box::new(|_, _, _| Trouble::None));
        let trouble = hook(self, node, step);
        self.trouble = hook;
        trouble
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    pub(crate) fn one_in(&mut self, count: u64) -> bool {
        (self.number() >> 20).is_multiple_of(count)
    }

    /// A call is about to be sent. Whatever it does is over when what was written before says so, and two seconds earlier.
    pub(crate) fn called(&mut self, allocate: bool, call: &Call) {
        let stored = self.allocations.get(&call.address).expect("what is called for has an allocation");
        let settle = stored.value.provider.as_ref().expect("and a binding").settle;
        let covered = stored.seen + settle;
        assert!(call.deadline.at + Duration::from_secs(2) <= covered, "{call:?} is not covered by {stored:?}");
        assert!(!self.unserved.contains(&call.server), "{call:?} is not for anybody");
        self.calls.push(Called { allocate, at: self.now, call: call.clone(), settle });
    }

    pub(crate) fn version(&mut self, uid: Option<String>) -> Version {
        self.versions += 1;
        let uid = uid.unwrap_or_else(|| format!("object-{}", self.versions));
        Version { uid, resource: self.versions.to_string() }
    }

    pub(crate) fn store<T>(&mut self, value: T, uid: Option<String>) -> Stored<T> {
        Stored { value, version: self.version(uid), seen: self.now }
    }

    /// What a test that is done with an address may expect of it: bound for its holder, if at all, and shown.
    pub(crate) fn shown(&self, pod: &str) -> Vec<Address> {
        let endpoint = self.endpoints.get(pod).map(|endpoint| &endpoint.value);
        let interfaces = endpoint.into_iter().flat_map(|endpoint| &endpoint.interfaces);
        interfaces.flat_map(|interface| &interface.addresses).map(|assigned| assigned.address).collect()
    }
}
