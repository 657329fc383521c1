//! Agent and controller are killed while a slow provider fails now and then.

use crate::stage::{BUDGET, OVER, POOL, Stage, conf};
use futures::future::join_all;
use provider_sim::Settings;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tests::agent::Agent;
use tests::node::Node;
use tests::plugin::{Plugin, Sandbox, address};
use tests::process::Running;
use tests::provider::Provider;
use tests::wait;

const KILLS: usize = 10;
/// Every fifth of them is the controller's.
const OF_CONTROLLER: usize = 5;
const CALLERS: usize = 24;
/// Between two tries of a kubelet, less patient than real ones.
const AGAIN: Duration = Duration::from_millis(400);
const LATENCY: Duration = Duration::from_millis(300);

fn rules() -> serde_json::Value {
    let faults = [
        json!({"kind": "status", "code": 500}),
        json!({"kind": "status-after", "code": 503}),
        json!({"kind": "cut-after", "reset": true}),
        json!({"kind": "late", "ms": 900}),
        json!({"kind": "hang-after"}),
    ];
    // Together more than one call in ten.
    json!(faults.map(|fault| json!({"probability": 0.03, "fault": fault})))
}

async fn kill(running: &mut Running) {
    running.signal("KILL");
    wait::until("its end", OVER, async || running.ended().ok_or("it runs")).await;
}

struct Churn<'a> {
    stage: &'a Stage,
    node: &'a Node,
    over: AtomicBool,
    in_use: Mutex<BTreeSet<String>>,
    pods: AtomicUsize,
}

impl Churn<'_> {
    /// Pods come and go, one after the other. The last one stays.
    async fn caller(&self, caller: usize) -> (String, Sandbox) {
        let in_use = || self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
        for n in 0.. {
            let name = format!("pod-{caller}-{n}");
            let mut pod = self.stage.nodes.provided(&name, "n", POOL, json!({})).await;
            let given = self.start(&mut pod).await;
            self.pods.fetch_add(1, Ordering::Relaxed);
            assert!(in_use().insert(given.clone()), "{given} is given twice");
            if self.over.load(Ordering::Relaxed) {
                return (given, pod);
            }
            in_use().remove(&given);
            self.end(&pod).await;
        }
        unreachable!("there are numbers enough")
    }

    async fn start(&self, pod: &mut Sandbox) -> String {
        let (began, mut tries, mut last) = (Instant::now(), 0, String::new());
        while began.elapsed() < OVER {
            tries += 1;
            pod.container = format!("{}-{tries}", pod.pod);
            if let Ok(plugin) = Plugin::dial(&self.node.socket()).await {
                match plugin.add(pod, BUDGET).await {
                    Ok(interface) => return address(&interface),
                    Err(why) => last = format!("{why:?}"),
                }
                let _ = plugin.del(pod).await;
            }
            tokio::time::sleep(AGAIN).await;
        }
        panic!("{} gets no address: {last}", pod.pod);
    }

    async fn end(&self, pod: &Sandbox) {
        self.stage.nodes.end(&pod.pod).await;
        wait::until(format!("a DEL of {}", pod.pod), OVER, async || {
            let plugin = Plugin::dial(&self.node.socket()).await.map_err(|error| error.to_string())?;
            plugin.del(pod).await.map_err(|status| status.to_string())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_and_controllers_that_are_killed_leave_equal_sets() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7);
    let mut chance = fastrand::Rng::with_seed(seed);
    let settings = Settings { seed: Some(seed), latency: LATENCY, ..Settings::default() };
    let stage = Stage::set(Provider::with(settings).await).await;
    let lines = conf(&stage.provider, "2s");
    let (node, mut agent) = stage.node("n", "2s").await;
    let mut controller = stage.nodes.controller(&lines).await;
    stage.provider.faults(&rules());
    let began = Instant::now();
    let churn = Churn {
        stage: &stage,
        node: &node,
        over: AtomicBool::default(),
        in_use: Mutex::default(),
        pods: AtomicUsize::default(),
    };
    let killing = async {
        for n in 1..=KILLS {
            tokio::time::sleep(Duration::from_millis(chance.u64(600..1400))).await;
            if n % OF_CONTROLLER == 0 {
                kill(&mut controller.process).await;
                controller = stage.nodes.controller_again(&lines).await;
            } else {
                kill(&mut agent.process).await;
                agent = node.providing_agent(&lines).await;
            }
        }
        churn.over.store(true, Ordering::Relaxed);
    };
    let (pods, ()) = tokio::join!(join_all((0..CALLERS).map(|caller| churn.caller(caller))), killing);
    let hits: u64 = stage.provider.cloud.faults().iter().map(|one| one.hits).sum();
    stage.provider.cloud.clear_faults();
    let churned = began.elapsed();
    let given: BTreeMap<String, String> =
        pods.iter().map(|(address, pod)| (address.clone(), pod.pod.clone())).collect();
    stage.agree(&given).await;
    let quiet = began.elapsed();
    join_all(pods.iter().map(|(_, pod)| churn.end(pod))).await;
    stage.agree(&BTreeMap::new()).await;
    let calls = stage.provider.cloud.records(0).len();
    println!(
        "SEED={seed}: {KILLS} kills in {churned:.1?}, {} pods, {hits} of {calls} calls failed; equal sets {:.1?} later",
        churn.pods.load(Ordering::Relaxed),
        quiet.saturating_sub(churned)
    );
    assert!(hits > 0);
    no_panic(&agent);
}

fn no_panic(agent: &Agent) {
    let log = agent.logged();
    assert!(!log.contains("panicked"), "{log}");
}
