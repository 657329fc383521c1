//! The quick start on nodes that make VLANs: under `dev/cluster exec` of a cluster of `dev/cluster up --nodes 1 --vlan 2`.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Instant;
use tests::addresses::{allocated, apply, on, pool};
use tests::cluster::{Cluster, SOON, dev_cluster, in_node, networked};
use tests::process::{attempt, run};
use tests::trial;
use tests::wait;

/// Guests.
const NODES: [&str; 2] = ["vlan1", "vlan2"];
/// A guest has one virtual CPU.
const PODS: usize = 10;
/// Of all pools here.
const PREFIX: &str = "10.86.";

/// Address, MAC and VLAN, by whomever is asked.
type Links = BTreeSet<(String, String, i64)>;

/// The chart with Multus and a provider. What is not on every node is on the one that nobody cuts off.
async fn stage() -> Cluster {
    let cordon = |verb: &str| run("kubectl", [&[verb], &NODES[..]].concat());
    cordon("cordon");
    let cluster = Cluster::installed().await;
    trial::install_chart();
    cordon("uncordon");
    for node in NODES {
        cluster.label(node, "key", Some("value")).await;
        cluster.until_allocatable(node, "spidernet.io/eth1-nic", Some("10k")).await;
    }
    cluster
}

/// A network of pods on eth1; of the provider, if it names no VLAN.
fn network(name: &str, vlan: Option<u16>, ips: &str) {
    pool(name, "10.86.0.0/16", ips, json!({}));
    let mut of_vlan = json!({"master": ["eth1"], "ippools": {"ipv4": [name]}});
    if let Some(vlan) = vlan {
        of_vlan["vlanID"] = vlan.into();
    }
    let config = json!({
        "apiVersion": "spiderpool.spidernet.io/v2beta1", "kind": "SpiderMultusConfig",
        "metadata": {"name": name, "namespace": "default"}, "spec": {"cniType": "vlan", "vlan": of_vlan},
    });
    apply(&config.to_string());
    run("kubectl", ["wait", "--for=condition=Ready", &format!("spidermultusconfig/{name}"), "--timeout=1m"]);
}

fn remove_network(name: &str) {
    run("kubectl", ["delete", "spidermultusconfig", name]);
    run("kubectl", ["delete", "spiderippool", name, "--timeout=60s"]);
}

/// VLAN links in the namespaces of pods, by the kernels of the guests.
fn in_kernels() -> Links {
    let look = "for ns in $(ls /var/run/netns); do ip -n $ns -d -j addr show type vlan || true; done";
    let mut links = Links::new();
    for text in NODES.map(|node| in_node(node, look)).iter().flat_map(|text| text.lines()) {
        let Ok(Value::Array(all)) = serde_json::from_str(text) else { continue };
        for link in all.iter().filter(|link| link["ifname"].is_string()) {
            let mac = link["address"].as_str().unwrap_or_default().to_owned();
            let vlan = link["linkinfo"]["info_data"]["id"].as_i64().unwrap_or_default();
            let addresses = link["addr_info"].as_array().into_iter().flatten();
            let address = addresses.filter(|one| one["family"] == "inet").find_map(|one| one["local"].as_str());
            links.insert((address.unwrap_or_default().to_owned(), mac, vlan));
        }
    }
    links
}

/// By the endpoints.
fn shown() -> Links {
    let all: Value = serde_json::from_str(&run("kubectl", ["get", "spiderendpoints", "-o", "json"])).expect("JSON");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of = |one: &Value| {
        let address = text(&one["ipv4"]).split('/').next().unwrap_or_default().to_owned();
        (address, text(&one["mac"]), one["vlan"].as_i64().unwrap_or_default())
    };
    let endpoints = all["items"].as_array().into_iter().flatten();
    endpoints.filter_map(|one| one["status"]["current"]["ips"].as_array()).flatten().map(of).collect()
}

async fn bound(cluster: &Cluster) -> anyhow::Result<Links> {
    Ok(trial::bound(cluster).await?.into_iter().map(|link| (link.address, link.mac, link.vlan)).collect())
}

/// Waits until allocations, endpoints, provider and kernels say the same of so many.
async fn until_consistent(cluster: &Cluster, count: usize) -> Links {
    wait::until(format!("the same {count} links everywhere"), SOON, async || {
        let bound = bound(cluster).await?;
        ensure!(bound.len() == count, "bound: {bound:?}");
        let shown = shown();
        ensure!(shown == bound, "shown {shown:?}, bound {bound:?}");
        let kernels = in_kernels();
        ensure!(kernels == bound, "in kernels {kernels:?}, bound {bound:?}");
        let held: BTreeSet<String> = allocated().into_iter().map(|(.., ip)| ip).collect();
        ensure!(held.iter().eq(bound.iter().map(|(ip, ..)| ip)), "allocated {held:?}, bound {bound:?}");
        Ok::<_, anyhow::Error>(bound)
    })
    .await
}

/// The address of a pod on the network that it names.
fn address_of(pod: &str) -> anyhow::Result<String> {
    let mine = allocated().into_iter().find(|(_, name, ip)| name == pod && ip.starts_with(PREFIX));
    Ok(mine.context("none yet")?.2)
}

fn reaches(pod: &str, address: &str) -> bool {
    let ping = ["exec", pod, "--", "ping", "-c", "1", "-W", "2", address];
    attempt(std::process::Command::new("kubectl").args(ping)).status.success()
}

#[tokio::test]
async fn pods_of_one_vlan_reach_each_other_across_nodes_and_those_of_another_do_not() {
    let cluster = stage().await;
    network("vlan-100", Some(100), "10.86.1.1-10.86.1.9");
    network("vlan-200", Some(200), "10.86.2.1-10.86.2.9");
    let pods = [("here", NODES[0], "vlan-100"), ("there", NODES[1], "vlan-100"), ("apart", NODES[1], "vlan-200")];
    for (pod, node, network) in pods {
        cluster.create(on(node, networked(pod, &format!("default/{network}")))).await.expect("created");
    }
    for (pod, ..) in pods {
        cluster.until_phase(pod, "Running").await;
    }
    let [here, there, apart] = pods.map(|(pod, ..)| address_of(pod).expect("it runs"));
    wait::until("one of the other node to answer", SOON, async || {
        ensure!(reaches("here", &there) && reaches("there", &here), "no answer");
        Ok(())
    })
    .await;
    assert!(!reaches("here", &apart) && !reaches("apart", &there), "another VLAN, on the same NICs");
    let vlans: BTreeSet<(String, i64)> = in_kernels().into_iter().map(|(ip, _, vlan)| (ip, vlan)).collect();
    assert_eq!(vlans, [(here, 100), (there, 100), (apart, 200)].into());
    cluster.delete_pods(&pods.map(|(pod, ..)| pod)).await;
    // Sandboxes go a moment after their pods.
    wait::until("the links to be gone", SOON, async || {
        ensure!(in_kernels().is_empty(), "{:?}", in_kernels());
        Ok(())
    })
    .await;
    remove_network("vlan-100");
    remove_network("vlan-200");
}

#[tokio::test]
async fn what_the_provider_bound_is_what_the_kernels_have() {
    let cluster = stage().await;
    network("provided", None, "10.86.3.1-10.86.3.30");
    // Its first answers are no.
    trial::faults(&cluster, &json!([{"operation": "allocate", "times": 2, "fault": {"kind": "status", "code": 500}}]))
        .await;
    let names: Vec<String> = (0..PODS).map(|n| format!("provided-{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let begin = Instant::now();
    for name in &names {
        cluster.create(on(NODES[0], networked(name, "default/provided"))).await.expect("created");
    }
    for name in &names {
        cluster.until_phase(name, "Running").await;
    }
    println!("{PODS} pods of one guest run in {:.1?}, the provider's first two answers were no", begin.elapsed());
    let links = until_consistent(&cluster, PODS).await;
    let vlans: BTreeSet<i64> = links.iter().map(|(.., vlan)| *vlan).collect();
    assert_eq!(vlans.len(), PODS, "one VLAN each: {links:?}");
    cluster.delete_pods(&names).await;
    until_consistent(&cluster, 0).await;
    remove_network("provided");
}

#[tokio::test]
async fn a_pod_of_a_stateful_set_is_bound_anew_on_another_node() {
    let cluster = stage().await;
    network("moving", None, "10.86.4.1-10.86.4.9");
    let mut template = networked("", "default/moving");
    template["metadata"]["labels"] = json!({"app": "moving"});
    template["spec"]["nodeSelector"] = json!({"moving": "here"});
    let set = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "moving", "namespace": "default"},
        "spec": {"replicas": 1, "serviceName": "moving", "selector": {"matchLabels": {"app": "moving"}}, "template": template},
    });
    cluster.label(NODES[0], "moving", Some("here")).await;
    apply(&set.to_string());
    wait::until("the first pod", SOON, async || {
        ensure!(cluster.phase("moving-0").await? == "Running", "not yet");
        Ok::<_, anyhow::Error>(())
    })
    .await;
    let before = until_consistent(&cluster, 1).await;
    cluster.label(NODES[0], "moving", None).await;
    cluster.label(NODES[1], "moving", Some("here")).await;
    run("kubectl", ["delete", "pod", "moving-0"]);
    wait::until("it to run elsewhere", SOON, async || {
        let pod = cluster.pods().get("moving-0").await?;
        let node = pod.spec.and_then(|spec| spec.node_name);
        ensure!(node.as_deref() == Some(NODES[1]), "it is on {node:?}");
        ensure!(cluster.phase("moving-0").await? == "Running", "not yet");
        Ok::<_, anyhow::Error>(())
    })
    .await;
    let after = until_consistent(&cluster, 1).await;
    let addresses = |links: &Links| links.iter().map(|(ip, ..)| ip.clone()).collect::<Vec<_>>();
    assert_eq!(addresses(&before), addresses(&after), "it keeps its address");
    assert_eq!(trial::releases(&cluster).await.expect("it answers").len(), 1, "which was taken from the first node");
    run("kubectl", ["delete", "statefulset", "moving"]);
    until_consistent(&cluster, 0).await;
    cluster.label(NODES[1], "moving", None).await;
    remove_network("moving");
}

/// A kubelet that starts before its device plugins are there refuses the pods that it had (`UnexpectedAdmissionError`); who made
/// them makes others. What the first ones had goes, and what the others have is right.
#[tokio::test]
async fn after_a_power_cut_all_have_what_the_provider_bound() {
    const COUNT: usize = 3;
    let cluster = stage().await;
    network("cut", None, "10.86.5.1-10.86.5.9");
    let mut template = on(NODES[1], networked("", "default/cut"));
    template["metadata"]["labels"] = json!({"app": "cut"});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "cut", "namespace": "default"},
        "spec": {"replicas": COUNT, "selector": {"matchLabels": {"app": "cut"}}, "template": template},
    });
    apply(&deployment.to_string());
    run("kubectl", ["rollout", "status", "deployment/cut", "--timeout=3m"]);
    let before = until_consistent(&cluster, COUNT).await;
    dev_cluster(&["node-kill", NODES[1]]);
    assert_eq!(bound(&cluster).await.expect("it answers"), before, "nobody was told of anything");
    let begin = Instant::now();
    dev_cluster(&["node-start", NODES[1]]);
    wait::until("the node's NIC to be advertised", SOON, async || {
        ensure!(cluster.allocatable(NODES[1], "spidernet.io/eth1-nic").await.as_deref() == Some("10k"), "not yet");
        Ok::<_, anyhow::Error>(())
    })
    .await;
    run("kubectl", ["rollout", "status", "deployment/cut", "--timeout=3m"]);
    until_consistent(&cluster, COUNT).await;
    println!("{COUNT} pods have their links {:.1?} after the power", begin.elapsed());
    run("kubectl", ["delete", "deployment", "cut"]);
    until_consistent(&cluster, 0).await;
    remove_network("cut");
}
