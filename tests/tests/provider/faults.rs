//! Every fault of a provider, at each call that there is: it ends in equal sets.

use crate::stage::{OVER, POOL, Stage, all_ended, all_started, conf, started};
use anyhow::ensure;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tests::answer::send;
use tests::chart::create;
use tests::plugin::Sandbox;
use tests::provider::Provider;
use tests::wait;

fn faults() -> Vec<Value> {
    let plain = [
        "cut-before",
        "cut-after",
        "cut-mid-answer",
        "partial-status-line",
        "hang",
        "hang-after",
        "slow-body",
        "endless-body",
        "garbage",
        "empty",
        "missing",
        "extra",
        "duplicate",
        "wrong-subnet",
        "wrong-address-spelling",
        "bad-mac",
        "same-vlan",
        "redirect",
    ];
    let mut all: Vec<Value> = plain.iter().map(|kind| json!({"kind": kind})).collect();
    for kind in ["garbage", "missing", "redirect"] {
        all.push(json!({"kind": kind, "work": false}));
    }
    for code in [400, 408, 409, 429, 499, 500, 502, 503, 504] {
        all.push(json!({"kind": "status", "code": code}));
    }
    for code in [500, 503] {
        all.push(json!({"kind": "status-after", "code": code}));
    }
    all.extend([
        json!({"kind": "cut-after", "reset": true}),
        json!({"kind": "late", "ms": 1200}),
        json!({"kind": "proxy-504", "ms": 1200}),
        json!({"kind": "slow", "ms": 700}),
        json!({"kind": "huge-body", "bytes": 2_000_000}),
        json!({"kind": "vlan-out-of-range", "vlan": 4095}),
    ]);
    all
}

/// Of one scenario and fault.
fn name(what: &str, at: usize) -> String {
    format!("{what}-{at}")
}

fn rule(operation: &str, pod: &str, times: usize, fault: &Value) -> Value {
    // A provider that says 2xx to a release and does nothing has lost the address by itself.
    let lie = operation == "release" && fault["work"] == false && fault["kind"] != "redirect";
    let fault = if lie { &json!({"kind": "status", "code": 500}) } else { fault };
    json!({"operation": operation, "match": {"podName": pod}, "times": times, "fault": fault})
}

/// At the call that binds; at the release that takes a refused binding back; at the release at the end; the same calls of a
/// provider that fails twice.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_gets_through_every_fault() {
    let stage = Stage::set(Provider::start().await).await;
    let (node, agent) = stage.node("n", "2s").await;
    let (mut pods, mut rules) = (Vec::new(), Vec::new());
    for (at, fault) in faults().iter().enumerate() {
        for (what, of) in [
            ("allocate", vec![("allocate", 1, fault.clone())]),
            ("twice", vec![("allocate", 2, fault.clone()), ("release", 2, fault.clone())]),
            (
                "undo",
                vec![("allocate", 1, json!({"kind": "status-after", "code": 500})), ("release", 1, fault.clone())],
            ),
        ] {
            let name = name(what, at);
            rules.extend(of.iter().map(|(operation, times, fault)| rule(operation, &name, *times, fault)));
            pods.push(stage.nodes.provided(&name, "n", POOL, json!({})).await);
        }
    }
    // In parts: there is a bound on rules in one request.
    for part in rules.chunks(50) {
        stage.provider.faults(&json!(part));
    }
    let given = all_started(&node, &mut pods).await;
    assert_eq!(given.len(), pods.len(), "no address twice");
    stage.agree(&given).await;
    stage.provider.cloud.clear_faults();
    for (at, fault) in faults().iter().enumerate() {
        let pods = ["allocate", "twice", "undo"].map(|what| name(what, at));
        let rules: Vec<Value> = pods.iter().map(|pod| rule("release", pod, 2, fault)).collect();
        stage.provider.faults(&json!(rules));
    }
    all_ended(&stage, Some(&node), &pods).await;
    stage.agree(&BTreeMap::new()).await;
    let log = agent.logged();
    assert!(log.contains("IaaS client created successfully"), "operators look for it: {log}");
    assert!(!log.contains("panicked"), "{log}");
}

/// Releases of what an agent left behind, and of pods that come back on another node.
#[tokio::test(flavor = "multi_thread")]
async fn a_controller_gets_through_every_fault() {
    let stage = Stage::set(Provider::start().await).await;
    let (lost, mut agent) = stage.node("lost", "2s").await;
    let (there, _agent) = stage.node("there", "2s").await;
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let replicas = faults().len();
    let spec = json!({"replicas": replicas, "serviceName": "db", "selector": {"matchLabels": {"a": "b"}}, "template": template});
    let set = json!({"metadata": {"name": "db"}, "spec": spec});
    let set = create(&stage.nodes.admin, "/apis/apps/v1/namespaces/default/statefulsets", &set).await;
    let uid = set.accepted()["metadata"]["uid"].clone();
    let owner = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": uid, "controller": true});
    let of_set = json!({"ownerReferences": [owner]});

    let (mut leaving, mut moving) = (Vec::new(), Vec::new());
    for at in 0..replicas {
        leaving.push(stage.nodes.provided(&name("gone", at), "lost", POOL, json!({})).await);
        moving.push(stage.nodes.provided(&name("db", at), "lost", POOL, of_set.clone()).await);
    }
    let mut given = all_started(&lost, &mut leaving).await;
    let of_moving = all_started(&lost, &mut moving).await;
    given.extend(of_moving.clone());
    stage.agree(&given).await;

    agent.process.signal("KILL");
    wait::until("the agent's end", OVER, async || agent.process.ended().ok_or("it runs")).await;
    for (at, fault) in faults().iter().enumerate() {
        let pods = [name("gone", at), name("db", at)];
        stage.provider.faults(&json!(pods.map(|pod| rule("release", &pod, 2, fault))));
    }
    all_ended(&stage, None, &leaving).await;
    all_ended(&stage, None, &moving).await;
    stage.nodes.out_of_service("lost").await;
    let controller = stage.nodes.controller(&conf(&stage.provider, "2s")).await;
    let mut back: Vec<Sandbox> = Vec::new();
    for at in 0..replicas {
        back.push(stage.nodes.provided(&name("db", at), "there", POOL, of_set.clone()).await);
    }
    let moved = all_started(&there, &mut back).await;
    assert_eq!(moved, of_moving, "each has its address again, on another node");
    stage.agree(&moved).await;
    assert!(stage.provider.cloud.bindings().iter().all(|one| one.node_name == "there"));
    let log = controller.logged();
    assert!(log.contains("IaaS client created successfully"), "operators look for it: {log}");
    all_ended(&stage, Some(&there), &back).await;
    // The set still wants them: they are kept, bound.
    stage.agree(&moved).await;
    let gone = send(
        &stage.nodes.admin,
        "DELETE",
        "/apis/apps/v1/namespaces/default/statefulsets/db",
        "application/json",
        Vec::new(),
    );
    gone.await.expect("answers").accepted();
    stage.agree(&BTreeMap::new()).await;
}

/// The endpoint shows an address once the provider has answered, and not before.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_shown_before_the_provider_has_answered() {
    let stage = Stage::set(Provider::start().await).await;
    let (node, _agent) = stage.node("n", "20s").await;
    stage.provider.faults(&json!([rule("allocate", "slow", 1, &json!({"kind": "slow", "ms": 2000}))]));
    let mut pod = stage.nodes.provided("slow", "n", POOL, json!({})).await;
    let watch = async {
        wait::until("the call", OVER, async || {
            ensure!(stage.provider.calls("allocate-ips", "slow") == 1);
            Ok(())
        })
        .await;
        (stage.nodes.held().await.len(), stage.nodes.shown().await.len())
    };
    let ((given, heard), during) = tokio::join!(started(&node, &mut pod), watch);
    assert_eq!((during, heard.len()), ((1, 0), 0), "reserved, and not shown");
    stage.agree(&BTreeMap::from([(given, "slow".to_owned())])).await;
    assert_eq!(stage.provider.calls("allocate-ips", "slow"), 1, "one call for an ADD");
}
