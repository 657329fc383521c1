//! Who may write addresses: RBAC and policies of the chart, with tokens as agents have them.

use crate::stage::{ALLOCATIONS, Stage, allocation, bound, delete, merge, node, path, reserved, store};
use ipam_core::{Store, StoreError};
use k8s_api::names::{REPLACES, REPLACES_NOTHING};
use kube::Client;
use serde_json::{Value, json};
use tests::answer::{Answer, send};
use tests::chart::{self, create};
use tests::wait;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const ENDPOINTS: &str = "/apis/spiderpool.spidernet.io/v2beta1/namespaces/default/spiderendpoints";
const POOLS: &str = "/apis/spiderpool.spidernet.io/v2beta1/spiderippools";
const CONTROLLER: &str = "system:serviceaccount:kube-system:spiderpool-controller";

/// What `user` would get, whom RBAC allows everything.
async fn as_user(stage: &Stage, user: &str, method: &str, path: &str, body: &Value) -> Answer {
    as_member(stage, user, "system:masters", method, path, body).await
}

async fn as_member(stage: &Stage, user: &str, group: &str, method: &str, path: &str, body: &Value) -> Answer {
    use http_body_util::BodyExt;
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = http::Request::builder().method(method).uri(path).header("content-type", kind);
    let request = request.header("impersonate-user", user).header("impersonate-group", group);
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let response = stage.admin.send(request.body(body.into()).expect("a request")).await.expect("answers");
    let status = response.status().as_u16();
    let bytes = response.into_body().collect().await.expect("a body").to_bytes();
    Answer { status, body: serde_json::from_slice(&bytes).expect("JSON"), warnings: Vec::new() }
}

/// Metadata of a write that says what it replaces, as ours do.
async fn replacing(stage: &Stage, endpoint: &str) -> Value {
    let found = stage.get(&format!("{ENDPOINTS}/{endpoint}")).await;
    json!({"annotations": {REPLACES: found.accepted()["metadata"]["resourceVersion"]}})
}

/// An API server with RBAC and policies of the chart in force, and two agents.
async fn guarded() -> (Stage, Client, Client) {
    let stage = Stage::set().await;
    chart::guard(&stage.admin).await;
    let (a, b) = (bound(&stage, "a").await, bound(&stage, "b").await);
    (stage, a, b)
}

fn written(address: &str, node: &str) -> Value {
    json!({
        "apiVersion": "spiderpool.spidernet.io/v2beta1", "kind": "SpiderIPAllocation", "metadata": {"name": address},
        "spec": {"pool": "p", "address": address, "node": {"name": node}, "state": "Held",
                 "pod": {"namespace": "default", "name": "p", "uid": "u"}},
    })
}

fn endpoint(name: &str, node: &str) -> Value {
    json!({
        "apiVersion": "spiderpool.spidernet.io/v2beta1", "kind": "SpiderEndpoint",
        "metadata": {"name": name, "annotations": {REPLACES: REPLACES_NOTHING}},
        "status": {"current": {"uid": "u", "node": node, "ips": []}},
    })
}

#[tokio::test]
async fn an_agent_writes_what_is_of_its_node_and_nothing_else() {
    let (stage, a, b) = guarded().await;
    let (store_a, store_b) = (store(a.clone(), node("a")).await, store(b.clone(), node("b")).await);
    let own = reserved(&store_a, allocation("10.0.0.1", "a", "one")).await;
    let address = own.value.address;
    let fenced =
        |error: &StoreError| matches!(error, StoreError::Refused(why) if why.contains("of its own node alone"));

    let foreign = store_b.reserve(allocation("10.0.0.2", "a", "one")).await;
    assert!(foreign.as_ref().is_err_and(fenced), "{foreign:?}");
    let mut seized = own.value.clone();
    seized.node.name = "b".to_owned();
    let taken = store_b.advance(address, &own.version, seized.clone()).await;
    assert!(taken.as_ref().is_err_and(fenced), "{taken:?}");
    let given = store_a.advance(address, &own.version, seized).await;
    assert!(given.as_ref().is_err_and(fenced), "{given:?}");
    let removed = store_b.remove(address, &own.version).await;
    assert!(removed.as_ref().is_err_and(fenced), "{removed:?}");

    // One name for each address.
    let full = "fd00-0000-0000-0000-0000-0000-0000-0005";
    for (name, address) in
        [("fd00--5", "fd00::5"), (full, "fd00::6"), ("10.0.0.4", "10.0.0.5"), ("x", "10.0.0.5"), (full, "x:")]
    {
        let mut named = written(address, "a");
        named["metadata"]["name"] = name.into();
        let answer = create(&a, ALLOCATIONS, &named).await;
        let refused = answer.refused();
        assert!(refused.contains("must be the address"), "{name}: {refused}");
    }
    let mut named = written("fd00::5", "a");
    named["metadata"]["name"] = full.into();
    create(&a, &format!("{ALLOCATIONS}?dryRun=All"), &named).await.accepted();

    let mut next = own.value.clone();
    next.detached = true;
    let own = store_a.advance(address, &own.version, next).await.expect("its own");
    store_a.remove(address, &own.version).await.expect("its own");

    create(&a, ENDPOINTS, &endpoint("one", "a")).await.accepted();
    assert!(create(&b, ENDPOINTS, &endpoint("two", "a")).await.refused().contains("of its own node alone"));
    let patch = json!({"metadata": replacing(&stage, "one").await, "status": {"current": {"node": "b"}}});
    for agent in [&a, &b] {
        assert!(merge(agent, &format!("{ENDPOINTS}/one"), &patch).await.refused().contains("of its own node alone"));
    }
    let patch = json!({"metadata": replacing(&stage, "one").await, "status": {"current": {"uid": "v"}}});
    merge(&a, &format!("{ENDPOINTS}/one"), &patch).await.accepted();
    assert_eq!(store_a.pod("default", "none").await, Ok(None), "it may ask");

    // The account with a token that is bound to no pod has no node.
    let account = "system:serviceaccount:kube-system:spiderpool-agent";
    let nodeless = as_user(&stage, account, "POST", ALLOCATIONS, &written("10.0.0.3", "")).await;
    assert!(nodeless.refused().contains("of its own node alone"));
}

/// It may have the very same accounts; whatever these may is no excuse.
#[tokio::test]
async fn what_an_earlier_system_writes_is_refused_by_its_shape() {
    let (stage, a, _) = guarded().await;
    let mut old = endpoint("old", "a");
    old["metadata"]["annotations"] = Value::Null;
    assert!(create(&a, ENDPOINTS, &old).await.refused().contains("say what they replace"));
    create(&a, ENDPOINTS, &endpoint("one", "a")).await.accepted();
    // It keeps annotations that it does not know.
    for change in [json!({"status": {"current": {"uid": "v"}}}), json!({"metadata": {"finalizers": ["x.example/f"]}})] {
        let refused = as_user(&stage, CONTROLLER, "PATCH", &format!("{ENDPOINTS}/one"), &change).await;
        assert!(refused.refused().contains("say what they replace"), "{change}");
    }
    let labelled = json!({"metadata": {"labels": {"l": "1"}}});
    as_user(&stage, CONTROLLER, "PATCH", &format!("{ENDPOINTS}/one"), &labelled).await.accepted();

    let pool = json!({
        "apiVersion": "spiderpool.spidernet.io/v2beta1", "kind": "SpiderIPPool", "metadata": {"name": "p"},
        "spec": {"subnet": "10.0.0.0/24"},
    });
    stage.create(POOLS, &pool).await.accepted();
    let status = format!("{POOLS}/p/status");
    let records = |text: Value| json!({"status": {"allocatedIPs": text}});
    let ours = json!({"status": {"allocatedIPCount": 0, "conditions": [{"type": "Adopted", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    as_user(&stage, CONTROLLER, "PATCH", &status, &ours).await.accepted();
    for account in [CONTROLLER, "system:serviceaccount:elsewhere:spiderpool-agent"] {
        let refused = as_user(&stage, account, "PATCH", &status, &records(json!("{}"))).await;
        assert!(refused.refused().contains("stands still"), "{account}");
    }
    stage.merge(&status, &records(json!("{}"))).await.accepted();
    // Records go with the condition alone, which what it writes does not have.
    let gone = json!({"status": {"allocatedIPs": null, "conditions": null}});
    assert!(as_user(&stage, CONTROLLER, "PATCH", &status, &gone).await.refused().contains("stands still"));
    as_user(&stage, CONTROLLER, "PATCH", &status, &records(Value::Null)).await.accepted();
}

#[tokio::test]
async fn people_delete_nothing_and_ask_for_releases() {
    let (stage, a, _) = guarded().await;
    let held = reserved(&store(a.clone(), node("a")).await, allocation("10.0.0.1", "a", "one")).await;
    let own = path("10.0.0.1");
    assert!(delete(&stage.admin, &own).await.refused().contains("nobody deletes addresses"));
    assert!(delete(&stage.admin, ALLOCATIONS).await.refused().contains("nobody deletes addresses"), "nor all at once");
    assert!(stage.create(ALLOCATIONS, &written("10.0.0.2", "a")).await.refused().contains("agents reserve addresses"));
    let patch = json!({"spec": {"detached": true}});
    assert!(stage.merge(&own, &patch).await.refused().contains("spec.releaseRequest alone"));
    for metadata in [
        json!({"finalizers": ["x.example/f"]}),
        json!({"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "x"}]}),
    ] {
        assert!(
            stage.merge(&own, &json!({"metadata": metadata})).await.refused().contains("spec.releaseRequest alone")
        );
    }

    // A person with the right to write, and then with the right to release.
    let grant = async |name: &str, verbs: Value| {
        let rules =
            json!([{"apiGroups": ["spiderpool.spidernet.io"], "resources": ["spideripallocations"], "verbs": verbs}]);
        let (group, subject) = (
            "rbac.authorization.k8s.io",
            json!([{"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}]),
        );
        let role = json!({"metadata": {"name": name}, "rules": rules});
        stage.create(&format!("/apis/{group}/v1/clusterroles"), &role).await.accepted();
        let reference = json!({"kind": "ClusterRole", "name": name, "apiGroup": group});
        let binding = json!({"metadata": {"name": name}, "roleRef": reference, "subjects": subject});
        stage.create(&format!("/apis/{group}/v1/clusterrolebindings"), &binding).await.accepted();
    };
    let ask = async |by: &str| {
        let request = json!({"spec": {"releaseRequest": {"by": by, "at": "2026-01-01T00:00:00Z", "abandon": false}}});
        as_member(&stage, "ann", "people", "PATCH", &own, &request).await
    };
    grant("writer", json!(["get", "patch"])).await;
    wait::until("the right to write", crate::stage::SOON, async || {
        let answer = ask("ann").await;
        anyhow::ensure!(answer.refused().contains("the verb release"), "{answer:?}");
        Ok(())
    })
    .await;
    grant("releaser", json!(["release"])).await;
    wait::until("the right to release", crate::stage::SOON, async || {
        let answer = ask("bob").await;
        anyhow::ensure!(answer.refused().contains("is who asks"), "{answer:?}");
        Ok(())
    })
    .await;
    ask("ann").await.accepted();
    let more = as_member(&stage, "ann", "people", "PATCH", &own, &json!({"spec": {"detached": true}})).await;
    assert!(more.refused().contains("spec.releaseRequest alone"));

    // Migration of the storage, as any account.
    let object = stage.get(&own).await.accepted().clone();
    send(&stage.admin, "PUT", &own, "application/json", object.to_string().into_bytes())
        .await
        .expect("answers")
        .accepted();

    // The controller does all.
    let patch = json!({"spec": {"node": {"name": "b"}, "releaseRequest": null}});
    as_user(&stage, CONTROLLER, "PATCH", &own, &patch).await.accepted();
    as_user(&stage, CONTROLLER, "POST", ALLOCATIONS, &written("10.0.0.7", "c")).await.accepted();
    as_user(&stage, CONTROLLER, "DELETE", &own, &Value::Null).await.accepted();
    drop(held);
}

#[tokio::test]
async fn endpoints_go_with_pods_and_namespaces_and_definitions_stay() {
    let (stage, a, _) = guarded().await;
    let at = |name: &str| format!("{ENDPOINTS}/{name}");
    let collectors = [
        "system:kube-controller-manager",
        "system:serviceaccount:kube-system:generic-garbage-collector",
        "system:serviceaccount:kube-system:namespace-controller",
    ];
    for (n, collector) in collectors.into_iter().enumerate() {
        let name = format!("one-{n}");
        create(&a, ENDPOINTS, &endpoint(&name, "a")).await.accepted();
        assert!(delete(&stage.admin, &at(&name)).await.refused().contains("endpoints go with their pods"));
        let mut metadata = replacing(&stage, &name).await;
        metadata["finalizers"] = json!(["foregroundDeletion"]);
        assert!(
            stage
                .merge(&at(&name), &json!({"metadata": metadata}))
                .await
                .refused()
                .contains("endpoints go with their pods")
        );
        let status = json!({"metadata": replacing(&stage, &name).await, "status": {"current": {"uid": "x"}}});
        let refused = as_user(&stage, collector, "PATCH", &at(&name), &status).await;
        assert!(refused.refused().contains("endpoints go with their pods"), "{collector}");
        let unowned = json!({"metadata": {"ownerReferences": []}});
        as_user(&stage, collector, "PATCH", &at(&name), &unowned).await.accepted();
        as_user(&stage, collector, "DELETE", &at(&name), &Value::Null).await.accepted();
    }
    create(&a, ENDPOINTS, &endpoint("two", "a")).await.accepted();
    stage.merge(&at("two"), &json!({"metadata": {"labels": {"l": "1"}}})).await.accepted();
    let refused = as_user(&stage, CONTROLLER, "DELETE", &at("two"), &Value::Null).await;
    assert!(refused.refused().contains("at the version that was looked at"));
    let found = stage.get(&at("two")).await;
    let version = &found.accepted()["metadata"]["resourceVersion"];
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"resourceVersion": version}});
    as_user(&stage, CONTROLLER, "DELETE", &at("two"), &options).await.accepted();

    let definition = format!("{DEFINITIONS}/spideripallocations.spiderpool.spidernet.io");
    assert!(delete(&stage.admin, &definition).await.refused().contains("crds.allowDelete"));
    assert!(delete(&stage.admin, DEFINITIONS).await.refused().contains("crds.allowDelete"), "nor all at once");
    let conf = "/api/v1/namespaces/kube-system/configmaps/spiderpool-conf";
    stage.merge(conf, &json!({"data": {"allowCRDDelete": "true"}})).await.accepted();
    wait::until("the definition to go", crate::stage::SOON, async || {
        let answer = delete(&stage.admin, &definition).await;
        anyhow::ensure!(answer.status == 200, "{answer:?}");
        Ok(())
    })
    .await;
}
