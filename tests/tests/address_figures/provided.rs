//! What an ADD takes whose address a provider binds, beyond the provider's own time.

use crate::bare::Bare;
use crate::load::{Load, Measured, drive};
use crate::{BUDGET, CALLERS, Kept};
use provider_sim::Settings;
use std::time::Duration;
use tests::node::{NIC, Node, Nodes};
use tests::plugin::{Plugin, Sandbox};
use tests::provider::Provider;

/// The provider's own time.
const LATENCY: Duration = Duration::from_millis(20);
const PODS: usize = 1_000;

/// ADDs on both nodes, by the time of each without the provider's.
async fn adds(stage: &Nodes, nodes: &[Node; 2], count: usize, load: Load) -> Measured {
    let both = nodes.iter().map(async |node| {
        let pods = stage.generated_pods("shop-6d4cf56db6-", count / nodes.len(), &node.name, "pool").await;
        let pods: Vec<_> = pods.into_iter().map(|pod| Sandbox { master: NIC.to_owned(), ..pod }).collect();
        let mut plugins = Vec::new();
        for _ in 0..CALLERS {
            plugins.push(Plugin::dial(&node.socket()).await.expect("it listens"));
        }
        (pods, plugins)
    });
    let sides = futures::future::join_all(both).await;
    let each = sides.iter().map(async |(pods, plugins)| {
        let add = async |n: usize| {
            plugins[n % CALLERS].add(&pods[n], BUDGET).await.map(drop).map_err(|why| format!("{why:?}"))
        };
        drive(pods.len(), load, add).await
    });
    let mut done = futures::future::join_all(each).await.concat();
    for one in &mut done {
        one.took = one.took.saturating_sub(LATENCY);
    }
    Measured::of(done)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_costs_its_own_time_and_little_more() {
    let provider = Provider::with(Settings { seed: Some(1), latency: LATENCY, ..Settings::default() }).await;
    let stage = Nodes::set().await;
    let nodes = [stage.node("a").await, stage.node("b").await];
    let conf = format!("iaasNetworkProvider: {{serverUrl: '{}', httpRequestTimeout: 50s}}\n", provider.url);
    let _agents = [nodes[0].providing_agent(&conf).await, nodes[1].providing_agent(&conf).await];
    stage.pool("pool", "10.200.0.0-10.200.255.255").await;
    adds(&stage, &nodes, 100, Load::Closed(CALLERS)).await.whole();
    let bare = Bare::like(&stage, &nodes).await;
    let rate = bare.start(100, PODS, Load::Closed(CALLERS)).write().await;
    rate.whole();
    // A third of what the bare client can, with as many writes.
    let pace = rate.rate() / 3.0;
    let ours = adds(&stage, &nodes, PODS, Load::Paced(pace / 2.0)).await;
    let theirs = bare.start(101, PODS, Load::Paced(pace / 2.0)).write().await;
    ours.whole();
    theirs.whole();
    println!(
        "at {pace:.0}/s on a provider's network, without its {LATENCY:?}: p50 {:.1?}, p99 {:.1?}; bare p50 {:.1?}, p99 {:.1?}: {:.1} times",
        ours.at(50),
        ours.at(99),
        theirs.at(50),
        theirs.at(99),
        ours.at(99).as_secs_f64() / theirs.at(99).as_secs_f64()
    );
    assert_eq!(provider.bound().len(), PODS + 100, "one call for an address");
    let mut kept = Kept::default();
    let promise = "p99 of an ADD without the provider's time within three times that of the bare pair";
    kept.check(ours.at(99) <= theirs.at(99) * 3, format!("{promise}; {:.1?}", ours.at(99)));
    kept.end();
}
