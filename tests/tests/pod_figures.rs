//! Prints how long many pods take until they run with addresses of a pool, beside pods whose addresses the community's
//! `host-local` gives, and what the agent of their node needs meanwhile.

use anyhow::ensure;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tests::addresses::{apply, bridge, node_network, of_pools, on, pool, remove_node_network, until_free};
use tests::cluster::{Cluster, MATCHING, in_node, sleeping};
use tests::process::run;
use tests::wait;

const PODS: usize = 200;
const POOLS: usize = 100;
/// Ours by theirs, of the medians.
const PROMISED: f64 = 1.10;
const PROMISED_KIB: u64 = 40 << 10;

/// From `apply` to all of them running, on one node; then they are gone again. `meanwhile` is looked at when they run.
async fn start(cluster: &Cluster, app: &str, ipam: Value, prefix: &str, meanwhile: impl FnOnce()) -> Duration {
    node_network(cluster, &[MATCHING], bridge(&format!("br-{app}")), ipam, prefix).await;
    let mut template = on(MATCHING, sleeping(""));
    template["metadata"] = json!({"labels": {"app": app}});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": app},
        "spec": {"replicas": PODS, "selector": {"matchLabels": {"app": app}}, "template": template},
    });
    let begin = Instant::now();
    apply(&deployment.to_string());
    run("kubectl", ["rollout", "status", &format!("deployment/{app}"), "--timeout=10m"]);
    let took = begin.elapsed();
    meanwhile();
    run("kubectl", ["delete", "deployment", app]);
    wait::until(format!("the end of the pods of {app}"), Duration::from_mins(8), async || {
        let left = cluster.phases(app).await?;
        ensure!(left.is_empty(), "{} are left", left.len());
        Ok(())
    })
    .await;
    until_free(&["10.90."], Duration::from_mins(2)).await;
    took
}

fn pairs() -> usize {
    std::env::var("PAIRS").ok().and_then(|pairs| pairs.parse().ok()).unwrap_or(3)
}

fn median(spans: &mut [Duration]) -> f64 {
    spans.sort();
    spans[spans.len() / 2].as_secs_f64()
}

#[tokio::test]
async fn many_pods_with_addresses_of_a_pool() {
    let cluster = Cluster::installed().await;
    for n in 1..POOLS {
        pool(
            &format!("figures-{n}"),
            &format!("10.{}.0.0/16", 100 + n),
            &format!("10.{}.0.1-10.{0}.9.250", 100 + n),
            Value::Null,
        );
    }
    pool("figures", "10.90.0.0/16", "10.90.0.10-10.90.0.209", Value::Null);
    let theirs_ipam = json!({"type": "host-local", "ranges": [[{"subnet": "10.91.0.0/16"}]]});

    let agent = in_node(MATCHING, "pgrep -f '^/usr/bin/spiderpool-agent daemon'");
    let memory = || -> u64 {
        let status = in_node(MATCHING, &format!("grep VmRSS /proc/{agent}/status"));
        status.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number")
    };
    let (mut ours, mut theirs, mut rss) = (Vec::new(), Vec::new(), 0);
    let pairs = pairs();
    for pair in 1..=pairs {
        ours.push(start(&cluster, "ours", of_pools(&["figures"]), "10.90.", || rss = rss.max(memory())).await);
        theirs.push(start(&cluster, "theirs", theirs_ipam.clone(), "10.91.", || ()).await);
        println!(
            "pair {pair}, {PODS} pods from apply to Running: ours {:.1?}, host-local {:.1?}",
            ours[pair - 1],
            theirs[pair - 1]
        );
    }
    remove_node_network(&[MATCHING]);
    let ratio = median(&mut ours) / median(&mut theirs);
    println!("medians of {pairs} pairs: ours is {ratio:.3} of host-local's (promised: {PROMISED})");
    println!("agent, memory with {PODS} pods and {POOLS} pools: {rss} KiB (promised: {PROMISED_KIB})");
    assert!(ratio <= PROMISED && rss <= PROMISED_KIB, "promised");
}
