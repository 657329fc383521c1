//! What is true: objects in the API server, bindings in the cloud, pods, sandboxes and disks. Plain values; whoever changes
//! them is in `sides` (a flow) or `driver` (everybody else).

use ipam_core::{Address, Allocation, Call, Endpoint, Interface, Step, Stored, Version};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Agents 0 and 1, and the controller.
pub(crate) const PROCESSES: usize = 3;
pub(crate) const CONTROLLER: usize = 2;
pub(crate) const INTERFACE: &str = "net1";
pub(crate) const POOL: &str = "pool";

/// What a run is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) provider: bool,
    pub(crate) retained: bool,
    pub(crate) addresses: u32,
    pub(crate) faults: bool,
    /// A late write lands, or not, in one of so many turns.
    pub(crate) lateness: usize,
    /// Time passes in one of so many turns.
    pub(crate) hurry: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Live,
    Terminating,
    Terminal,
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Up {
    Running,
    Stopping,
    Gone,
}

#[derive(Clone, Debug)]
pub(crate) struct Sandbox {
    pub(crate) id: String,
    pub(crate) up: Up,
    /// What the runtime was told for it.
    pub(crate) addresses: Vec<Address>,
    /// A runtime waits for an ADD.
    pub(crate) asked: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Pod {
    pub(crate) uid: String,
    pub(crate) name: String,
    pub(crate) node: usize,
    pub(crate) phase: Phase,
    pub(crate) sandboxes: Vec<Sandbox>,
}

/// A call at the provider.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) call: Call,
    pub(crate) allocate: bool,
    /// By the true clock.
    pub(crate) deadline: Duration,
    /// The operation that waits for it, unless it gave up.
    pub(crate) from: Option<u64>,
}

/// What a process asks of the world, and has not been told yet.
pub(crate) enum Ask {
    At,
    Sleep(Duration),
    Reserve(Box<Allocation>),
    Advance(Address, Version, Box<Allocation>),
    Remove(Address, Version),
    ReadEndpoint(String),
    Publish(Option<Version>, Box<Endpoint>),
    ReadPod(String),
    ReadOwner,
    Named(String),
    InPool,
    Allocate(Call),
    Release(Call),
    Kept(String),
    Keep(String, Box<Interface>),
    SandboxGone(Box<Allocation>),
}

pub(crate) struct Op {
    pub(crate) process: usize,
    pub(crate) task: u64,
    pub(crate) ask: Ask,
    /// The flow has been told, or gave up.
    pub(crate) sent: bool,
}

pub(crate) type Object = (Allocation, Version);

/// One process's view of the allocations.
#[derive(Default)]
pub(crate) struct Index {
    pub(crate) known: BTreeMap<Address, Stored<Allocation>>,
    /// Deletions that the watch has not passed.
    pub(crate) tombs: BTreeMap<Address, u64>,
    pub(crate) events: VecDeque<(u64, Address, Option<Object>)>,
}

pub(crate) struct World {
    pub(crate) setup: Setup,
    pub(crate) now: Duration,
    /// What each process's clock is ahead.
    pub(crate) skew: [Duration; PROCESSES],
    pub(crate) versions: u64,
    pub(crate) fresh: u64,
    pub(crate) random: crate::chance::Chance,
    pub(crate) allocations: BTreeMap<Address, (Allocation, Version)>,
    pub(crate) endpoints: BTreeMap<String, (Endpoint, Version)>,
    pub(crate) pods: Vec<Pod>,
    pub(crate) owner: bool,
    pub(crate) bound: BTreeMap<Address, String>,
    pub(crate) pending: Vec<Pending>,
    pub(crate) index: [Index; PROCESSES],
    pub(crate) disks: [BTreeMap<String, Interface>; 2],
    pub(crate) ops: BTreeMap<u64, Op>,
    pub(crate) done: BTreeMap<u64, crate::sides::Reply>,
    /// Writes that the API server does some time later, or never.
    pub(crate) late: Vec<Ask>,
    /// Where each task stands.
    pub(crate) steps: BTreeMap<u64, Step>,
    /// A rule that was broken.
    pub(crate) broken: Option<String>,
    pub(crate) trace: VecDeque<String>,
}

pub(crate) fn node_name(process: usize) -> String {
    format!("node-{process}")
}

impl World {
    pub(crate) fn note(&mut self, what: impl FnOnce() -> String) {
        if self.trace.len() == 400 {
            self.trace.pop_front();
        }
        let line = format!("{:>7.1?} {}", self.now, what());
        self.trace.push_back(line);
    }

    pub(crate) fn id(&mut self) -> u64 {
        self.fresh += 1;
        self.fresh
    }

    fn version(&mut self, uid: Option<&str>) -> Version {
        self.versions += 1;
        let uid = uid.map_or_else(|| format!("object-{}", self.versions), str::to_owned);
        Version { uid, resource: self.versions.to_string() }
    }

    pub(crate) fn pod(&self, uid: &str) -> Option<&Pod> {
        self.pods.iter().find(|pod| pod.uid == uid)
    }

    /// The pod that has the name.
    pub(crate) fn named(&self, name: &str) -> Option<&Pod> {
        self.pods.iter().find(|pod| pod.name == name && pod.phase != Phase::Gone)
    }

    pub(crate) fn retained(&self) -> bool {
        self.setup.retained && self.owner
    }

    /// Who watches it.
    fn tell(&mut self, address: Address, before: Option<&str>, after: Option<&Object>, at: u64) {
        for process in 0..PROCESSES {
            let sees = |node: &str| process == CONTROLLER || node == node_name(process);
            let now = after.filter(|(allocation, _)| sees(&allocation.node.name)).cloned();
            if now.is_some() || before.is_some_and(sees) {
                self.index[process].events.push_back((at, address, now));
            }
        }
    }

    pub(crate) fn create(&mut self, new: Allocation) -> Option<Version> {
        if self.allocations.contains_key(&new.address) {
            return None;
        }
        let version = self.version(None);
        self.allocations.insert(new.address, (new.clone(), version.clone()));
        self.tell(new.address, None, Some(&(new, version.clone())), self.versions);
        Some(version)
    }

    pub(crate) fn replace(&mut self, address: Address, at: &Version, next: Allocation) -> Option<Version> {
        let (before, version) = self.allocations.get(&address)?;
        if version != at {
            return None;
        }
        let (node, uid) = (before.node.name.clone(), version.uid.clone());
        let version = self.version(Some(&uid));
        self.allocations.insert(address, (next.clone(), version.clone()));
        self.tell(address, Some(&node), Some(&(next, version.clone())), self.versions);
        Some(version)
    }

    pub(crate) fn delete(&mut self, address: Address, at: &Version) -> bool {
        let Some((before, _)) = self.allocations.get(&address).filter(|(_, version)| version == at) else {
            return false;
        };
        let before = before.clone();
        self.deleted_rightly(&before);
        self.versions += 1;
        self.allocations.remove(&address);
        self.tell(address, Some(&before.node.name), None, self.versions);
        true
    }

    /// Invariants 2 and 5 at a deletion.
    fn deleted_rightly(&mut self, gone: &Allocation) {
        let address = gone.address;
        let mut wrong = None;
        if gone.provider.is_some() && self.pending.iter().any(|pending| pending.call.address == address) {
            wrong = Some("deleted while a call for it is on its way");
        }
        if self.bound.contains_key(&address) {
            wrong = Some("deleted while it is bound");
        }
        let running = |pod: &Pod| {
            let used = |sandbox: &Sandbox| sandbox.up == Up::Running && sandbox.addresses.contains(&address);
            pod.uid == gone.pod.uid
                && (pod.phase == Phase::Live || !self.setup.provider)
                && pod.sandboxes.iter().any(used)
        };
        if self.pods.iter().any(running) {
            wrong = Some("deleted under a container that runs");
        }
        if let Some(wrong) = wrong {
            self.broken.get_or_insert_with(|| format!("{address} {wrong}"));
        }
    }

    pub(crate) fn write_endpoint(&mut self, at: Option<&Version>, endpoint: Endpoint) -> Option<Version> {
        let name = endpoint.pod.name.clone();
        let there = self.endpoints.get(&name).map(|(_, version)| version.clone());
        if there.as_ref() != at {
            return None;
        }
        let version = self.version(there.map(|there| there.uid).as_deref());
        self.endpoints.insert(name, (endpoint, version.clone()));
        Some(version)
    }

    /// One event of a process's watch, in order.
    pub(crate) fn deliver(&mut self, process: usize) {
        let now = self.now + self.skew[process];
        let index = &mut self.index[process];
        let Some((at, address, object)) = index.events.pop_front() else { return };
        let number = |version: &Version| version.resource.parse::<u64>().expect("a number");
        if index.known.get(&address).is_some_and(|known| number(&known.version) >= at) {
            return;
        }
        if index.tombs.get(&address).is_some_and(|tomb| *tomb >= at) {
            return;
        }
        index.tombs.remove(&address);
        match object {
            Some((value, version)) => {
                index.known.insert(address, Stored { value, version, seen: now });
            }
            None => {
                index.known.remove(&address);
            }
        }
    }

    /// A consistent list, as at a start.
    pub(crate) fn relist(&mut self, process: usize) {
        let now = self.now + self.skew[process];
        let sees = |allocation: &Allocation| process == CONTROLLER || allocation.node.name == node_name(process);
        let known = self.allocations.iter().filter(|(_, (allocation, _))| sees(allocation));
        let stored = |(value, version): &(Allocation, Version)| Stored {
            value: value.clone(),
            version: version.clone(),
            seen: now,
        };
        let known = known.map(|(address, object)| (*address, stored(object))).collect();
        self.index[process] = Index { known, ..Index::default() };
    }

    /// What must be true after every step. Source: address-lifecycle, section 2.
    pub(crate) fn check(&self) -> Result<(), String> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        let mut users: BTreeMap<Address, &str> = BTreeMap::new();
        for pod in &self.pods {
            let live = pod.phase == Phase::Live;
            for sandbox in pod.sandboxes.iter().filter(|sandbox| sandbox.up == Up::Running) {
                for address in &sandbox.addresses {
                    let counts = live || !self.setup.provider;
                    if !counts {
                        continue;
                    }
                    let held = self.allocations.get(address).map(|(allocation, _)| allocation);
                    let Some(held) = held.filter(|held| held.pod.uid == pod.uid) else {
                        return Err(format!("1: {} runs with {address}, which is not its own", sandbox.id));
                    };
                    if self.setup.provider && !held.held() {
                        return Err(format!("2: {address} of {} is being released", sandbox.id));
                    }
                    if self.setup.provider && self.bound.get(address) != Some(&node_name(pod.node)) {
                        return Err(format!("2: {address} of {} is not bound at its node", sandbox.id));
                    }
                    if let Some(other) = users.insert(*address, &sandbox.id) {
                        return Err(format!("1: {address} is used by {other} and {}", sandbox.id));
                    }
                }
            }
        }
        for (endpoint, _) in self.endpoints.values() {
            let live = self.pod(&endpoint.pod.uid).is_some_and(|pod| pod.phase == Phase::Live);
            for interface in &endpoint.interfaces {
                for assigned in &interface.addresses {
                    let Some((held, _)) = self.allocations.get(&assigned.address).filter(|_| live) else {
                        if live {
                            return Err(format!("3: the endpoint shows {}, which nobody holds", assigned.address));
                        }
                        continue;
                    };
                    if held.pod.uid != endpoint.pod.uid || held.bind_id() != interface.bind_id.as_deref() {
                        continue;
                    }
                    if !held.held() {
                        return Err(format!("3: the endpoint shows {}, which is being released", assigned.address));
                    }
                    if held.provider.is_some() && !self.bound.contains_key(&assigned.address) {
                        return Err(format!("3: the endpoint shows {}, which is not bound", assigned.address));
                    }
                }
            }
        }
        Ok(())
    }
}
