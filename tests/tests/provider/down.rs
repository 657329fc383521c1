//! A provider that is away when pods go.

use crate::stage::{OVER, POOL, Stage, all_started};
use anyhow::ensure;
use futures::future::join_all;
use provider_sim::{Options, Settings};
use serde_json::json;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::{Duration, Instant};
use tests::agent::free_port;
use tests::plugin::Plugin;
use tests::provider::Provider;
use tests::wait;

const PODS: usize = 20;
/// An agent waits 5 s for a provider before it answers a DEL.
const ANSWERED: Duration = Duration::from_secs(6);

#[tokio::test(flavor = "multi_thread")]
async fn pods_go_without_their_provider_and_it_is_told_when_it_is_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    let options = || Options {
        listen,
        settings: Settings { seed: Some(1), state: Some(folder.path().join("state.json")), ..Settings::default() },
        tls: None,
        token: None,
    };
    let mut stage = Stage::set(Provider::of(options()).await).await;
    let (node, _agent) = stage.node("n", "2s").await;
    let mut pods = Vec::new();
    for n in 0..PODS {
        pods.push(stage.nodes.provided(&format!("pod-{n}"), "n", POOL, json!({})).await);
    }
    let given = all_started(&node, &mut pods).await;
    stage.agree(&given).await;

    stage.provider.end();
    wait::until("nobody to listen", OVER, async || {
        let listens = tokio::net::TcpStream::connect(listen).await.is_ok();
        ensure!(!listens);
        Ok(())
    })
    .await;
    let each = pods.iter().map(async |pod| {
        stage.nodes.end(&pod.pod).await;
        let plugin = Plugin::dial(&node.socket()).await.expect("it listens");
        let began = Instant::now();
        plugin.del(pod).await.expect("a DEL does not fail for a provider");
        began.elapsed()
    });
    let mut took = join_all(each).await;
    took.sort_unstable();
    println!("{PODS} DELs without a provider: p50 {:.1?}, p99 {:.1?}", took[PODS / 2], took[PODS - 1]);
    assert!(took[PODS - 1] < ANSWERED, "{took:?}");
    assert_eq!(stage.nodes.held().await, given, "what may be bound is kept");
    assert_eq!(stage.nodes.shown().await, BTreeMap::new(), "and shown no more");

    let away = Instant::now();
    wait::until("the port to be free", OVER, async || TcpListener::bind(listen)).await;
    stage.provider = Provider::of(options()).await;
    assert_eq!(stage.provider.bound(), given, "it remembers");
    stage.agree(&BTreeMap::new()).await;
    println!("all was released {:.1?} after it was back", away.elapsed());
}
