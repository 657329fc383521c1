//! Everybody else: kubelets, people, the API server's and the provider's moods, time. Decides what happens next.

use crate::chance::Chance;
use crate::sides::{Reply, Side, TASK, happen, learn, unknown};
use crate::world::{Ask, CONTROLLER, INTERFACE, POOL, PROCESSES, Phase, Pod, Sandbox, Setup, Up, World, node_name};
use futures::task::noop_waker_ref;
use ipam_core::{
    Add, Address, Bound, Candidate, Chosen, Del, Family, Flows, Me, NoPool, Node, Outcome, Parent, Pools, Ranges, Step,
    StoreError, Subnet, Successor, Wanted,
};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::Context;
use std::time::Duration;

type Flow = Flows<Side, Side, Side>;

struct Task {
    id: u64,
    process: usize,
    what: String,
    future: Pin<Box<dyn Future<Output = ()> + Send>>,
}

pub(crate) struct Driver {
    pub(crate) world: Arc<Mutex<World>>,
    flows: [Arc<Flow>; PROCESSES],
    tasks: Vec<Task>,
    chance: Chance,
    setup: Setup,
    /// How often a process died in each step.
    pub(crate) died_in: BTreeMap<Step, u64>,
}

struct ThePools(u32);

impl Pools for ThePools {
    fn wanted(&self, _: &ipam_core::PodFacts) -> Result<Chosen, NoPool> {
        let wanted = Wanted { family: Family::V4, candidates: self.of(POOL).into_iter().collect() };
        Ok(Chosen { wanted: vec![wanted], ..Chosen::default() })
    }
    fn of(&self, pool: &str) -> Option<Candidate> {
        let subnet: Subnet = "10.0.0.0/24".parse().expect("a subnet");
        let addresses: Ranges = format!("10.0.0.1-10.0.0.{}", self.0).parse::<ipam_core::Range>().into_iter().collect();
        Some(Candidate { pool: pool.to_owned(), subnet, addresses, gateway: None, routes: Vec::new() })
    }
}

impl Driver {
    pub(crate) fn new(seed: u64, setup: Setup, died_in: BTreeMap<Step, u64>) -> Self {
        let mut chance = Chance::new(seed);
        // Clocks differ, and none begins at zero.
        let skew = [0; PROCESSES].map(|_| Duration::from_secs(u64::try_from(chance.below(100_000)).expect("fits")));
        let world = World {
            setup,
            now: Duration::from_secs(1000),
            skew,
            versions: 0,
            fresh: 0,
            random: Chance::new(chance.next()),
            allocations: BTreeMap::new(),
            endpoints: BTreeMap::new(),
            pods: Vec::new(),
            owner: setup.retained,
            bound: BTreeMap::new(),
            pending: Vec::new(),
            index: Default::default(),
            disks: Default::default(),
            ops: BTreeMap::new(),
            done: BTreeMap::new(),
            late: Vec::new(),
            steps: BTreeMap::new(),
            broken: None,
            trace: std::collections::VecDeque::new(),
        };
        let world = Arc::new(Mutex::new(world));
        let flows = std::array::from_fn(|process| start(&world, process));
        Self { world, flows, tasks: Vec::new(), chance, setup, died_in }
    }

    fn world(&self) -> std::sync::MutexGuard<'_, World> {
        self.world.lock().expect("whole")
    }

    fn note(&self, what: String) {
        self.world().note(|| what);
    }

    fn spawn(&mut self, process: usize, what: String, future: impl Future<Output = ()> + Send + 'static) {
        let id = self.world().id();
        self.note(format!("{} begins: {what}", node_name(process)));
        self.tasks.push(Task { id, process, what, future: Box::pin(future) });
        self.poll(process);
    }

    /// Lets every task of a process go on as far as it can.
    fn poll(&mut self, process: usize) {
        let mut context = Context::from_waker(noop_waker_ref());
        let mut ended = Vec::new();
        // Twice: one that ends may have held a lock.
        for _ in 0..2 {
            for task in self.tasks.iter_mut().filter(|task| task.process == process) {
                if ended.contains(&task.id) {
                    continue;
                }
                TASK.set(task.id);
                if task.future.as_mut().poll(&mut context).is_ready() {
                    ended.push(task.id);
                }
            }
        }
        for task in self.tasks.extract_if(.., |task| ended.contains(&task.id)) {
            let mut world = self.world.lock().expect("whole");
            world.steps.remove(&task.id);
            world.note(|| format!("{} ends: {}", node_name(task.process), task.what));
        }
    }

    /// One thing happens.
    pub(crate) fn step(&mut self) -> Result<(), String> {
        match self.chance.below(100) {
            0..55 => self.answer_one(),
            55..63 => self.provider(),
            63..73 => {
                let process = self.chance.below(PROCESSES);
                self.world().deliver(process);
            }
            // Some API servers are slower than a release, and some days are long.
            73..76 if self.chance.one_in(self.setup.lateness) => self.late_write(),
            76..80 if self.chance.one_in(self.setup.hurry) => self.time_passes(),
            80..88 => self.kubelet(),
            88..91 => self.people(),
            91..99 => self.background(),
            99 if self.setup.faults => {
                let process = self.chance.below(PROCESSES);
                self.die(process);
            }
            _ => {}
        }
        self.world().check()?;
        self.die_where_nobody_died();
        self.world().check()
    }

    /// Steps that are rare are not left out.
    fn die_where_nobody_died(&mut self) {
        let rare = |task: &&Task| {
            let step = self.world().steps.get(&task.id).copied();
            step.is_some_and(|step| self.died_in.get(&step).is_none_or(|count| *count < 3))
        };
        let process = self.tasks.iter().find(rare).map(|task| task.process);
        if let Some(process) = process
            && self.setup.faults
            && self.chance.one_in(4)
        {
            self.die(process);
        }
    }

    fn answer_one(&mut self) {
        let mut world = self.world.lock().expect("whole");
        let ready = |op: &crate::world::Op| match &op.ask {
            Ask::Sleep(until) => world.now + world.skew[op.process] >= *until,
            _ => true,
        };
        let open: Vec<u64> = world.ops.iter().filter(|(_, op)| !op.sent && ready(op)).map(|(id, _)| *id).collect();
        // What nobody waits for any more.
        world.ops.retain(|_, op| !op.sent || matches!(op.ask, Ask::Allocate(_) | Ask::Release(_)));
        let Some(id) = open.get(self.chance.below(open.len())).copied() else { return };
        let Some(mut op) = world.ops.remove(&id) else { return };
        let write = matches!(op.ask, Ask::Reserve(_) | Ask::Advance(..) | Ask::Remove(..) | Ask::Publish(..));
        let read =
            matches!(op.ask, Ask::ReadEndpoint(_) | Ask::ReadPod(_) | Ask::ReadOwner | Ask::Named(_) | Ask::InPool);
        let lost = || Some(Reply::Failed(StoreError::Unknown("lost".to_owned())));
        let process = op.process;
        let reply = if self.setup.faults && write && self.chance.one_in(40) {
            let done = happen(&mut world, id, process, &op.ask);
            drop(done);
            world.note(|| format!("{} a write is done, its answer lost", node_name(process)));
            lost()
        } else if self.setup.faults && write && self.chance.one_in(50) {
            world.note(|| format!("{} a write is late, its answer lost", node_name(process)));
            world.late.push(std::mem::replace(&mut op.ask, Ask::ReadOwner));
            lost()
        } else if self.setup.faults && read && self.chance.one_in(80) {
            Some(Reply::Failed(StoreError::Throttled { after: None }))
        } else {
            let reply = happen(&mut world, id, process, &op.ask);
            if let Some(reply) = &reply {
                learn(&mut world, process, &op.ask, reply);
            }
            reply
        };
        let step = world.steps.get(&op.task).copied();
        if let Some(reply) = reply {
            if !matches!(op.ask, Ask::At) {
                let failed = matches!(reply, Reply::Failed(_));
                world.note(|| format!("{} {step:?}{}", node_name(process), if failed { " fails" } else { "" }));
            }
            world.done.insert(id, reply);
        } else {
            // Its answer comes later.
            op.sent = true;
            world.ops.insert(id, op);
        }
        drop(world);
        self.poll(process);
    }

    fn tell(&mut self, from: Option<u64>, reply: Reply) {
        let Some(id) = from else { return };
        let process = {
            let mut world = self.world();
            let Some(op) = world.ops.remove(&id) else { return };
            world.done.insert(id, reply);
            op.process
        };
        self.poll(process);
    }

    fn provider(&mut self) {
        let mut world = self.world.lock().expect("whole");
        let at = self.chance.below(world.pending.len());
        let Some(pending) = world.pending.get(at).cloned() else { return };
        let (address, allocate) = (pending.call.address, pending.allocate);
        let (lost, refused) = (self.chance.one_in(12), self.chance.one_in(12));
        let faults = self.setup.faults;
        let reply = if faults && lost {
            // The caller hears no more of it; the provider goes on.
            if let Some(pending) = world.pending.get_mut(at) {
                pending.from = None;
            }
            world.note(|| format!("provider: the answer about {address} is lost"));
            unknown(allocate)
        } else if faults && refused {
            world.pending.remove(at);
            world.note(|| format!("provider: refuses {address}, allocate {allocate}"));
            let why = "no".to_owned();
            if allocate { Reply::Bound(Outcome::Rejected(why)) } else { Reply::Released(Outcome::Rejected(why)) }
        } else if pending.from.is_none() && self.chance.one_in(2) {
            world.pending.remove(at);
            world.note(|| format!("provider: drops {address}, allocate {allocate}"));
            return;
        } else {
            world.pending.remove(at);
            world.note(|| format!("provider: does {address}, allocate {allocate}, for {}", pending.call.node));
            if allocate {
                world.bound.insert(address, pending.call.node.clone());
                Reply::Bound(Outcome::Answered(Bound { mac: None, vlan: Some(7) }))
            } else {
                world.bound.remove(&address);
                Reply::Released(Outcome::Answered(()))
            }
        };
        drop(world);
        self.tell(pending.from, reply);
    }

    fn late_write(&mut self) {
        let mut world = self.world.lock().expect("whole");
        if world.late.is_empty() {
            return;
        }
        let at = self.chance.below(world.late.len());
        let ask = world.late.remove(at);
        if self.chance.one_in(2) {
            let done = happen(&mut world, 0, CONTROLLER, &ask);
            let landed = !matches!(done, Some(Reply::Failed(_)));
            world.note(|| format!("a late write {}", if landed { "lands" } else { "is a conflict" }));
        }
    }

    /// Calls that were announced until then end, one way or the other; a provider may be a little late.
    fn time_passes(&mut self) {
        let seconds = u64::try_from(1 + self.chance.below(20)).expect("fits");
        let then = self.world().now + Duration::from_secs(seconds);
        loop {
            let late = {
                let mut world = self.world();
                let over = |pending: &crate::world::Pending| pending.deadline + Duration::from_millis(1500) <= then;
                let Some(at) = world.pending.iter().position(over) else { break };
                world.pending.remove(at)
            };
            if self.chance.one_in(2) {
                let mut world = self.world();
                if late.allocate {
                    world.bound.insert(late.call.address, late.call.node.clone());
                } else {
                    world.bound.remove(&late.call.address);
                }
                world.note(|| format!("provider: does {} in the end, allocate {}", late.call.address, late.allocate));
            }
            self.tell(late.from, unknown(late.allocate));
        }
        self.world().now = then;
        // Those who wait no longer than their deadline.
        let over: Vec<_> = {
            let mut world = self.world();
            let over = |pending: &&mut crate::world::Pending| pending.deadline <= then && pending.from.is_some();
            world.pending.iter_mut().filter(over).map(|pending| (pending.from.take(), pending.allocate)).collect()
        };
        for (from, allocate) in over {
            self.tell(from, unknown(allocate));
        }
    }

    fn kubelet(&mut self) {
        let count = self.world().pods.len();
        let at = self.chance.below(count);
        let choice = self.chance.below(10);
        let faults = self.setup.faults;
        let mut world = self.world.lock().expect("whole");
        let container = format!("sandbox-{}", world.fresh + 1);
        let Some(pod) = world.pods.get_mut(at) else { return };
        if pod.phase == Phase::Gone && pod.sandboxes.iter().all(|sandbox| sandbox.up == Up::Gone) {
            return;
        }
        let (uid, node, phase) = (pod.uid.clone(), pod.node, pod.phase);
        let all_gone = pod.sandboxes.iter().all(|one| one.up == Up::Gone);
        let last = pod.sandboxes.last_mut();
        match (last, choice) {
            (_, 0..4) if phase == Phase::Live && all_gone => {
                pod.sandboxes.push(Sandbox {
                    id: container.clone(),
                    up: Up::Running,
                    addresses: Vec::new(),
                    asked: true,
                });
                world.fresh += 1;
                drop(world);
                self.ask_for(&uid, &container);
            }
            (Some(last), 0..4)
                if phase == Phase::Live && last.up == Up::Running && last.addresses.is_empty() && !last.asked =>
            {
                last.asked = true;
                let id = last.id.clone();
                drop(world);
                self.ask_for(&uid, &id);
            }
            (Some(last), 4) if faults && last.asked => last.asked = false,
            (Some(last), 5) if last.up == Up::Running && (phase != Phase::Live || faults) => {
                // What is asked for it is cancelled.
                (last.up, last.asked) = (Up::Stopping, false);
                let id = last.id.clone();
                world.note(|| format!("kubelet stops {id} of {uid}"));
                drop(world);
                self.del(node, &id);
            }
            (Some(last), 6..8) if last.up == Up::Stopping => {
                (last.up, last.addresses) = (Up::Gone, Vec::new());
                let id = last.id.clone();
                world.note(|| format!("{id} of {uid} is gone"));
            }
            // A DEL that comes again.
            (Some(_), 8) => {
                let id =
                    pod.sandboxes.iter().find(|sandbox| sandbox.up != Up::Running).map(|sandbox| sandbox.id.clone());
                drop(world);
                if let Some(id) = id {
                    self.del(node, &id);
                }
            }
            _ => {}
        }
    }

    fn ask_for(&mut self, uid: &str, container: &str) {
        let (pod, now) = {
            let world = self.world();
            let Some(pod) = world.pod(uid).cloned() else { return };
            (pod.clone(), world.now + world.skew[pod.node])
        };
        let add = Add {
            pod: ipam_core::Pod { namespace: "default".into(), name: pod.name.clone(), uid: uid.to_owned() },
            container_id: container.to_owned(),
            interface: INTERFACE.into(),
            network: "default/net".into(),
            netns: None,
            boot_id: "boot".into(),
            parent: self
                .setup
                .provider
                .then(|| Parent { server: "http://provider".into(), mac: "02:00:00:00:00:01".into() }),
            clean_gateway: false,
            deadline: now + Duration::from_secs(100),
        };
        let (flows, world, pools) =
            (Arc::clone(&self.flows[pod.node]), Arc::clone(&self.world), ThePools(self.setup.addresses));
        let (uid, id) = (uid.to_owned(), container.to_owned());
        self.spawn(pod.node, format!("ADD {id} of {uid}"), async move {
            let (addresses, undo) = match flows.add(&add, &pools).await {
                Ok(entry) => (entry.addresses.iter().map(|assigned| assigned.address).collect(), None),
                Err(failed) => {
                    world.lock().expect("whole").note(|| format!("ADD {id} of {uid} fails: {}", failed.error));
                    (Vec::new(), failed.undo)
                }
            };
            {
                let mut world = world.lock().expect("whole");
                let sandboxes = world.pods.iter_mut().filter(|pod| pod.uid == uid).flat_map(|pod| &mut pod.sandboxes);
                for sandbox in
                    sandboxes.filter(|sandbox| sandbox.id == id && sandbox.asked && sandbox.up == Up::Running)
                {
                    sandbox.asked = false;
                    sandbox.addresses.clone_from(&addresses);
                }
            }
            if let Some(undo) = undo {
                let _ = flows.undo(undo).await;
            }
        });
    }

    fn del(&mut self, node: usize, container: &str) {
        let flows = Arc::clone(&self.flows[node]);
        let del = Del { container_id: container.to_owned(), interface: INTERFACE.into() };
        self.spawn(node, format!("DEL {container}"), async move {
            let _ = flows.del(&del).await;
        });
    }

    fn people(&mut self) {
        let choice = self.chance.below(if self.setup.faults { 14 } else { 8 });
        let (node, name) = (self.chance.below(2), ["a-0", "a-1"][self.chance.below(2)]);
        let mut world = self.world.lock().expect("whole");
        let fresh = world.fresh + 1;
        let retained = world.retained();
        let at = self.chance.below(world.pods.len());
        match choice {
            0..5 if world.named(name).is_none() && (!self.setup.retained || retained) => {
                world.fresh = fresh;
                let uid = format!("uid-{fresh}");
                world.note(|| format!("pod {name} {uid} is created on {}", node_name(node)));
                world.pods.push(Pod { uid, name: name.into(), node, phase: Phase::Live, sandboxes: Vec::new() });
            }
            5 | 6 => {
                let Some(pod) = world.pods.get_mut(at) else { return };
                if matches!(pod.phase, Phase::Live | Phase::Terminal) {
                    pod.phase = Phase::Terminating;
                    let uid = pod.uid.clone();
                    world.note(|| format!("pod {uid} is deleted"));
                }
            }
            8 => {
                let Some(pod) = world.pods.get_mut(at) else { return };
                let used = pod.sandboxes.iter().any(|sandbox| !sandbox.addresses.is_empty());
                if pod.phase == Phase::Live && used && self.chance.one_in(2) {
                    pod.phase = Phase::Terminal;
                    let uid = pod.uid.clone();
                    world.note(|| format!("pod {uid} has ended"));
                }
            }
            9 => {
                let Some(pod) = world.pods.get_mut(at) else { return };
                if pod.phase != Phase::Gone && self.chance.one_in(3) {
                    pod.phase = Phase::Gone;
                    let uid = pod.uid.clone();
                    world.note(|| format!("pod {uid} is deleted by force"));
                }
            }
            10 if self.chance.one_in(3) => {
                world.note(|| format!("the endpoint of {name} is lost"));
                world.endpoints.remove(name);
            }
            11 if retained && self.chance.one_in(20) => {
                world.note(|| "the StatefulSet is deleted".to_owned());
                world.owner = false;
            }
            _ => {}
        }
    }

    /// What kubelets, Kubernetes' own controllers and our loops do from time to time.
    fn background(&mut self) {
        let choice = self.chance.below(4);
        let process = self.chance.below(PROCESSES);
        match choice {
            0 => {
                let mut world = self.world();
                for pod in &mut world.pods {
                    if pod.phase == Phase::Terminating && pod.sandboxes.iter().all(|sandbox| sandbox.up == Up::Gone) {
                        pod.phase = Phase::Gone;
                    }
                }
                let over = |pod: &Pod| pod.phase == Phase::Gone && pod.sandboxes.iter().all(|one| one.up == Up::Gone);
                world.pods.retain(|pod| !over(pod));
                let (retained, pods) = (world.retained(), world.pods.clone());
                let gone = |uid: &str| !pods.iter().any(|pod| pod.uid == uid && pod.phase != Phase::Gone);
                // Kubernetes' collector by the ownerReference, our controller by rights: nobody keeps the name, or has anything
                // under it.
                let named = |name: &str| world.allocations.values().any(|(allocation, _)| allocation.pod.name == name);
                let over = |name: &str, endpoint: &ipam_core::Endpoint| {
                    gone(&endpoint.pod.uid) && (!retained || endpoint.goes_with.is_some() || !named(name))
                };
                let over: Vec<String> = (world.endpoints.iter().filter(|(name, (endpoint, _))| over(name, endpoint)))
                    .map(|(name, _)| name.clone())
                    .collect();
                world.endpoints.retain(|name, _| !over.contains(name));
            }
            1 if process == CONTROLLER => self.controller(),
            _ => {
                let known: Vec<Address> = self.world().index[process].known.keys().copied().collect();
                let Some(address) = known.get(self.chance.below(known.len())).copied() else { return };
                let flows = Arc::clone(&self.flows[process]);
                self.spawn(process, format!("look at {address}"), async move {
                    let _ = if process == CONTROLLER {
                        flows.collect(address, false).await
                    } else {
                        flows.reconcile(address).await
                    };
                });
            }
        }
    }

    fn controller(&mut self) {
        let known: Vec<_> = {
            let world = self.world();
            let known = world.index[CONTROLLER].known.values().filter(|_| world.setup.retained);
            known.map(|stored| (stored.value.clone(), world.named(&stored.value.pod.name).cloned())).collect()
        };
        let Some((allocation, pod)) = known.get(self.chance.below(known.len())).cloned() else { return };
        let flows = Arc::clone(&self.flows[CONTROLLER]);
        let successor = pod.filter(|pod| pod.phase == Phase::Live && node_name(pod.node) != allocation.node.name);
        match successor {
            Some(pod) => {
                let node = Node { name: node_name(pod.node), ..Node::default() };
                let to = ipam_core::Pod { namespace: "default".into(), name: pod.name, uid: pod.uid };
                let to = Successor { pod: to, node };
                self.spawn(CONTROLLER, format!("move {} to {}", allocation.address, to.node.name), async move {
                    let _ = flows.move_to(allocation.address, &to, false).await;
                });
            }
            None if allocation.held() => {
                self.spawn(CONTROLLER, format!("endpoint follows {}", allocation.address), async move {
                    let _ = flows.follow(&allocation).await;
                });
            }
            None => {}
        }
    }

    /// A process dies, between two steps of each of its flows, and starts again.
    fn die(&mut self, process: usize) {
        let gone: Vec<Task> = self.tasks.extract_if(.., |task| task.process == process).collect();
        {
            let mut world = self.world();
            world.note(|| format!("{} dies", node_name(process)));
            let steps: Vec<Step> = gone.iter().filter_map(|task| world.steps.remove(&task.id)).collect();
            drop(world);
            for step in steps {
                *self.died_in.entry(step).or_default() += 1;
            }
        }
        // What was sent may still be done.
        let open: Vec<u64> =
            self.world().ops.iter().filter(|(_, op)| op.process == process).map(|(id, _)| *id).collect();
        drop(gone);
        let mut world = self.world.lock().expect("whole");
        for id in open {
            let Some(op) = world.ops.remove(&id) else { continue };
            let write = matches!(op.ask, Ask::Reserve(_) | Ask::Advance(..) | Ask::Remove(..) | Ask::Publish(..));
            if write && self.chance.one_in(2) {
                world.late.push(op.ask);
            }
        }
        let alive: BTreeSet<u64> = world.ops.keys().copied().collect();
        for pending in &mut world.pending {
            pending.from = pending.from.filter(|from| alive.contains(from));
        }
        let cancelled = |pod: &&mut Pod| pod.node == process;
        for sandbox in world.pods.iter_mut().filter(cancelled).flat_map(|pod| &mut pod.sandboxes) {
            sandbox.asked = false;
        }
        world.relist(process);
        drop(world);
        self.flows[process] = start(&self.world, process);
    }

    /// Nothing goes wrong any more: whoever lives gets its address, and when all are gone, nothing is left.
    pub(crate) fn calm_down(&mut self) -> Result<(), String> {
        self.setup.faults = false;
        self.world().setup.faults = false;
        let served = |world: &World| {
            world.pods.iter().filter(|pod| pod.phase == Phase::Live).all(|pod| {
                pod.sandboxes.iter().any(|sandbox| sandbox.up == Up::Running && !sandbox.addresses.is_empty())
            })
        };
        self.until(served, "4: a pod that lives gets no address")?;
        {
            let mut world = self.world();
            world.owner = false;
            for pod in &mut world.pods {
                if matches!(pod.phase, Phase::Live | Phase::Terminal) {
                    pod.phase = Phase::Terminating;
                }
            }
        }
        let empty = |world: &World| {
            world.allocations.is_empty()
                && world.bound.is_empty()
                && world.endpoints.is_empty()
                && world.pods.iter().all(|pod| pod.phase == Phase::Gone)
        };
        self.until(empty, "4: something is left for ever")
    }

    fn until(&mut self, done: impl Fn(&World) -> bool, or: &str) -> Result<(), String> {
        for _ in 0..60_000 {
            if done(&self.world()) {
                return Ok(());
            }
            match self.chance.below(100) {
                0..45 => self.answer_one(),
                45..55 => self.provider(),
                55..65 => (0..PROCESSES).for_each(|process| self.world().deliver(process)),
                65..67 => self.late_write(),
                67..72 => self.time_passes(),
                72..86 => self.kubelet(),
                _ => self.background(),
            }
            self.world().check()?;
        }
        let world = self.world();
        Err(format!(
            "{or}: {:#?}\nendpoints {:?}\nbound {:?}\npods {:?}\ntasks {:?}",
            world.allocations,
            world.endpoints,
            world.bound,
            world.pods.iter().filter(|pod| pod.phase != Phase::Gone).collect::<Vec<_>>(),
            self.tasks.iter().map(|task| (&task.what, world.steps.get(&task.id))).collect::<Vec<_>>()
        ))
    }
}

fn start(world: &Arc<Mutex<World>>, process: usize) -> Arc<Flow> {
    let side = Side { world: Arc::clone(world), process };
    let releaser = format!("start-{}", world.lock().expect("whole").id());
    let node =
        if process == CONTROLLER { Node::default() } else { Node { name: node_name(process), ..Node::default() } };
    let me = Me { releaser, node, call: Duration::from_secs(50) };
    Arc::new(Flows::new(side.clone(), side.clone(), side, me))
}
