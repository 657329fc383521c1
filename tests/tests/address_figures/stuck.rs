//! A thousand callers whose pool is stuck, and the callers of another pool.

use crate::load::{Load, Measured, drive};
use crate::{BUDGET, Kept};
use anyhow::ensure;
use futures::future::{join_all, select};
use std::pin::pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tests::faulty::Faulty;
use tests::node::{Node, Nodes};
use tests::plugin::{NoInterface, Plugin, Sandbox};
use tests::wait;

const STUCK: u32 = 1_000;
const CALM: usize = 300;
/// A second.
const PACE: f64 = 20.0;
/// A kubelet tries each pod again after more than that, and not all of them at the same moment.
const AGAIN: Duration = Duration::from_secs(5);
const SOON: Duration = Duration::from_mins(2);

/// How the ADDs of a pool went that is not stuck.
async fn calm(stage: &Nodes, node: &Node) -> Measured {
    let pods = stage.generated_pods("calm-", CALM, &node.name, "calm").await;
    let plugin = Plugin::dial(&node.socket()).await.expect("it listens");
    let done = drive(pods.len(), Load::Paced(PACE), async |n| {
        plugin.add(&pods[n], BUDGET).await.map(drop).map_err(|why| format!("{why:?}"))
    });
    let done = Measured::of(done.await);
    done.whole();
    done
}

/// Asks for an address that it does not get, again and again.
async fn caller(node: &Node, mut pod: Sandbox, pause: Duration, refused: &AtomicUsize, texts: &Mutex<Vec<String>>) {
    let plugin = Plugin::dial(&node.socket()).await.expect("it listens");
    for n in 1.. {
        pod.container = format!("{}-{n}", pod.pod);
        match plugin.add(&pod, BUDGET).await {
            Err(NoInterface::Fault(fault)) if [11, 103].contains(&fault.code) => {
                let text = format!("{} {}", fault.code, fault.msg);
                let mut texts = texts.lock().expect("whole");
                if !texts.contains(&text) {
                    texts.push(text);
                }
            }
            other => panic!("no answer to expect: {other:?}"),
        }
        refused.fetch_add(1, Ordering::Relaxed);
        let _ = plugin.del(&pod).await;
        tokio::time::sleep(pause).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stuck_pool_is_nobody_elses_trouble() {
    let stage = Nodes::set().await;
    let proxy = Faulty::start(stage.server.stranger().await, 0).await;
    let node = stage.node("c").await.through(&stage.server, proxy.url());
    let agent = node.ready_agent().await;
    stage.pool("calm", "10.1.0.0-10.1.255.255").await;
    stage.pool("full", "10.2.0.1").await;
    stage.pool("hangs", "10.3.0.0-10.3.255.255").await;
    proxy.hold("\"pool\":\"hangs\"");
    let first = stage.pod("first", "c", "full").await;
    Plugin::dial(&node.socket()).await.expect("it listens").add(&first, BUDGET).await.expect("the only one");

    let before = calm(&stage, &node).await;
    println!("{PACE}/s alone: p50 {:.1?}, p99 {:.1?}", before.at(50), before.at(99));
    let mut kept = Kept::default();
    for pool in ["full", "hangs"] {
        let pods = stage.generated_pods(&format!("{pool}-"), STUCK as usize, "c", pool).await;
        let (refused, texts) = (AtomicUsize::new(0), Mutex::default());
        let pauses = (0..).map(|n| AGAIN + AGAIN * 2 * n / STUCK);
        let callers = pods.into_iter().zip(pauses).map(|(pod, pause)| caller(&node, pod, pause, &refused, &texts));
        let callers = pin!(join_all(callers));
        let measured = pin!(async {
            wait::until("all that find no room to be refused once", SOON, async || {
                let refused = refused.load(Ordering::Relaxed);
                ensure!(refused + 288 >= STUCK as usize, "{refused}");
                Ok(())
            })
            .await;
            calm(&stage, &node).await
        });
        let futures::future::Either::Right((with, _)) = select(callers, measured).await else {
            panic!("callers do not end")
        };
        println!(
            "{PACE}/s beside {STUCK} callers of a pool that {pool}: p50 {:.1?}, p99 {:.1?}; they were told {:?}",
            with.at(50),
            with.at(99),
            texts.lock().expect("whole")
        );
        let crowded =
            format!("11 not yet: too many requests wait for pool {pool}: 32 are at work, and as many wait as may, 256");
        assert!(texts.lock().expect("whole").contains(&crowded), "{crowded}");
        kept.check(with.at(99) <= before.at(99) * 2, format!("another pool's p99 unchanged beside one that {pool}"));
    }
    println!("most memory that the agent had: {:.1} MiB", agent.process.most_memory() / 1024.0);
    kept.end();
}
