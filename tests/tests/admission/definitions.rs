//! From attachments to NetworkAttachmentDefinitions: made, mended, left alone, and by one controller at a time.

use super::vlan;
use anyhow::ensure;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tests::answer::{Answer, send};
use tests::api_server::{CONTROLLER, Request};
use tests::controller::{Controller, SOON, Stage};
use tests::wait;

const SMC: &str = "/apis/spiderpool.spidernet.io/v2beta1/namespaces/spiderpool/spidermultusconfigs";
const NAD: &str = "/apis/k8s.cni.cncf.io/v1/namespaces/spiderpool/network-attachment-definitions";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/spiderpool-controller";

/// An API server that knows Multus's kind, and a controller that leads.
async fn staged() -> (Stage, Controller) {
    let stage = Stage::set().await;
    stage.grant().await;
    stage.namespace("spiderpool").await;
    stage.multus().await;
    let controller = stage.ready_controller(&Stage::conf()).await;
    (stage, controller)
}

async fn get(stage: &Stage, path: &str) -> Option<Value> {
    let answer = send(&stage.admin, "GET", path, super::JSON, Vec::new()).await.expect("answers");
    (answer.status == 200).then_some(answer.body)
}

async fn delete(stage: &Stage, path: &str) -> Answer {
    send(&stage.admin, "DELETE", path, super::JSON, Vec::new()).await.expect("answers")
}

/// The definition once `good` says so; how long that took.
async fn until(stage: &Stage, name: &str, good: impl Fn(&Value) -> bool) -> (Value, Duration) {
    let started = Instant::now();
    let found = wait::until(format!("the definition {name}"), SOON, async || {
        let found = get(stage, &format!("{NAD}/{name}")).await;
        let found = found.ok_or_else(|| anyhow::anyhow!("there is none"))?;
        ensure!(good(&found), "{found}");
        Ok(found)
    })
    .await;
    (found, started.elapsed())
}

fn config(definition: &Value) -> Value {
    serde_json::from_str(definition["spec"]["config"].as_str().expect("a text")).expect("JSON")
}

/// Reason and status of the attachment's condition.
async fn until_condition(stage: &Stage, name: &str, kind: &str, status: &str, reason: &str) -> String {
    wait::until(format!("{kind}={status} of {name} for {reason}"), SOON, async || {
        let object = get(stage, &format!("{SMC}/{name}")).await.unwrap_or_default();
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions.iter().find(|condition| condition["type"] == kind).cloned().unwrap_or_default();
        ensure!(found["status"] == status && found["reason"] == reason, "{object}");
        Ok(found["message"].as_str().unwrap_or_default().to_owned())
    })
    .await
}

/// What the controllers wrote, but for their lease.
fn writes(stage: &Stage) -> Vec<Request> {
    let requests = stage.server.requests_of(CONTROLLER).into_iter();
    let write = |request: &Request| ["create", "update", "patch", "delete"].contains(&&*request.verb);
    requests.filter(|request| write(request) && !request.uri.contains("/leases")).collect()
}

/// Must reach: attachment to definition within 500 ms, the slowest of 20.
#[tokio::test]
async fn a_definition_follows_its_attachment() {
    let (stage, _controller) = staged().await;
    stage.attachment("spiderpool", "first", vlan("eth1")).await;
    let (found, _) = until(&stage, "first", |_| true).await;
    let wanted = json!({"cniVersion": "0.3.1", "name": "first", "plugins": [{
        "type": "vlan", "master": "eth1", "vlanMode": "auto",
        "ipam": {"type": "spiderpool", "default_ipv4_ippool": ["pool-eth1"]},
    }]});
    assert_eq!(config(&found), wanted);
    let owner = &found["metadata"]["ownerReferences"][0];
    assert_eq!(
        (&owner["kind"], &owner["name"], &owner["controller"]),
        (&"SpiderMultusConfig".into(), &"first".into(), &true.into())
    );
    until_condition(&stage, "first", "Ready", "True", "Written").await;

    let mut slowest = Duration::ZERO;
    for n in 0..20 {
        let name = format!("new-{n}");
        let started = Instant::now();
        stage.attachment("spiderpool", &name, vlan("eth1")).await;
        until(&stage, &name, |_| true).await;
        slowest = slowest.max(started.elapsed());
    }
    println!("attachment created -> definition there: at most {slowest:?} of 20");
    assert!(slowest < Duration::from_millis(500), "{slowest:?}");

    // A VLAN id makes it manual, and the definition says so.
    stage.merge(&format!("{SMC}/first"), &json!({"spec": {"vlan": {"vlanID": 7}}})).await.accepted();
    until(&stage, "first", |found| config(found)["plugins"][0]["vlanId"] == 7).await;
    let plugin = config(&until(&stage, "first", |_| true).await.0)["plugins"][0].clone();
    assert_eq!((&plugin["vlanMode"], &plugin["vlanId"]), (&"manual".into(), &7.into()));
}

/// Whoever changes or deletes what was made, it is as it was before within a moment; what others added stays.
#[tokio::test]
async fn drift_is_mended() {
    let (stage, _controller) = staged().await;
    let path = format!("{NAD}/net");
    stage.attachment("spiderpool", "net", vlan("eth1")).await;
    stage.merge(&format!("{SMC}/net"), &json!({"metadata": {"annotations": {"a/b": "c"}}})).await.accepted();
    until(&stage, "net", |found| found["metadata"]["annotations"]["a/b"] == "c").await;
    let mut slowest = Duration::ZERO;
    for round in 0..5 {
        let change = json!({"metadata": {"annotations": {"a/b": "wrong", "mine": "stays"}}, "spec": {"config": format!("{{\"round\": {round}}}")}});
        stage.merge(&path, &change).await.accepted();
        let good = |found: &Value| {
            config(found)["name"] == "net" && found["metadata"]["annotations"] == json!({"a/b": "c", "mine": "stays"})
        };
        slowest = slowest.max(until(&stage, "net", good).await.1);
        delete(&stage, &path).await.accepted();
        slowest = slowest.max(until(&stage, "net", |found| config(found)["name"] == "net").await.1);
    }
    println!("definition changed or deleted -> as before: at most {slowest:?} of 10");
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
    // An annotation that goes from the attachment goes from the definition; another's does not.
    stage.merge(&path, &json!({"metadata": {"annotations": {"mine": "stays"}}})).await.accepted();
    stage.merge(&format!("{SMC}/net"), &json!({"metadata": {"annotations": {"a/b": null}}})).await.accepted();
    until(&stage, "net", |found| found["metadata"]["annotations"] == json!({"mine": "stays"})).await;
    let events = get(&stage, "/apis/events.k8s.io/v1/namespaces/spiderpool/events").await.expect("events").to_string();
    assert!(events.contains("DefinitionUpdated") && events.contains("Written"), "{events}");
}

/// Nothing foreign is overwritten, and the attachment says what is in the way.
#[tokio::test]
async fn a_foreign_definition_is_left_alone() {
    let (stage, _controller) = staged().await;
    let foreign = json!({"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "metadata": {"name": "taken"}, "spec": {"config": "{\"type\":\"mine\"}"}});
    stage.create(NAD, &foreign).await.accepted();
    stage.attachment("spiderpool", "taken", vlan("eth1")).await;
    let message = until_condition(&stage, "taken", "Ready", "False", "NameTaken").await;
    assert!(message.contains("spiderpool/taken") && message.contains("Delete it"), "{message}");
    assert_eq!(config(&until(&stage, "taken", |_| true).await.0), json!({"type": "mine"}));
    let before = writes(&stage).into_iter().filter(|request| request.uri.contains("network-attachment")).count();
    assert_eq!(before, 0, "nobody even tried");
    delete(&stage, &format!("{NAD}/taken")).await.accepted();
    until(&stage, "taken", |found| config(found)["name"] == "taken").await;
    until_condition(&stage, "taken", "Ready", "True", "Written").await;
}

/// An attachment takes another name: the old definition goes once the new one is there.
#[tokio::test]
async fn a_definition_under_an_old_name_goes() {
    let (stage, _controller) = staged().await;
    let named = json!({"apiVersion": "spiderpool.spidernet.io/v2beta1", "kind": "SpiderMultusConfig", "metadata": {"name": "own", "annotations": {"multus.spidernet.io/cr-name": "other"}}, "spec": vlan("eth1")});
    stage.create(SMC, &named).await.accepted();
    assert_eq!(config(&until(&stage, "other", |_| true).await.0)["name"], "other");
    stage
        .merge(&format!("{SMC}/own"), &json!({"metadata": {"annotations": {"multus.spidernet.io/cr-name": null}}}))
        .await
        .accepted();
    until(&stage, "own", |_| true).await;
    wait::until("the old definition to go", SOON, async || {
        ensure!(get(&stage, &format!("{NAD}/other")).await.is_none(), "it is there");
        Ok(())
    })
    .await;
    until_condition(&stage, "own", "Ready", "True", "Written").await;
}

/// Multus may come later; plugins that no node has are left out and told.
#[tokio::test]
async fn what_is_missing_is_told() {
    let stage = Stage::set().await;
    stage.grant().await;
    stage.namespace("spiderpool").await;
    let controller = stage.ready_controller(&Stage::conf()).await;
    let mut spec = vlan("eth1");
    spec["enableCoordinator"] = true.into();
    stage.attachment("spiderpool", "early", spec).await;
    until_condition(&stage, "early", "Ready", "False", "MultusNotInstalled").await;
    stage.multus().await;
    let (found, took) = until(&stage, "early", |_| true).await;
    println!("Multus installed -> definition: {took:?}");
    let types = |found: &Value| {
        let plugins = config(found)["plugins"].as_array().cloned().expect("a list");
        plugins.iter().map(|plugin| plugin["type"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(types(&found), ["vlan"]);
    let message = until_condition(&stage, "early", "PluginsPresent", "False", "NotInstalled").await;
    assert!(message.contains("coordinator") && message.contains("plugins.present"), "{message}");
    // The chart is told that nodes have it: no restart.
    std::fs::write(
        stage.folder.path().join("conf.yml"),
        format!("{}plugins: {{present: [coordinator]}}\n", Stage::conf()),
    )
    .expect("writable");
    until(&stage, "early", |found| types(found) == ["vlan", "coordinator"]).await;
    until_condition(&stage, "early", "PluginsPresent", "True", "AllPresent").await;
    drop(controller);
}

/// Must reach: 1 000 attachments after a restart within 10 s, and no write when nothing changed.
#[tokio::test]
async fn a_restart_with_a_thousand_attachments_writes_nothing() {
    const COUNT: usize = 1000;
    let (stage, mut controller) = staged().await;
    let create = async |n: usize| stage.attachment("spiderpool", &format!("net-{n}"), vlan("eth1")).await;
    let started = Instant::now();
    futures::StreamExt::for_each_concurrent(futures::stream::iter(0..COUNT), 32, create).await;
    let ready = async || {
        let found = get(&stage, SMC).await.unwrap_or_default();
        let objects = found["items"].as_array().cloned().unwrap_or_default();
        objects.iter().filter(|object| object["status"]["conditions"][0]["status"] == "True").count()
    };
    wait::until("all definitions", Duration::from_mins(2), async || {
        let found = ready().await;
        ensure!(found == COUNT, "{found}");
        Ok(())
    })
    .await;
    println!("{COUNT} attachments created and defined: {:?}", started.elapsed());
    // Some change while nobody leads.
    controller.process.signal("TERM");
    wait::until("the end", SOON, async || controller.process.ended().ok_or("it runs")).await;
    let before = writes(&stage).len();
    let started = Instant::now();
    let controller = stage.ready_controller(&Stage::conf()).await;
    stage.attachment("spiderpool", "last", vlan("eth1")).await;
    until(&stage, "last", |_| true).await;
    until_condition(&stage, "last", "Ready", "True", "Written").await;
    let took = started.elapsed();
    let wrote: Vec<Request> = writes(&stage).split_off(before);
    println!("restart with {COUNT} attachments -> the next one is ready: {took:?}; writes: {}", wrote.len());
    assert!(took < Duration::from_secs(10), "{took:?}");
    let others: Vec<_> =
        wrote.iter().filter(|request| !request.uri.contains("last") && !request.uri.contains("/events")).collect();
    assert!(others.is_empty(), "{others:#?}");
    drop(controller);
}

/// One works at a time: a second waits, takes over when the first leaves or dies, and stops when the lease is another's.
#[tokio::test]
async fn one_controller_leads() {
    let (stage, mut first) = staged().await;
    stage.attachment("spiderpool", "a", vlan("eth1")).await;
    until(&stage, "a", |_| true).await;
    let second = stage.ready_controller(&Stage::conf()).await;
    let holder = async || get(&stage, LEASE).await.unwrap_or_default()["spec"]["holderIdentity"].clone();
    let leader = holder().await;
    assert!(!second.logged().contains("this controller leads"), "{}", second.logged());

    // It leaves: the other is there at once.
    first.process.signal("TERM");
    let started = Instant::now();
    wait::until("another holder", SOON, async || {
        let now = holder().await;
        ensure!(now != leader && now.as_str().is_some_and(|now| !now.is_empty()), "{now}");
        Ok(())
    })
    .await;
    println!("leader told to stop -> another leads: {:?}", started.elapsed());
    assert!(started.elapsed() < Duration::from_secs(6));
    wait::until("the end", SOON, async || first.process.ended().ok_or("it runs")).await;
    stage.attachment("spiderpool", "b", vlan("eth1")).await;
    until(&stage, "b", |_| true).await;

    // It dies: another waits until the lease has been silent for long enough.
    let third = stage.ready_controller(&Stage::conf()).await;
    drop(second);
    let started = Instant::now();
    stage.attachment("spiderpool", "c", vlan("eth1")).await;
    until(&stage, "c", |_| true).await;
    println!("leader killed -> another writes: {:?}", started.elapsed());

    // The lease is given to somebody else: it stops, and begins again when that one is silent.
    let given = json!({"spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 5, "renewTime": "2020-01-01T00:00:00.000000Z"}});
    stage.merge(LEASE, &given).await.accepted();
    wait::until("the loss to be noticed", SOON, async || {
        ensure!(third.logged().contains("does not lead any more"), "{}", third.logged());
        Ok(())
    })
    .await;
    let lost = Instant::now();
    stage.attachment("spiderpool", "d", vlan("eth1")).await;
    until(&stage, "d", |_| true).await;
    println!("lease given away for 5 s -> next write: {:?}", lost.elapsed());
    assert!(lost.elapsed() > Duration::from_secs(2), "it did not write meanwhile");
}

/// A holder that cannot renew stops by itself, before another may begin.
#[tokio::test]
async fn a_lease_that_cannot_be_renewed_ends() {
    let (stage, controller) = staged().await;
    stage.attachment("spiderpool", "a", vlan("eth1")).await;
    until(&stage, "a", |_| true).await;
    // The right to the lease goes, and all others stay.
    let role = "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/rolebindings/spiderpool-controller";
    delete(&stage, role).await.accepted();
    wait::until("a refused renewal", SOON, async || {
        ensure!(controller.logged().contains("cannot take or renew the lease"), "{}", controller.logged());
        Ok(())
    })
    .await;
    // From the last renewal on it may write for 10 s.
    let refused = Instant::now();
    let mut last_write = Instant::now();
    for n in 0.. {
        let name = format!("late-{n}");
        stage.attachment("spiderpool", &name, vlan("eth1")).await;
        let there = async || {
            let found = get(&stage, &format!("{NAD}/{name}")).await;
            found.ok_or("there is none")
        };
        let made = tokio::time::timeout(Duration::from_secs(2), wait::until("it", SOON, there)).await;
        if made.is_err() {
            break;
        }
        last_write = Instant::now();
        assert!(refused.elapsed() < Duration::from_secs(15), "it goes on for ever");
    }
    println!("renewal refused -> last write: {:?}", last_write.duration_since(refused));
    assert!(last_write.duration_since(refused) < Duration::from_millis(10_500));
}
