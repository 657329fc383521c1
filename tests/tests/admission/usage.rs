//! How full pools are, and pools that are deleted while pods have addresses of them.

use super::JSON;
use anyhow::{Context, ensure};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tests::answer::send;
use tests::controller::{Controller, SOON, Stage};
use tests::wait;

const GROUP: &str = "/apis/spiderpool.spidernet.io/v2beta1";
const POOL: &str = "/apis/spiderpool.spidernet.io/v2beta1/spiderippools/p";
/// What is told at once is told within this on two busy cores; what waits would take up to 10 s.
const AT_ONCE: Duration = Duration::from_secs(5);

/// A pool of three addresses, and a controller that leads.
async fn staged() -> (Stage, Controller) {
    let stage = Stage::set().await;
    stage.grant().await;
    stage.namespace("team-a").await;
    let controller = stage.ready_controller(&Stage::conf()).await;
    // Without a webhook in force: the loop sees to it as well.
    let spec = json!({"subnet": "10.0.0.0/24", "ips": ["10.0.0.1-10.0.0.3"]});
    stage.create(&format!("{GROUP}/spiderippools"), &object("SpiderIPPool", "p", "spec", &spec)).await.accepted();
    (stage, controller)
}

fn object(kind: &str, name: &str, part: &str, value: &Value) -> Value {
    json!({"apiVersion": "spiderpool.spidernet.io/v2beta1", "kind": kind, "metadata": {"name": name}, part: value})
}

/// Pod `team-a/podN` reserves `10.0.0.N` on a node.
async fn reserve(stage: &Stage, n: u8) {
    let spec = json!({
        "pool": "p", "address": format!("10.0.0.{n}"), "interface": "eth0", "state": "Held", "node": {"name": "n"},
        "pod": {"namespace": "team-a", "name": format!("pod{n}"), "uid": format!("uid{n}")},
    });
    let allocation = object("SpiderIPAllocation", &format!("10.0.0.{n}"), "spec", &spec);
    stage.create(&format!("{GROUP}/spideripallocations"), &allocation).await.accepted();
}

/// Its endpoint shows it.
async fn publish(stage: &Stage, n: u8) {
    let ips = json!([{"interface": "eth0", "ipv4": format!("10.0.0.{n}/24")}]);
    let status = json!({"current": {"uid": format!("uid{n}"), "node": "n", "ips": ips}});
    let endpoint = object("SpiderEndpoint", &format!("pod{n}"), "status", &status);
    stage.create(&format!("{GROUP}/namespaces/team-a/spiderendpoints"), &endpoint).await.accepted();
}

async fn delete(stage: &Stage, path: &str) {
    let answer = send(&stage.admin, "DELETE", path, JSON, Vec::new()).await.expect("answers");
    assert!(answer.status < 300, "{answer:?}");
}

/// The pool once `good` says so; how long that took.
async fn until(stage: &Stage, what: &str, good: impl Fn(&Value) -> bool) -> Duration {
    let started = Instant::now();
    wait::until(what, SOON, async || {
        let answer = send(&stage.admin, "GET", POOL, JSON, Vec::new()).await?;
        ensure!(good(&answer.body), "{answer:?}");
        Ok(())
    })
    .await;
    started.elapsed()
}

fn counts(allocated: i64, total: i64) -> impl Fn(&Value) -> bool {
    move |pool| pool["status"]["allocatedIPCount"] == allocated && pool["status"]["totalIPCount"] == total
}

#[tokio::test]
async fn counts_follow_and_edges_are_told_at_once() {
    let (stage, _controller) = staged().await;
    until(&stage, "a pool that is counted and held", |pool| {
        counts(0, 3)(pool) && pool["metadata"]["finalizers"] == json!(["spiderpool.spidernet.io"])
    })
    .await;
    reserve(&stage, 1).await;
    publish(&stage, 1).await;
    let took = until(&stage, "the first address", counts(1, 3)).await;
    assert!(took < AT_ONCE, "not empty any more: {took:?}");
    // A second one is no edge, a third one is.
    reserve(&stage, 2).await;
    publish(&stage, 2).await;
    let took = until(&stage, "the second address", counts(2, 3)).await;
    assert!(took > Duration::from_secs(4), "at intervals: {took:?}");
    reserve(&stage, 3).await;
    publish(&stage, 3).await;
    let took = until(&stage, "a full pool", counts(3, 3)).await;
    assert!(took < AT_ONCE, "full: {took:?}");
    stage.merge(POOL, &json!({"spec": {"ips": ["10.0.0.1-10.0.0.9"]}})).await.accepted();
    let took = until(&stage, "more addresses", counts(3, 9)).await;
    assert!(took < AT_ONCE, "other addresses: {took:?}");
}

#[tokio::test]
async fn a_deletion_waits_says_for_whom_and_is_finished() {
    let (stage, controller) = staged().await;
    until(&stage, "a pool that is held", |pool| counts(0, 3)(pool) && pool["metadata"]["finalizers"].is_array()).await;
    // Of others, and kept.
    let condition = json!({"type": "Adopted", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    stage.merge(&format!("{POOL}/status"), &json!({"status": {"conditions": [condition]}})).await.accepted();
    reserve(&stage, 1).await;
    reserve(&stage, 2).await;
    delete(&stage, POOL).await;
    let waits = |pool: &Value, text: &str| {
        let conditions = pool["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|one| one["type"] == "Adopted")
            && conditions.iter().any(|one| {
                one["type"] == "AddressesReleased"
                    && one["status"] == "False"
                    && one["message"].as_str().is_some_and(|message| message.starts_with(text))
            })
    };
    let two = "2 addresses are still held, by pods team-a/pod1, team-a/pod2: delete these pods";
    until(&stage, "a deletion that waits", |pool| waits(pool, two)).await;
    wait::until("the event", SOON, async || {
        let events = send(&stage.admin, "GET", "/apis/events.k8s.io/v1/events", JSON, Vec::new()).await?;
        let events = events.body["items"].as_array().cloned().unwrap_or_default();
        let told = |event: &&Value| event["reason"] == "DeletionWaits" && event["regarding"]["name"] == "p";
        let event = events.iter().find(told).with_context(|| controller.logged())?;
        ensure!(event["note"].as_str().is_some_and(|note| note.starts_with(two)), "{event}");
        Ok(())
    })
    .await;
    delete(&stage, &format!("{GROUP}/spideripallocations/10.0.0.1")).await;
    let one = "1 address is still held, by pods team-a/pod2";
    until(&stage, "one address that is left", |pool| waits(pool, one)).await;
    delete(&stage, &format!("{GROUP}/spideripallocations/10.0.0.2")).await;
    until(&stage, "a pool that is gone", |pool| pool["code"] == 404).await;
}
