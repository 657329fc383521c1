//! What was left behind, and addresses whose pod came back on another node.

use super::JSON;
use anyhow::ensure;
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use tests::answer::send;
use tests::cable::Cable;
use tests::controller::{Controller, SOON, Stage};
use tests::wait;

pub(super) const GROUP: &str = "/apis/spiderpool.spidernet.io/v2beta1";
const ORPHANS: usize = 1_000;
const LIVE: usize = 50;
const PROMISED: Duration = Duration::from_secs(30);
/// With the lease it takes half of that.
const FREED_WITHIN: Duration = Duration::from_secs(8);
/// An endpoint has to be alone for a minute.
const LONELY: Duration = Duration::from_mins(2);

fn object(kind: &str, name: &str, part: &str, value: &Value) -> Value {
    json!({"apiVersion": "spiderpool.spidernet.io/v2beta1", "kind": kind, "metadata": {"name": name}, part: value})
}

/// Nodes `n` and `m`, and `off`, whose machine is stated to be off; and a pool.
pub(super) async fn staged() -> Stage {
    let stage = Stage::set().await;
    stage.grant().await;
    stage.namespace("team-a").await;
    let taint = json!({"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"});
    for (name, taints) in [("n", json!([])), ("m", json!([])), ("off", json!([taint]))] {
        let node = json!({"metadata": {"name": name}, "spec": {"taints": taints}});
        stage.create("/api/v1/nodes", &node).await.accepted();
    }
    let spec = json!({"subnet": "10.0.0.0/16", "ips": ["10.0.0.1-10.0.100.0"]});
    stage.create(&format!("{GROUP}/spiderippools"), &object("SpiderIPPool", "p", "spec", &spec)).await.accepted();
    stage
}

pub(super) fn address(n: usize) -> String {
    format!("10.0.{}.{}", n / 250, n % 250 + 1)
}

/// Pod `team-a/NAME` of that UID has address number `n` on a node.
pub(super) async fn held(stage: &Stage, n: usize, node: &str, name: &str, uid: &Value, more: &Value) {
    let mut spec = json!({
        "pool": "p", "address": address(n), "interface": "eth0", "state": "Held", "node": {"name": node},
        "pod": {"namespace": "team-a", "name": name, "uid": uid}, "containerId": format!("c{n}"),
    });
    spec.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
    let allocation = object("SpiderIPAllocation", &address(n), "spec", &spec);
    stage.create(&format!("{GROUP}/spideripallocations"), &allocation).await.accepted();
}

/// A pod that is there, on a node; its UID.
async fn pod(stage: &Stage, name: &str, node: &str) -> Value {
    let mut pod = tests::answer::pod_with(&json!({}));
    pod["metadata"]["name"] = name.into();
    pod["spec"]["nodeName"] = node.into();
    stage.pod("team-a", &pod).await.accepted()["metadata"]["uid"].clone()
}

/// `StatefulSet` `db`, as the owner of an allocation.
async fn set_of_two(stage: &Stage) -> Value {
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let spec =
        json!({"replicas": 2, "serviceName": "db", "selector": {"matchLabels": {"a": "b"}}, "template": template});
    let set = json!({"metadata": {"name": "db"}, "spec": spec});
    let set = stage.create("/apis/apps/v1/namespaces/team-a/statefulsets", &set).await.accepted().clone();
    json!({"owner": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": set["metadata"]["uid"]}})
}

pub(super) async fn get(stage: &Stage, path: &str) -> Value {
    send(&stage.admin, "GET", path, JSON, Vec::new()).await.expect("answers").body
}

async fn addresses(stage: &Stage) -> BTreeSet<String> {
    let all = get(stage, &format!("{GROUP}/spideripallocations")).await;
    let items = all["items"].as_array().cloned().unwrap_or_default();
    items.iter().filter_map(|one| one["metadata"]["name"].as_str()).map(str::to_owned).collect()
}

async fn noted(stage: &Stage, reason: &str) -> Vec<String> {
    let events = get(stage, "/apis/events.k8s.io/v1/events").await;
    let events = events["items"].as_array().cloned().unwrap_or_default();
    let of = events.iter().filter(|event| event["reason"] == reason && event["regarding"]["name"] == "p");
    of.filter_map(|event| event["note"].as_str()).map(str::to_owned).collect()
}

#[tokio::test]
async fn a_thousand_addresses_of_a_machine_that_is_off_come_back_and_none_of_a_pod_that_is_there() {
    let stage = staged().await;
    let mut kept = BTreeSet::new();
    for n in 0..LIVE {
        let name = format!("live{n}");
        let uid = pod(&stage, &name, "off").await;
        held(&stage, n, "off", &name, &uid, &json!({})).await;
        kept.insert(address(n));
    }
    // A static pod: its kubelet knows it by the hash of its file, not by the UID of its mirror.
    let mut mirror = tests::answer::pod_with(&json!({"kubernetes.io/config.hash": "hash"}));
    mirror["metadata"]["name"] = "static".into();
    mirror["spec"]["nodeName"] = "off".into();
    stage.pod("team-a", &mirror).await.accepted();
    held(&stage, LIVE + 3, "off", "static", &json!("hash"), &json!({})).await;
    kept.insert(address(LIVE + 3));
    // Of a machine that is there; its agent sees to it.
    held(&stage, LIVE, "n", "elsewhere", &json!("gone"), &json!({})).await;
    kept.insert(address(LIVE));
    // A place of a set that has two, and one that it has not.
    let owner = set_of_two(&stage).await;
    held(&stage, LIVE + 1, "off", "db-1", &json!("gone"), &owner).await;
    kept.insert(address(LIVE + 1));
    held(&stage, LIVE + 2, "off", "db-2", &json!("gone"), &owner).await;
    let orphans = (LIVE + 4..LIVE + 4 + ORPHANS).map(|n| {
        let (stage, name) = (&stage, format!("gone{n}"));
        async move { held(stage, n, "off", &name, &name.clone().into(), &json!({})).await }
    });
    stream::iter(orphans).for_each_concurrent(16, |orphan| orphan).await;

    let controller = stage.ready_controller(&Stage::conf()).await;
    let begin = Instant::now();
    // (A list of them all, again and again, would cost more than freeing them.)
    let freed = format!("spiderpool_controller_garbage_looks_total{{outcome=\"freed\"}} {}\n", ORPHANS + 1);
    wait::until("as many to be free as were left behind", SOON, async || {
        let (_, page) = controller.page("/metrics").await?;
        let looks: Vec<_> = page.lines().filter(|line| line.contains("garbage_looks_total{")).collect();
        ensure!(page.contains(&freed), "{looks:?}");
        Ok(())
    })
    .await;
    let took = begin.elapsed();
    println!("{ORPHANS} orphans and a place that a set has not: free {took:.1?} after the controller was ready");
    assert!(took < PROMISED, "{took:?}");
    assert_eq!(addresses(&stage).await, kept);
    let notes = noted(&stage, "AddressesCollected").await;
    assert!(notes.iter().any(|note| note.starts_with("freed ") && note.contains("(team-a/")), "{notes:?}");
}

#[tokio::test]
async fn a_dry_run_says_what_it_would_free() {
    let stage = staged().await;
    held(&stage, 1, "off", "gone", &json!("gone"), &json!({})).await;
    let endpoint =
        object("SpiderEndpoint", "alone", "status", &json!({"current": {"uid": "gone", "node": "n", "ips": []}}));
    stage.create(&format!("{GROUP}/namespaces/team-a/spiderendpoints"), &endpoint).await.accepted();
    let dry = stage.ready_controller(&format!("{}gc: {{dryRun: true}}\n", Stage::conf())).await;
    wait::until("the event", SOON, async || {
        let notes = noted(&stage, "AddressesLeftBehind").await;
        let wanted = format!("would free 1 address of a pod that is gone: {} (team-a/gone)", address(1));
        ensure!(notes == [wanted], "{notes:?}\n{}", dry.logged());
        Ok(())
    })
    .await;
    assert_eq!(addresses(&stage).await, BTreeSet::from([address(1)]));
    drop(dry);

    let controller = stage.ready_controller(&Stage::conf()).await;
    wait::until("the address to be free and the endpoint to be gone", LONELY, async || {
        let left = addresses(&stage).await;
        let endpoint = get(&stage, &format!("{GROUP}/namespaces/team-a/spiderendpoints/alone")).await;
        ensure!(left.is_empty() && endpoint["code"] == 404, "{left:?} {endpoint}\n{}", controller.logged());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_address_of_a_set_follows_its_pod() {
    let stage = staged().await;
    let owner = set_of_two(&stage).await;
    let mut detached = owner.clone();
    detached["detached"] = true.into();
    let uid = pod(&stage, "db-0", "m").await;
    held(&stage, 0, "n", "db-0", &json!("before"), &detached).await;
    // Its sandbox is still there.
    pod(&stage, "db-1", "m").await;
    held(&stage, 1, "n", "db-1", &json!("before"), &owner).await;
    // Handed over by a controller that was cut off before it wrote the endpoint.
    let half = pod(&stage, "half", "m").await;
    held(&stage, 2, "m", "half", &half, &json!({"containerId": ""})).await;
    for (n, name) in [(0, "db-0"), (2, "half")] {
        let ips = json!([{"interface": "eth0", "ipv4": format!("{}/16", address(n))}]);
        let status = json!({"current": {"uid": "before", "node": "n", "ips": ips}});
        let endpoint = object("SpiderEndpoint", name, "status", &status);
        stage.create(&format!("{GROUP}/namespaces/team-a/spiderendpoints"), &endpoint).await.accepted();
    }

    let controller = stage.ready_controller(&Stage::conf()).await;
    wait::until("the address to follow", SOON, async || {
        let moved = get(&stage, &format!("{GROUP}/spideripallocations/{}", address(0))).await;
        let mut shown = Vec::new();
        for name in ["db-0", "half"] {
            let endpoint = get(&stage, &format!("{GROUP}/namespaces/team-a/spiderendpoints/{name}")).await;
            let current = &endpoint["status"]["current"];
            shown.push((current["node"].clone(), current["uid"].clone()));
        }
        let wanted = [(json!("m"), uid.clone()), (json!("m"), half.clone())];
        let held = &moved["spec"];
        ensure!(
            held["node"]["name"] == "m" && held["pod"]["uid"] == uid && shown == wanted,
            "{held} {shown:?}\n{}",
            controller.logged()
        );
        Ok(())
    })
    .await;
    let other = get(&stage, &format!("{GROUP}/spideripallocations/{}", address(1))).await;
    assert_eq!(other["spec"]["node"]["name"], "n");
}

#[tokio::test]
async fn what_a_person_asks_for_is_released_unless_its_pod_is_there() {
    let stage = staged().await;
    let owner = set_of_two(&stage).await;
    let asked = |more: &Value| {
        let mut asked = more.clone();
        asked["releaseRequest"] = json!({"by": "ann", "at": "2026-01-01T00:00:00Z", "abandon": false});
        asked
    };
    // Kept for the set, on a node that is there: nobody else frees it.
    held(&stage, 0, "n", "db-0", &json!("gone"), &asked(&owner)).await;
    let uid = pod(&stage, "live", "n").await;
    held(&stage, 1, "n", "live", &uid, &asked(&json!({}))).await;
    let mut bound = json!({"provider": {"server": "http://p", "subnet": "10.0.0.0/16", "bindId": "b"}});
    held(&stage, 2, "n", "bound", &json!("bound"), &asked(&bound)).await;
    bound["releaseRequest"] = json!({"by": "bob", "at": "2026-01-01T00:00:00Z", "abandon": true});
    held(&stage, 3, "n", "given-up", &json!("given-up"), &bound).await;
    let ips = json!([{"interface": "eth0", "ipv4": format!("{}/16", address(0))}]);
    let shown = json!({"current": {"uid": "gone", "node": "n", "ips": ips}});
    let endpoint = object("SpiderEndpoint", "db-0", "status", &shown);
    stage.create(&format!("{GROUP}/namespaces/team-a/spiderendpoints"), &endpoint).await.accepted();

    // A request is one of a person's own: no switch of the collection is about it.
    let controller = stage.ready_controller(&format!("{}gc: {{enabled: false}}\n", Stage::conf())).await;
    let answers = [
        ("AddressReleased", format!("{} of team-a/db-0 is free, as ann asked", address(0))),
        ("ReleaseDeclined", format!("{} is not released as ann asked: its pod team-a/live is there", address(1))),
        ("AddressAbandoned", format!("{} of team-a/given-up is free, as bob asked; the provider", address(3))),
    ];
    for (reason, wanted) in answers {
        wait::until(wanted.clone(), SOON, async || {
            let notes = noted(&stage, reason).await;
            ensure!(notes.len() == 1 && notes[0].starts_with(&wanted), "{notes:?}\n{}", controller.logged());
            Ok(())
        })
        .await;
    }
    assert_eq!(addresses(&stage).await, BTreeSet::from([address(1), address(2)]));
    let live = get(&stage, &format!("{GROUP}/spideripallocations/{}", address(1))).await;
    assert!(live["spec"]["releaseRequest"].is_null(), "it does not wait for the pod's end: {live}");
    let endpoint = get(&stage, &format!("{GROUP}/namespaces/team-a/spiderendpoints/db-0")).await;
    assert!(endpoint["code"] == 404 || endpoint["status"]["current"]["ips"] == json!([]), "{endpoint}");
}

async fn until_leads(controller: &Controller, leads: &str) {
    wait::until(format!("a controller that says {leads}"), SOON, async || {
        let (_, page) = controller.page("/metrics").await?;
        let says = page.lines().any(|line| line == format!("spiderpool_controller_leads {leads}"));
        ensure!(says, "{}", controller.logged());
        Ok(())
    })
    .await;
}

async fn until_free(stage: &Stage) {
    wait::until("a free address", SOON, async || {
        let left = addresses(stage).await;
        ensure!(left.is_empty(), "{left:?}");
        Ok(())
    })
    .await;
}

/// A holder that cannot renew its lease frees nothing any more: another may be about to.
#[tokio::test]
async fn without_the_lease_nothing_is_freed() {
    let stage = staged().await;
    let controller = stage.ready_controller(&Stage::conf()).await;
    until_leads(&controller, "1").await;
    // The right to the lease goes, and all others stay.
    let bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/rolebindings";
    let mut binding = get(&stage, &format!("{bindings}/spiderpool-controller")).await;
    send(&stage.admin, "DELETE", &format!("{bindings}/spiderpool-controller"), JSON, Vec::new())
        .await
        .expect("answers");
    until_leads(&controller, "0").await;
    held(&stage, 1, "off", "gone", &json!("gone"), &json!({})).await;
    assert!(tokio::time::timeout(FREED_WITHIN, until_free(&stage)).await.is_err(), "freed without the lease");
    binding["metadata"] = json!({"name": "spiderpool-controller"});
    stage.create(bindings, &binding).await.accepted();
    until_free(&stage).await;
}

/// The one that holds the lease is cut off, and another goes on. What the first still had in hand changes nothing when it is back.
#[tokio::test]
async fn a_holder_that_is_cut_off_lets_another_go_on() {
    let stage = staged().await;
    let port = stage.server.url().rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    let cable = Cable::to(port).await;
    let first = stage.controller_behind(&cable, &Stage::conf()).await;
    until_leads(&first, "1").await;
    let second = stage.ready_controller(&Stage::conf()).await;
    // Its watches have shown it to the first, or will when the cable is plugged in again.
    held(&stage, 1, "off", "gone", &json!("gone"), &json!({})).await;
    cable.pull();
    until_leads(&first, "0").await;
    until_leads(&second, "1").await;
    until_free(&stage).await;
    // The address is another pod's by the time that the first is back.
    let uid = pod(&stage, "next", "off").await;
    held(&stage, 1, "off", "next", &uid, &json!({})).await;
    cable.plug();
    drop(second);
    until_leads(&first, "1").await;
    held(&stage, 2, "off", "gone-too", &json!("gone-too"), &json!({})).await;
    wait::until("the first to free again, and nothing else", SOON, async || {
        let left = addresses(&stage).await;
        ensure!(left == BTreeSet::from([address(1)]), "{left:?}\n{}", first.logged());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_node_that_is_deleted_gives_its_addresses_back_some_time_later() {
    const GONE: Duration = Duration::from_mins(1);
    let stage = staged().await;
    let node = |name: &str| format!("/api/v1/nodes/{name}");
    let of = |uid: &Value, name: &str| json!({"node": {"name": name, "uid": uid, "machineID": format!("machine of {name}")}});
    let (n, m) = (get(&stage, &node("n")).await, get(&stage, &node("m")).await);
    held(&stage, 0, "n", "gone", &json!("gone"), &of(&n["metadata"]["uid"], "n")).await;
    let uid = pod(&stage, "live", "n").await;
    held(&stage, 1, "n", "live", &uid, &of(&n["metadata"]["uid"], "n")).await;
    held(&stage, 2, "m", "gone-too", &json!("gone-too"), &of(&m["metadata"]["uid"], "m")).await;
    let controller = stage.ready_controller(&format!("{}gc: {{nodeGoneAfter: 1m}}\n", Stage::conf())).await;
    until_leads(&controller, "1").await;
    let begin = Instant::now();
    for name in ["n", "m"] {
        send(&stage.admin, "DELETE", &node(name), JSON, Vec::new()).await.expect("answers").accepted();
    }
    // The same machine registers again; and another machine takes the name of the other.
    for (name, machine) in [("n", "another machine"), ("m", "machine of m")] {
        stage.create("/api/v1/nodes", &json!({"metadata": {"name": name}})).await.accepted();
        let status = json!({"status": {"nodeInfo": {"machineID": machine}}});
        stage.merge(&format!("{}/status", node(name)), &status).await.accepted();
    }
    wait::until("the address of the node that is gone to be free", SOON, async || {
        let left = addresses(&stage).await;
        ensure!(!left.contains(&address(0)), "{left:?}\n{}", controller.logged());
        Ok(())
    })
    .await;
    let took = begin.elapsed();
    assert!(took >= GONE, "free after {took:?}: its machine may still run");
    assert_eq!(addresses(&stage).await, BTreeSet::from([address(1), address(2)]));
}
