//! Five agents on one pool that has just enough.

use crate::kubelet::{BUDGET, started, stopped};
use anyhow::ensure;
use futures::StreamExt;
use futures::future::join_all;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tests::agent::Agent;
use tests::node::{Node, Nodes};
use tests::plugin::{NoInterface, Sandbox};
use tests::wait;

const AGENTS: usize = 5;
const CALLERS: usize = 16;
const ADDRESSES: usize = 250;
const SOON: Duration = Duration::from_mins(2);
/// All are looked at every five minutes.
const LOOK: Duration = Duration::from_mins(6);

/// A pod that runs.
struct Pod {
    node: usize,
    sandbox: Sandbox,
    address: String,
}

/// Every pod gets its address, from as many callers as a node has.
async fn start(nodes: &[Node], pods: Vec<(usize, Sandbox)>, mut each: impl FnMut()) -> Vec<Pod> {
    let of_node = |at: usize| pods.iter().filter(move |(node, _)| *node == at).cloned();
    let callers = nodes.iter().enumerate().map(|(at, node)| {
        let begin = of_node(at).map(move |(_, mut sandbox)| async move {
            let address = started(&node.socket(), &mut sandbox, |_| ()).await;
            Pod { node: at, sandbox, address }
        });
        futures::stream::iter(begin).buffer_unordered(CALLERS)
    });
    let mut started = futures::stream::select_all(callers.map(Box::pin));
    let mut all = Vec::new();
    while let Some(pod) = started.next().await {
        each();
        all.push(pod);
    }
    all
}

/// Pods go, and their sandboxes after them.
async fn stop(stage: &Nodes, nodes: &[Node], pods: &[Pod]) {
    let each = pods.iter().map(|pod| async {
        stage.end(&pod.sandbox.pod).await;
        stopped(&nodes[pod.node].socket(), &pod.sandbox).await;
    });
    futures::stream::iter(each).buffer_unordered(AGENTS * CALLERS).collect::<Vec<()>>().await;
}

fn by_address(pods: &[Pod]) -> BTreeMap<String, String> {
    let given: BTreeMap<_, _> = pods.iter().map(|pod| (pod.address.clone(), pod.sandbox.pod.clone())).collect();
    assert_eq!(given.len(), pods.len(), "no address twice");
    given
}

/// What was answered, what is held, and what is shown are the same.
async fn agree(stage: &Nodes, pods: &[Pod]) {
    let given = by_address(pods);
    assert_eq!(stage.held().await, given, "what is held is what was given");
    assert_eq!(stage.shown().await, given, "what is shown is what was given");
}

#[tokio::test(flavor = "multi_thread")]
async fn five_agents_share_a_pool_to_its_last_address() {
    let stage = Nodes::set().await;
    stage.pool("one", "10.0.0.1-10.0.0.250").await;
    let mut nodes = Vec::new();
    for n in 0..AGENTS {
        nodes.push(stage.node(&format!("node-{n}")).await);
    }
    let mut agents: Vec<Agent> = join_all(nodes.iter().map(Node::ready_agent)).await;
    let pods = stage.pods("first", ADDRESSES, &nodes, "one").await;
    let begin = Instant::now();
    let mut first = start(&nodes, pods, || ()).await;
    println!("{ADDRESSES} pods on a pool of {ADDRESSES}, {AGENTS} agents x {CALLERS} callers: {:.1?}", begin.elapsed());
    agree(&stage, &first).await;

    let more = stage.pod("more", &nodes[0].name, "one").await;
    match nodes[0].plugin().await.add(&more, BUDGET).await {
        Err(NoInterface::Fault(fault)) => {
            let text = "all addresses of IPv4 are used out in one (250 addresses)";
            assert_eq!((fault.code, fault.msg.as_str()), (103, text));
        }
        other => panic!("{other:?}"),
    }
    stage.end("more").await;

    let gone = first.split_off(ADDRESSES / 2);
    stop(&stage, &nodes, &gone).await;
    assert_eq!(stage.held().await, by_address(&first), "each DEL frees its own, before it is answered");
    stage.collect().await;
    agree(&stage, &first).await;

    // Pods come and go everywhere, and one agent goes without a word in the middle.
    let coming = stage.pods("second", ADDRESSES / 2, &nodes, "one").await;
    let leaving = first.split_off(ADDRESSES / 4);
    let half = coming.len() / 2;
    let seen = AtomicUsize::new(0);
    let (one, _) = agents.split_first_mut().expect("five");
    let kill = async {
        wait::until("the middle", SOON, async || {
            let seen = seen.load(Ordering::Relaxed);
            ensure!(seen >= half, "{seen} of {half}");
            Ok(())
        })
        .await;
        one.process.signal("KILL");
        wait::until("its end", SOON, async || one.process.ended().ok_or("it runs")).await;
        println!("an agent was killed when {} of {} pods had started", seen.load(Ordering::Relaxed), half * 2);
        *one = nodes[0].ready_agent().await;
    };
    let count = || {
        seen.fetch_add(1, Ordering::Relaxed);
    };
    let (second, (), ()) = tokio::join!(start(&nodes, coming, count), stop(&stage, &nodes, &leaving), kill);
    stage.collect().await;
    first.extend(second);
    // A DEL that met an agent which had not read its allocations yet is left to that agent's first look.
    let given = by_address(&first);
    wait::until("what the killed agent left to be free", LOOK, async || {
        let held = stage.held().await;
        ensure!(held == given, "{} are held, {} were given", held.len(), given.len());
        Ok(())
    })
    .await;
    agree(&stage, &first).await;
    stop(&stage, &nodes, &first).await;
    stage.collect().await;
    agree(&stage, &[]).await;
}
