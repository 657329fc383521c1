//! A provider binds the addresses: pods have what it bound, and it is told before an address is free.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use tests::addresses::{allocated, apply, on, pool, published, until_free};
use tests::cluster::{CHANGING, Cluster, MATCHING, SOON, networked};
use tests::process::run;
use tests::trial::{self, Link};
use tests::wait;

const NODES: [&str; 2] = [MATCHING, CHANGING];
const PODS: usize = 10;
const PREFIX: &[&str] = &["10.85."];

/// By the pods themselves. The stand-in for the plugin `vlan` writes the VLAN into the alias.
fn of_pods(names: &[&str]) -> anyhow::Result<BTreeSet<Link>> {
    let look = "cd /sys/class/net/net1 && cat address ifalias && ip -o -4 addr show net1";
    let link = |pod: &&str| {
        let text = run("kubectl", ["exec", pod, "--", "sh", "-c", look]);
        let [mac, alias, addresses] = text.lines().collect::<Vec<_>>()[..] else { anyhow::bail!("{text}") };
        let vlan = alias.strip_prefix("VLAN ").context("no VLAN")?.parse()?;
        let address = addresses.split_whitespace().nth(3).and_then(|cidr| cidr.split('/').next());
        let (pod, mac) = ((*pod).to_owned(), mac.to_owned());
        Ok(Link { pod, address: address.context("no address")?.to_owned(), mac, vlan })
    };
    names.iter().map(link).collect()
}

/// By the endpoints.
fn of_endpoints() -> BTreeSet<Link> {
    let all: Value = serde_json::from_str(&run("kubectl", ["get", "spiderendpoints", "-o", "json"])).expect("JSON");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let link = |object: &Value| {
        let shown = &object["status"]["current"]["ips"][0];
        let address = text(&shown["ipv4"]).split('/').next().unwrap_or_default().to_owned();
        let (pod, mac) = (text(&object["metadata"]["name"]), text(&shown["mac"]));
        Link { pod, address, mac, vlan: shown["vlan"].as_i64().unwrap_or_default() }
    };
    all["items"].as_array().into_iter().flatten().map(link).collect()
}

fn network() {
    pool("provided", "10.85.0.0/24", "10.85.0.10-10.85.0.19", json!({"gateway": "10.85.0.1"}));
    apply(
        &json!({
            "apiVersion": "spiderpool.spidernet.io/v2beta1", "kind": "SpiderMultusConfig",
            "metadata": {"name": "provided", "namespace": "default"},
            "spec": {"cniType": "vlan", "vlan": {"master": ["eth1"], "ippools": {"ipv4": ["provided"]}}},
        })
        .to_string(),
    );
    run("kubectl", ["wait", "--for=condition=Ready", "spidermultusconfig/provided", "--timeout=1m"]);
}

#[tokio::test]
async fn pods_have_what_a_provider_bound_until_it_is_told() {
    const TAKES: Duration = Duration::from_secs(1);
    let cluster = Cluster::installed().await;
    cluster.label(CHANGING, "key", Some("value")).await;
    trial::install();
    network();
    let begin = Instant::now();
    let names: Vec<String> = (0..PODS).map(|n| format!("provided-{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for (name, node) in names.iter().zip(NODES.iter().cycle()) {
        cluster.create(on(node, networked(name, "default/provided"))).await.expect("created");
    }
    for name in &names {
        cluster.until_phase(name, "Running").await;
    }
    println!("{PODS} pods with addresses of a provider run in {:.1?}", begin.elapsed());

    let bound = trial::bound(&cluster).await.expect("it answers");
    assert_eq!(of_pods(&names).expect("interfaces"), bound, "in the pods, and by the provider");
    assert_eq!(of_endpoints(), bound, "by the endpoints, and by the provider");
    let macs: BTreeSet<_> = bound.iter().map(|link| &link.mac).collect();
    assert_eq!((bound.len(), macs.len()), (PODS, PODS));

    // Half of them go. The provider is slow, so that an address that did not wait for it would be seen.
    let slow = json!([{"operation": "release", "times": PODS / 2, "fault": {"kind": "slow", "ms": TAKES.as_millis()}}]);
    trial::faults(&cluster, &slow).await;
    let (first, rest) = names.split_at(PODS / 2);
    cluster.delete_pods(first).await;
    let kept: BTreeSet<Link> = bound.iter().filter(|link| rest.contains(&&*link.pod)).cloned().collect();
    wait::until("what is left at provider, allocations and endpoints", SOON, async || {
        let left = trial::bound(&cluster).await?;
        ensure!(left == kept, "bound: {left:?}");
        let of_pool = allocated().into_iter().filter(|(.., ip)| ip.starts_with(PREFIX[0]));
        let held: BTreeSet<String> = of_pool.map(|(_, pod, _)| pod).collect();
        ensure!(held.iter().eq(rest), "held: {held:?}");
        ensure!(of_endpoints() == kept, "endpoints: {:?}", of_endpoints());
        Ok::<_, anyhow::Error>(())
    })
    .await;
    let told = trial::releases(&cluster).await.expect("it answers");
    assert_eq!(told.len(), first.len(), "each once: {told:?}");
    for (address, at) in &told {
        let freed = trial::freed(address).expect("in the audit log");
        let answered = at + u64::try_from(TAKES.as_millis()).expect("small");
        assert!(freed >= answered, "{address}: told at {at}, answered at {answered}, freed at {freed}");
    }

    // It dies while it releases the others. Their pods go nevertheless; their addresses wait for it.
    trial::faults(&cluster, &json!([{"operation": "release", "fault": {"kind": "hang"}}])).await;
    let mut dying = Box::pin(cluster.delete_pods(rest));
    let asked = wait::until("it to be asked", SOON, async || {
        let releases = trial::releases(&cluster).await?.len();
        ensure!(releases > told.len(), "{releases} releases");
        Ok::<_, anyhow::Error>(())
    });
    tokio::select! {
        () = asked => {}
        () = &mut dying => panic!("pods were gone before the provider was asked"),
    }
    let begin = Instant::now();
    trial::kill(&NODES).await;
    dying.await;
    println!("the pods are gone {:.1?} after their provider was killed", begin.elapsed());
    let waits = allocated().into_iter().filter(|(.., ip)| ip.starts_with(PREFIX[0])).count();
    assert_eq!(waits, rest.len(), "none is free before the provider has answered");

    trial::revive();
    let begin = Instant::now();
    until_free(PREFIX, Duration::from_mins(2)).await;
    println!("all addresses are free {:.1?} after it came back", begin.elapsed());
    wait::until("the endpoints to be gone", SOON, async || {
        let shown: Vec<_> = published().into_iter().filter(|(.., ip)| ip.starts_with(PREFIX[0])).collect();
        ensure!(shown.is_empty(), "{shown:?}");
        Ok(())
    })
    .await;
    let told: BTreeSet<String> =
        trial::releases(&cluster).await.expect("it answers").into_iter().map(|one| one.0).collect();
    let of_rest: BTreeSet<String> = kept.into_iter().map(|link| link.address).collect();
    assert_eq!(told, of_rest, "it was told of each");
    assert!(trial::bound(&cluster).await.expect("it answers").is_empty());
    cluster.label(CHANGING, "key", None).await;
    run("kubectl", ["delete", "spidermultusconfig", "provided"]);
    run("kubectl", ["delete", "spiderippool", "provided", "--timeout=60s"]);
}
