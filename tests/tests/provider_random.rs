//! Random operations against a provider that fails one call in five: nothing leaks, nothing is bound twice.
//!
//! Three agents and a controller run the real flows and the real HTTP client against a provider in this process, over values
//! instead of an API server. `RANDOM_SEEDS` says how many seeds, `RANDOM_SEED` with which to begin, `RANDOM_OPERATIONS` how
//! many operations each. (The order of what happens is the machine's: a seed gives the same operations, not the same run.)

// What runs beside the operations ends with the test; nothing of ours has to notice.
#![allow(clippy::disallowed_methods)]

#[path = "provider_random/mischief.rs"]
mod mischief;
#[path = "provider_random/process.rs"]
mod process;
#[path = "provider_random/side.rs"]
mod side;
#[path = "provider_random/slot.rs"]
mod slot;
#[path = "provider_random/world.rs"]
mod world;

use futures::StreamExt;
use futures::future::join_all;
use process::Process;
use provider_sim::Settings;
use slot::{Slot, Stage};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tests::provider::Provider;
use tests::wait;
use tokio_util::task::TaskTracker;
use world::{Held, Shared};

const NODES: usize = 3;
/// Names of pods of their own, and of the StatefulSet.
const NAMES: (usize, usize) = (72, 24);
/// By seed: some addresses are always being released, and of the few others each is given again at once; or there are plenty.
const POOLS: [u32; 2] = [300, 120];
const FAULTS: f64 = 0.2;
/// Seeds that run at the same time.
const AT_ONCE: usize = 2;
/// Between two looks of an agent, or of the controller; the collector of Kubernetes is faster.
const LOOK: Duration = Duration::from_millis(200);
const COLLECTS: u32 = 4;
/// Some releases fail often, and pause longer each time.
const OVER: Duration = Duration::from_mins(2);

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_leaks_and_nothing_is_bound_twice() {
    let (seeds, first) = (setting("RANDOM_SEEDS", 2), setting("RANDOM_SEED", 1));
    let each = (first..first + seeds).map(|seed| run(u64::try_from(seed).expect("small")));
    let ended: Vec<_> = futures::stream::iter(each).buffer_unordered(AT_ONCE).collect().await;
    let broken = ended.concat();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// What was broken.
async fn run(seed: u64) -> Vec<String> {
    let settings = Settings { seed: Some(seed), latency: Duration::from_millis(3), ..Settings::default() };
    let provider = Provider::with(settings).await;
    for rules in mischief::rules(FAULTS) {
        provider.faults(&rules);
    }
    let shared = Shared::new(provider.cloud.clone(), NAMES.1);
    let node = |n: usize| {
        let name = format!("node-{n}");
        let process =
            Process::start(&shared, &provider.url, Some(&name), seed * 100 + u64::try_from(n).expect("small"));
        (name, process)
    };
    let stage = Arc::new(Stage {
        shared: shared.clone(),
        url: provider.url.clone(),
        agents: (0..NODES).map(node).collect(),
        controller: Process::start(&shared, &provider.url, None, seed * 100 + 99),
        pool: if seed.is_multiple_of(2) { POOLS[1] } else { POOLS[0] },
        left: AtomicUsize::new(setting("RANDOM_OPERATIONS", 2000)),
        done: Mutex::default(),
        going: TaskTracker::new(),
    });
    tokio::select! {
        broken = live(seed, &stage, &provider) => broken,
        never = look(&stage) => match never {},
    }
}

/// Pods come and go until the operations are used up; then everything has to become quiet, with pods and without.
async fn live(seed: u64, stage: &Arc<Stage>, provider: &Provider) -> Vec<String> {
    let (began, shared) = (Instant::now(), &stage.shared);
    let mut slots: Vec<Slot> = (0..NAMES.0 + NAMES.1)
        .map(|n| {
            let retained = n >= NAMES.0;
            let name = if retained { format!("db-{}", n - NAMES.0) } else { format!("pod-{n}") };
            Slot::new(stage, name, retained, seed * 1000 + u64::try_from(n).expect("small"))
        })
        .collect();
    tokio::join!(join_all(slots.iter_mut().map(Slot::churn)), kill(stage, seed));
    let churned = began.elapsed();
    let (hits, calls) = (count_faults(provider), provider.cloud.records(0).last().map_or(0, |one| one.seq));
    provider.cloud.clear_faults();
    join_all(slots.iter_mut().map(|slot| {
        let live = slot.retained || slot.chance.bool();
        slot.settle(live)
    }))
    .await;
    stage.going.close();
    stage.going.wait().await;
    agree(seed, "in the end", shared).await;
    shared.world().replicas = 0;
    join_all(slots.iter_mut().map(|slot| slot.settle(false))).await;
    agree(seed, "without pods", shared).await;
    let done = stage.done.lock().unwrap_or_else(PoisonError::into_inner).clone();
    println!(
        "seed {seed}: {done:?}; {hits} of {calls} calls failed; churned {churned:.1?}, all quiet after {:.1?}",
        began.elapsed()
    );
    let mut broken = std::mem::take(&mut shared.world().broken);
    let foreign = provider.cloud.foreign_releases();
    if foreign > 0 {
        broken.push(format!("{foreign} releases in the name of a pod that has not the binding"));
    }
    broken.iter().map(|what| format!("RANDOM_SEED={seed}: {what}")).collect()
}

fn count_faults(provider: &Provider) -> u64 {
    provider.cloud.faults().iter().map(|one| one.hits).sum()
}

/// What nobody asks for.
async fn look(stage: &Stage) -> Infallible {
    loop {
        for _ in 0..COLLECTS {
            tokio::time::sleep(LOOK / COLLECTS).await;
            stage.shared.collect_endpoints();
        }
        stage.agents.values().for_each(Process::reconcile);
        stage.controller.collect();
    }
}

/// Agents and the controller die, as long as there are operations.
async fn kill(stage: &Stage, seed: u64) {
    let mut chance = fastrand::Rng::with_seed(seed);
    loop {
        tokio::time::sleep(Duration::from_millis(chance.u64(100..800))).await;
        if stage.left.load(Ordering::Relaxed) == 0 || !stage.takes("kills") {
            return;
        }
        let agent = stage.agents.values().nth(chance.usize(0..=NODES));
        agent.unwrap_or(&stage.controller).die();
    }
}

/// Allocations, endpoints, the cloud and pods say the same, and no NIC has one VLAN twice.
async fn agree(seed: u64, when: &str, shared: &Shared) {
    wait::until(format!("all to agree {when} (RANDOM_SEED={seed})"), OVER, async || {
        let [held, shown, bound, used] = shared.sets();
        let all = shared.world().allocations.len();
        let mut wrong = Vec::new();
        for (what, found) in [("held", held), ("shown", shown), ("bound", bound)] {
            if found != used {
                wrong.push(format!("{what}: {}", differ(&found, &used)));
            }
        }
        if all != used.len() {
            wrong.push(format!("{all} allocations for {} pods", used.len()));
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
    })
    .await;
    let mut world = shared.world();
    let (mut vlans, mut twice) = (BTreeMap::new(), Vec::new());
    for (name, endpoint) in &world.endpoints {
        for vlan in endpoint.value.interfaces.iter().filter_map(|interface| interface.vlan) {
            let node = &endpoint.value.node;
            if let Some(other) = vlans.insert((node, vlan), name) {
                twice.push(format!("{other} and {name} have VLAN {vlan} on {node}"));
            }
        }
    }
    world.broken.extend(twice);
}

fn differ(found: &Held, expected: &Held) -> String {
    let of = |one: &Held, other: &Held| -> Vec<String> {
        let more = one.iter().filter(|(address, pod)| other.get(*address) != Some(pod));
        more.map(|(address, pod)| format!("{address} {pod}")).collect()
    };
    format!("too many {:?}, too few {:?}", of(found, expected), of(expected, found))
}
