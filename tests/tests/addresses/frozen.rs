//! A node whose kubelet and agent stand still, while its containers run on.

use anyhow::ensure;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::json;
use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;
use tests::addresses::{attachment, bridge, inside, of_pools, on, pool, until_consistent, until_free};
use tests::cluster::{CHANGING, Cluster, OTHER, SOON, in_node, networked};
use tests::multus;
use tests::process::{attempt, run};
use tests::wait;

const OURS: &[&str] = &["10.84."];

/// Goes on when this value ends.
struct Frozen(&'static str);

impl Frozen {
    fn begin(node: &'static str) -> Self {
        in_node(node, &signal("STOP"));
        Self(node)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        // A test that fails must not leave it so, and its own reason counts.
        let line = signal("CONT");
        let goes_on = attempt(Command::new("dev/cluster").args(["node-exec", self.0, "--", "sh", "-c", &line]));
        assert!(goes_on.status.success() || std::thread::panicking(), "{} stays frozen: {goes_on:?}", self.0);
    }
}

fn signal(signal: &str) -> String {
    let all = "$(pgrep -x kubelet) $(pgrep -f '^/usr/bin/spiderpool-agent daemon')";
    format!("set -- {all} && [ $# -ge 2 ] && kill -{signal} \"$@\"")
}

/// Addresses that are in some namespace of a pod; each once.
fn used() -> BTreeSet<String> {
    let all = inside(OURS);
    let each: BTreeSet<_> = all.iter().cloned().collect();
    assert_eq!(each.len(), all.len(), "an address is in two namespaces: {all:?}");
    each
}

#[tokio::test]
async fn what_runs_on_a_frozen_node_keeps_its_address() {
    let cluster = Cluster::installed().await;
    multus::install(&[]);
    pool("frozen", "10.84.0.0/24", "10.84.0.10-10.84.0.12", json!({}));
    attachment("frozen", bridge("br-frozen"), of_pools(&["frozen"]));
    cluster.create(on(CHANGING, networked("frozen-0", "default/frozen"))).await.expect("created");
    cluster.until_phase("frozen-0", "Running").await;
    let first = used();
    assert_eq!(first.len(), 1, "{first:?}");

    let frozen = Frozen::begin(CHANGING);
    // By force: the API knows nothing of it any more, and its container runs.
    cluster.pods().delete("frozen-0", &DeleteParams::default().grace_period(0)).await.expect("deleted");
    for name in ["frozen-1", "frozen-2", "frozen-3"] {
        cluster.create(on(OTHER, networked(name, "default/frozen"))).await.expect("created");
    }
    let told = || {
        let events = |name: &str| run("kubectl", ["describe", "pod", name]).contains("are used out");
        ["frozen-1", "frozen-2", "frozen-3"].into_iter().filter(|name| events(name)).count()
    };
    wait::until("one of three pods to be told that two addresses were all", SOON, async || {
        let (told, used) = (told(), used());
        ensure!(told == 1 && used.len() == 3 && used.is_superset(&first), "{told} told, in use {used:?}");
        Ok(())
    })
    .await;
    let nodes = Api::<Node>::all(cluster.client());
    wait::until("the node to be lost", SOON, async || {
        let conditions = nodes.get(CHANGING).await?.status.and_then(|status| status.conditions).unwrap_or_default();
        let lost = conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "Unknown");
        ensure!(lost, "{conditions:?}");
        Ok(())
    })
    .await;
    assert!(used().is_superset(&first), "a node that is lost may run on");
    assert_eq!(told(), 1);

    drop(frozen);
    for name in ["frozen-1", "frozen-2", "frozen-3"] {
        cluster.until_phase(name, "Running").await;
    }
    assert_eq!(until_consistent(&cluster, OURS, SOON).await.len(), 3);
    assert!(used().is_superset(&first), "it is the third pod's now");
    cluster.delete_pods(&["frozen-1", "frozen-2", "frozen-3"]).await;
    until_free(OURS, Duration::from_mins(2)).await;
    run("kubectl", ["delete", "spiderippool", "frozen", "--timeout=60s"]);
}
