//! Pods get addresses from pools, on nodes with the CNI plugin `spiderpool`.

use anyhow::ensure;
use serde_json::json;
use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};
use tests::cluster::{Cluster, MATCHING, SOON, in_node, networked};
use tests::multus;
use tests::process::{attempt, run};
use tests::wait;

/// A pool of just so many addresses, and an attachment whose pods get them.
fn network(addresses: u32) -> String {
    format!(
        r#"
apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderIPPool
metadata: {{name: tests}}
spec: {{subnet: 10.77.0.0/16, ips: ["10.77.0.10-10.77.0.{}"]}}
---
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {{name: bridged, namespace: default}}
spec:
  config: '{{"cniVersion":"1.0.0","name":"bridged","type":"bridge","bridge":"br-tests","ipam":{{"type":"spiderpool","default_ipv4_ippool":["tests"]}}}}'
"#,
        9 + addresses
    )
}

fn apply(manifest: &str) {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), manifest).expect("writes");
    run("kubectl", ["apply", "-f", &file.path().display().to_string()]);
}

/// Addresses in the API: whose, by pod.
fn allocated() -> BTreeSet<(String, String)> {
    let columns = "jsonpath={range .items[*]}{.spec.pod.name} {.spec.address}{\"\\n\"}{end}";
    let found = run("kubectl", ["get", "spideripallocations", "-o", columns]);
    found.lines().filter_map(|line| line.split_once(' ')).map(|(pod, at)| (pod.to_owned(), at.to_owned())).collect()
}

/// The address of an interface, in the pod's own namespace.
fn in_pod(pod: &str) -> String {
    let shown = run("kubectl", ["exec", pod, "--", "ip", "-4", "-o", "addr", "show", "net1"]);
    let cidr = shown.split_whitespace().nth(3).unwrap_or_default();
    cidr.split('/').next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_full_pool_serves_its_pods_and_gets_all_back() {
    const PODS: u32 = 20;
    let cluster = Cluster::installed().await;
    multus::install(&["--set=plugins.installIPAMCNI=true"]);
    apply(&network(PODS));
    let names: Vec<String> = (0..PODS).map(|n| format!("address-{n}")).collect();
    let begin = Instant::now();
    for name in &names {
        cluster.create(networked(name, "default/bridged")).await.expect("created");
    }
    for name in &names {
        cluster.until_phase(name, "Running").await;
    }
    println!("{PODS} pods on a pool of {PODS} run after {:.1?}", begin.elapsed());
    let held = allocated();
    let inside: BTreeSet<_> = names.iter().map(|name| (name.clone(), in_pod(name))).collect();
    assert_eq!(held, inside, "what is written is what pods have");
    assert_eq!(inside.iter().map(|(_, address)| address).collect::<BTreeSet<_>>().len(), names.len());

    // One more finds none, and says so where its user looks.
    cluster.create(networked("address-more", "default/bridged")).await.expect("created");
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
    wait::until("all addresses to be free", Duration::from_mins(6), async || {
        let left = allocated();
        ensure!(left.is_empty(), "{left:?}");
        Ok(())
    })
    .await;
    println!("all are free {:.1?} after the last pod went, an agent killed meanwhile", begin.elapsed());
    run("kubectl", ["delete", "spiderippool", "tests", "--timeout=60s"]);
    let left =
        attempt(Command::new("kubectl").args(["get", "spiderippool", "tests", "-o", &json!("name").to_string()]));
    assert!(!left.status.success(), "the pool is gone");
}
