//! Everybody else: kubelets, people, the API server's and the provider's moods, time. Decides what happens next.

mod end;
mod kubelet;
mod operations;
mod others;

use crate::chance::Chance;
use crate::sides::{Side, TASK};
use crate::world::{Ask, CONTROLLER, POOL, PROCESSES, Pod, Setup, World, node_name};
use futures::task::noop_waker_ref;
use ipam_core::{Candidate, Chosen, Family, Flows, Me, NoPool, Node, Pools, Ranges, Step, Subnet, Wanted};
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
}

fn start(world: &Arc<Mutex<World>>, process: usize) -> Arc<Flow> {
    let side = Side { world: Arc::clone(world), process };
    let releaser = format!("start-{}", world.lock().expect("whole").id());
    let node =
        if process == CONTROLLER { Node::default() } else { Node { name: node_name(process), ..Node::default() } };
    let me = Me { releaser, node };
    Arc::new(Flows::new(side.clone(), side.clone(), side, me))
}
