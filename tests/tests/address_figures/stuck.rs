//! A thousand callers whose pool is stuck, and the callers of another pool.

use crate::load::{Load, Measured, drive};
use crate::{BUDGET, promised};
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

const STUCK: usize = 1_000;
const CALM: usize = 300;
/// A second.
const PACE: f64 = 20.0;
/// A kubelet lets a pod wait longer than that before it tries again.
const AGAIN: Duration = Duration::from_secs(10);
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
async fn caller(node: &Node, mut pod: Sandbox, refused: &AtomicUsize, texts: &Mutex<Vec<String>>) {
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
        tokio::time::sleep(AGAIN).await;
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
    for pool in ["full", "hangs"] {
        let pods = stage.generated_pods(&format!("{pool}-"), STUCK, "c", pool).await;
        let (refused, texts) = (AtomicUsize::new(0), Mutex::default());
        let callers = pin!(join_all(pods.into_iter().map(|pod| caller(&node, pod, &refused, &texts))));
        let measured = pin!(async {
            wait::until("all that find no room to be refused once", SOON, async || {
                let refused = refused.load(Ordering::Relaxed);
                ensure!(refused + 288 >= STUCK, "{refused}");
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
        if promised() {
            assert!(with.at(99) <= before.at(99) * 2, "promised: another pool's p99 stays what it is");
        }
    }
    println!("most memory that the agent had: {:.1} MiB", agent.process.most_memory() / 1024.0);
}
