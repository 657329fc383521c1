//! What is asked live: pods, their controllers, and who is retained.

use crate::stage::{Stage, allocation, delete, node, reserved, store, unsynced};
use ipam_core::{Owner, Store, StoreError};
use kube::{Client, Config};
use serde_json::{Value, json};
use std::time::Duration;

const TEMPLATE: &str = r#"{"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}"#;

fn controlled(owner: &Value, kind: &str, name: &str) -> Value {
    let api_version = if kind == "CronJob" { "batch/v1" } else { "apps/v1" };
    json!([{"apiVersion": api_version, "kind": kind, "name": name, "uid": owner["metadata"]["uid"], "controller": true}])
}

fn pod(name: &str, owners: &Value) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"l": "1"}, "annotations": {"kubernetes.io/config.hash": "hash"},
                     "ownerReferences": owners},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
    })
}

#[tokio::test]
async fn pods_are_read_live_with_their_top_controller() {
    let stage = Stage::set().await;
    let a = store(stage.admin.clone(), node("n")).await;
    let template: Value = serde_json::from_str(TEMPLATE).expect("JSON");
    let selector = json!({"matchLabels": {"a": "b"}});
    let apps = "/apis/apps/v1/namespaces/default";
    let made = json!({"metadata": {"name": "web"}, "spec": {"selector": selector, "template": template}});
    let deployment = stage.create(&format!("{apps}/deployments"), &made).await.accepted().clone();
    let owners = controlled(&deployment, "Deployment", "web");
    let made = json!({"metadata": {"name": "web-1", "ownerReferences": owners}, "spec": {"selector": selector, "template": template}});
    let set = stage.create(&format!("{apps}/replicasets"), &made).await.accepted().clone();
    let pods = "/api/v1/namespaces/default/pods";
    let made = pod("web-1-a", &controlled(&set, "ReplicaSet", "web-1"));
    stage.create(pods, &made).await.accepted();
    let orphan = json!({"metadata": {"uid": "00000000-0000-0000-0000-000000000000"}});
    stage.create(pods, &pod("lost", &controlled(&orphan, "ReplicaSet", "web-1"))).await.accepted();
    stage.create(pods, &pod("alone", &json!([]))).await.accepted();

    let facts = a.pod("default", "web-1-a").await.expect("answers").expect("there");
    let owner = facts.owner.clone().expect("a controller");
    assert_eq!((owner.kind.as_str(), owner.name.as_str()), ("Deployment", "web"));
    assert!(facts.lives_as("hash") && facts.lives_as(&facts.uid) && facts.node == "n" && facts.labels["l"] == "1");
    assert!(!facts.namespace.terminating);
    let lost = a.pod("default", "lost").await.expect("answers").expect("there").owner.expect("a controller");
    assert_eq!(lost.kind, "ReplicaSet", "one of another UID is not asked for its controller");
    assert_eq!(a.pod("default", "alone").await.expect("answers").expect("there").owner, None);
    assert_eq!(a.pod("default", "none").await, Ok(None));
    assert!(matches!(a.pod("default", "../x").await, Err(StoreError::Refused(_))));

    let status = json!({"status": {"phase": "Succeeded"}});
    stage.merge(&format!("{pods}/alone/status"), &status).await.accepted();
    assert!(a.pod("default", "alone").await.expect("answers").expect("there").terminal);
    delete(&stage.admin, &format!("{pods}/web-1-a")).await.accepted();
    assert!(a.pod("default", "web-1-a").await.expect("answers").expect("there").terminating);

    // Nobody here ends namespaces; it stays on its way.
    stage.create("/api/v1/namespaces", &json!({"metadata": {"name": "going"}})).await.accepted();
    stage.create("/api/v1/namespaces/going/pods", &pod("p", &json!([]))).await.accepted();
    delete(&stage.admin, "/api/v1/namespaces/going").await.accepted();
    assert!(a.pod("going", "p").await.expect("answers").expect("there").namespace.terminating);
}

#[tokio::test]
async fn retained_is_who_has_a_place() {
    let stage = Stage::set().await;
    let a = store(stage.admin.clone(), node("n")).await;
    let template: Value = serde_json::from_str(TEMPLATE).expect("JSON");
    let spec = json!({"serviceName": "s", "selector": {"matchLabels": {"a": "b"}}, "template": template, "replicas": 2, "ordinals": {"start": 3}});
    let sets = "/apis/apps/v1/namespaces/default/statefulsets";
    let made = stage.create(sets, &json!({"metadata": {"name": "db"}, "spec": spec})).await.accepted().clone();
    let owner = |kind: &str, api_version: &str, uid: &Value| Owner {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        name: "db".to_owned(),
        uid: uid.as_str().expect("a UID").to_owned(),
    };
    let own = owner("StatefulSet", "apps/v1", &made["metadata"]["uid"]);
    for (pod, has) in [("db-2", false), ("db-3", true), ("db-4", true), ("db-5", false), ("other-3", false)] {
        assert_eq!(a.retained("default", &own, pod).await, Ok(has), "{pod}");
    }
    assert_eq!(a.retained("default", &owner("StatefulSet", "apps/v1", &json!("x")), "db-3").await, Ok(false));
    let machine = owner("VirtualMachine", "kubevirt.io/v1", &json!("x"));
    assert_eq!(a.retained("default", &machine, "db-3").await, Ok(false), "a cluster without KubeVirt");
    delete(&stage.admin, &format!("{sets}/db?propagationPolicy=Background")).await.accepted();
    assert_eq!(a.retained("default", &own, "db-3").await, Ok(false));
}

#[tokio::test]
async fn names_are_looked_up_on_all_nodes() {
    let stage = Stage::set().await;
    let (a, b) = (store(stage.admin.clone(), node("a")).await, store(stage.admin.clone(), node("b")).await);
    let on_b = reserved(&b, allocation("10.0.0.1", "b", "db-0")).await;
    let mut other = allocation("10.0.0.2", "b", "db-0");
    other.pod.namespace = "other".to_owned();
    reserved(&b, other).await;
    let found = a.named("default", "db-0", None).await.expect("answers");
    assert_eq!(found.iter().map(|one| (&one.value, &one.version)).collect::<Vec<_>>(), [(&on_b.value, &on_b.version)]);
    assert_eq!(a.all(), [], "what is on another node does not enter");

    // Pods of a machine have other names each time.
    let machine = |uid: &str| Owner {
        api_version: "kubevirt.io/v1".to_owned(),
        kind: "VirtualMachine".to_owned(),
        name: "vm".to_owned(),
        uid: uid.to_owned(),
    };
    let mut old = allocation("10.0.0.3", "b", "virt-launcher-vm-old");
    old.owner = Some(machine("vm-uid"));
    let old = reserved(&b, old).await;
    for (uid, wanted) in [("vm-uid", vec![&old.value]), ("other", Vec::new())] {
        let found = a.named("default", "virt-launcher-vm-new", Some(&machine(uid))).await.expect("answers");
        assert_eq!(found.iter().map(|one| &one.value).collect::<Vec<_>>(), wanted, "{uid}");
    }
}

#[tokio::test]
async fn without_an_api_server_nothing_is_certain() {
    runtime::install_crypto();
    let url = format!("http://127.0.0.1:{}", tests::agent::free_port()).parse().expect("an address");
    let client = Client::try_from(Config::new(url)).expect("a client");
    let (store, watch) = unsynced(client, node("a"));
    assert!(tokio::time::timeout(Duration::from_millis(200), watch).await.is_err() && !store.is_synced());
    let unknown = |error: &StoreError| matches!(error, StoreError::Unknown(_));
    assert!(store.reserve(allocation("10.0.0.1", "a", "p")).await.is_err_and(|error| unknown(&error)));
    assert!(store.in_pool("pool-a").await.is_err_and(|error| unknown(&error)));
    assert!(store.pod("default", "p").await.is_err_and(|error| unknown(&error)));
}
