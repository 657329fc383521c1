//! An agent whose API server fails one request in five.

use crate::kubelet::stopped;
use anyhow::ensure;
use futures::future::join_all;
use proto::agent::Interface;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tests::faulty::{Fault, Faulty};
use tests::node::{Node, Nodes};
use tests::plugin::{NoInterface, Plugin, Sandbox, address};
use tests::wait;

const CALLERS: usize = 16;
const PERCENT: u32 = 20;
/// Less than all requests of an ADD may take together, so that it counts.
const BUDGET: Duration = Duration::from_secs(15);
/// For what comes and goes between agent and test.
const SLACK: Duration = Duration::from_secs(2);
/// What a flow could not end is looked at again at most a minute later, and not only when all are, five minutes later.
const FREE: Duration = Duration::from_mins(3);

/// What came of ADDs.
#[derive(Debug, Default)]
struct Tally {
    given: usize,
    again: usize,
    told: usize,
    slowest: Duration,
}

impl Tally {
    /// The address, if there is one. Ends the test at an answer that a runtime cannot use.
    fn note(&mut self, answer: Result<Interface, NoInterface>, took: Duration) -> Option<String> {
        self.slowest = self.slowest.max(took);
        match answer {
            Ok(interface) => {
                self.given += 1;
                return Some(address(&interface));
            }
            Err(NoInterface::Fault(fault)) if fault.code == 11 && !fault.msg.is_empty() => self.again += 1,
            Err(NoInterface::Fault(fault)) if fault.code > 100 && !fault.msg.is_empty() => self.told += 1,
            Err(other) => panic!("no answer that a runtime can use: {other:?}"),
        }
        None
    }
}

struct Churn<'a> {
    stage: &'a Nodes,
    node: &'a Node,
    /// Addresses of pods that were started and not stopped.
    in_use: Mutex<BTreeSet<String>>,
    tally: Mutex<Tally>,
    until: Instant,
}

impl Churn<'_> {
    /// Pods come and go, one after the other.
    async fn caller(&self, name: &str) {
        for n in 0.. {
            if Instant::now() >= self.until {
                return;
            }
            let mut pod = self.stage.pod(&format!("{name}-{n}"), &self.node.name, "one").await;
            let given = self.start(&mut pod).await;
            if let Some(given) = &given {
                let fresh = self.in_use.lock().unwrap_or_else(PoisonError::into_inner).insert(given.clone());
                assert!(fresh, "{given} is given twice");
                self.in_use.lock().unwrap_or_else(PoisonError::into_inner).remove(given);
            }
            self.stage.end(&pod.pod).await;
            stopped(&self.node.socket(), &pod).await;
        }
    }

    /// Tries until there is an address or no time.
    async fn start(&self, pod: &mut Sandbox) -> Option<String> {
        let plugin = Plugin::dial(&self.node.socket()).await.expect("it listens");
        for sandbox in 0.. {
            pod.container = format!("{}-{sandbox}", pod.pod);
            let began = Instant::now();
            let answer = plugin.add(pod, BUDGET).await;
            let took = began.elapsed();
            assert!(took < BUDGET + SLACK, "{took:?}: {answer:?}");
            if let Some(address) = self.tally.lock().unwrap_or_else(PoisonError::into_inner).note(answer, took) {
                return Some(address);
            }
            if Instant::now() >= self.until {
                break;
            }
            let _ = plugin.del(pod).await;
        }
        None
    }
}

/// Fails in these ways for so long; nothing is left then.
async fn churn(stage: &Nodes, node: &Node, proxy: &Faulty, faults: &[Fault], time: Duration, name: &str) {
    let (asked, before) = proxy.counts();
    proxy.fail(PERCENT, faults);
    let until = Instant::now() + time;
    let churn = Churn { stage, node, in_use: Mutex::default(), tally: Mutex::default(), until };
    let names: Vec<String> = (0..CALLERS).map(|n| format!("{name}-{n}")).collect();
    join_all(names.iter().map(|name| churn.caller(name))).await;
    proxy.fail(0, &[]);
    let (all, after) = proxy.counts();
    let kinds: Vec<_> = after.iter().zip(&before).map(|((fault, now), (_, before))| (*fault, now - before)).collect();
    let tally = churn.tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    let healed = Instant::now();
    wait::until(format!("all to be free after {name}"), FREE, async || {
        let held = stage.held().await;
        ensure!(held.is_empty(), "{held:?}");
        Ok(())
    })
    .await;
    stage.collect().await;
    assert!(stage.shown().await.is_empty());
    println!(
        "{name}: {tally:?}; {} requests, failed {kinds:?}; all free {:.1?} after the last fault",
        all - asked,
        healed.elapsed()
    );
    assert!(tally.given > 0, "some get through");
    for (fault, count) in kinds {
        assert_eq!(count > 0, faults.contains(&fault), "{fault:?}: {count}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_that_fails_one_request_in_five_costs_time_alone() {
    let stage = Nodes::set().await;
    stage.pool("one", "10.0.0.1-10.0.0.64").await;
    let given = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| u64::from(std::process::id()));
    println!("seed {seed}; SEED={seed} repeats it");
    let proxy = Faulty::start(stage.server.stranger().await, seed).await;
    let node = stage.node("node").await.through(&stage.server, proxy.url());
    let agent = node.ready_agent().await;
    for fault in Fault::ALL {
        let name = format!("{fault:?} alone").to_lowercase().replace(' ', "-");
        churn(&stage, &node, &proxy, &[fault], Duration::from_secs(4), &name).await;
    }
    churn(&stage, &node, &proxy, &Fault::ALL, Duration::from_secs(15), "all").await;
    let (asked, faults) = proxy.counts();
    assert!(!agent.logged().contains("panicked"), "{}", agent.logged());
    println!("seed {seed}: {asked} requests, {faults:?}");
}
