//! Pools of exactly as many addresses as there are pods.

use anyhow::ensure;
use serde_json::json;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use tests::addresses::{
    apply, attachment, bridge, node_network, of_pools, pool, remove_node_network, until_consistent, until_free,
};
use tests::cluster::{CHANGING, Cluster, MATCHING, OTHER, SOON, in_node, networked, sleeping};
use tests::multus;
use tests::process::run;
use tests::wait;

#[tokio::test]
async fn a_full_pool_serves_its_pods_and_gets_all_back() {
    const PODS: u32 = 20;
    let cluster = Cluster::installed().await;
    multus::install(&[]);
    pool("few", "10.77.0.0/16", &format!("10.77.0.10-10.77.0.{}", 9 + PODS), json!({}));
    attachment("few", bridge("br-few"), of_pools(&["few"]));
    let names: Vec<String> = (0..PODS).map(|n| format!("address-{n}")).collect();
    for name in &names {
        cluster.create(networked(name, "default/few")).await.expect("created");
    }
    for name in &names {
        cluster.until_phase(name, "Running").await;
    }
    let held = until_consistent(&cluster, &["10.77."], SOON).await;
    assert_eq!(held.len(), names.len());

    // One more finds none, and says so where its user looks.
    cluster.create(networked("address-more", "default/few")).await.expect("created");
    wait::until("the pod's events to say why", SOON, async || {
        let events = run("kubectl", ["describe", "pod", "address-more"]);
        ensure!(events.contains("are used out"), "{events}");
        Ok(())
    })
    .await;
    // One goes: its address is the other's.
    let (first, rest) = names.split_first().expect("some");
    cluster.delete_pods(&[first]).await;
    cluster.until_phase("address-more", "Running").await;
    let mut all: Vec<&str> = rest.iter().map(String::as_str).collect();
    all.push("address-more");

    // The agent goes at once, and its pods with it; what is left behind is found.
    in_node(MATCHING, "kill -9 $(pgrep -f '^/usr/bin/spiderpool-agent daemon')");
    cluster.delete_pods(&all).await;
    let begin = Instant::now();
    until_free(&["10.77."], Duration::from_mins(6)).await;
    println!("all are free {:.1?} after the last pod went, an agent killed meanwhile", begin.elapsed());
    run("kubectl", ["delete", "spiderippool", "few", "--timeout=60s"]);
}

/// Without Multus, which two cores cannot start so often at once.
#[tokio::test]
async fn two_hundred_pods_have_a_pool_of_two_hundred() {
    const PODS: usize = 200;
    const NODES: [&str; 3] = [MATCHING, CHANGING, OTHER];
    const PREFIX: &[&str] = &["10.79."];
    let cluster = Cluster::installed().await;
    pool("exact", "10.79.0.0/16", "10.79.0.10-10.79.0.209", json!({}));
    node_network(&cluster, &NODES, bridge("br-exact"), of_pools(&["exact"]), PREFIX[0]).await;
    until_free(PREFIX, SOON).await;
    let mut template = sleeping("");
    template["metadata"] = json!({"labels": {"app": "exact"}});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "exact"},
        "spec": {
            "replicas": PODS, "selector": {"matchLabels": {"app": "exact"}}, "template": template,
            "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "25%"}},
        },
    });
    let rolled_out = |what: &str, begin: Instant| {
        run("kubectl", ["rollout", "status", "deployment/exact", "--timeout=10m"]);
        println!("{PODS} pods on a pool of {PODS}: {what} in {:.1?}", begin.elapsed());
    };
    let begin = Instant::now();
    apply(&deployment.to_string());
    rolled_out("from apply to Running", begin);
    let held = until_consistent(&cluster, PREFIX, SOON).await;
    let distinct: BTreeSet<_> = held.iter().map(|(.., address)| address).collect();
    assert_eq!((held.len(), distinct.len()), (PODS, PODS));

    let begin = Instant::now();
    run("kubectl", ["rollout", "restart", "deployment/exact"]);
    rolled_out("a rolling restart", begin);
    let held = until_consistent(&cluster, PREFIX, SOON).await;
    assert_eq!(held.len(), PODS);

    let begin = Instant::now();
    run("kubectl", ["delete", "deployment", "exact"]);
    until_free(PREFIX, Duration::from_mins(6)).await;
    println!("all are free in {:.1?}", begin.elapsed());
    remove_node_network(&NODES);
    run("kubectl", ["delete", "spiderippool", "exact", "--timeout=60s"]);
}
