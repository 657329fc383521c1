//! Networks that an annotation of a namespace selects for its pods, and the label that brings these to the controller.

use super::super::{JSON, SUB_ENI, staged, vlan};
use super::{FROM, LABEL, NETWORK, NETWORKS, RDMA, bare, networks, selectable, set, until};
use anyhow::ensure;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tests::answer::{annotated, pod_with, send};
use tests::api_server::CONTROLLER;
use tests::controller::{SOON, Stage};

/// The controller mirrors the annotation into the label, under the chart's policy; how soon is printed.
#[tokio::test]
async fn a_namespace_selects_for_its_pods() {
    let (stage, controller) = staged(&[]).await;
    stage.hold().await;
    selectable(&stage, "spiderpool", "red1", json!({NETWORK: "red"}), vlan("eth1")).await;
    selectable(&stage, "spiderpool", "blue1", json!({NETWORK: "blue"}), vlan("eth2")).await;
    set(&stage, "spiderpool", json!({"annotations": {FROM: "*"}})).await;
    until("a leader", async || {
        ensure!(controller.logged().contains("this controller leads"), "{}", controller.logged());
        Ok(())
    })
    .await;
    let label = async |namespace: &str| {
        let path = format!("/api/v1/namespaces/{namespace}");
        let found = send(&stage.admin, "GET", &path, JSON, Vec::new()).await.expect("answers");
        found.accepted()["metadata"]["labels"][LABEL].as_str().map(ToOwned::to_owned)
    };

    let (mut labelled, mut asked) = (Vec::new(), Vec::new());
    for n in 0..20 {
        let name = format!("mirrored-{n}");
        let object = json!({"metadata": {"name": name, "annotations": {NETWORK: "red"}}});
        stage.create("/api/v1/namespaces", &object).await.accepted();
        let started = Instant::now();
        while label(&name).await.as_deref() != Some("by-annotation") {
            assert!(started.elapsed() < SOON, "{name} has no label: {}", controller.logged());
        }
        labelled.push(started.elapsed());
        let pods = format!("/api/v1/namespaces/{name}/pods?dryRun=All");
        while networks(&stage.create(&pods, &bare()).await) != Some("spiderpool/red1") {
            assert!(started.elapsed() < SOON, "the API server does not ask: {}", controller.logged());
        }
        asked.push(started.elapsed());
    }
    for times in [&mut labelled, &mut asked] {
        times.sort_unstable();
    }
    println!(
        "namespace annotated -> label: median {:?}, at most {:?}; -> API server asks: median {:?}, at most {:?} of 20",
        labelled[10], labelled[19], asked[10], asked[19]
    );
    assert!(asked[19] < Duration::from_secs(2), "promised: within 2 s");

    // A whole pod, and its audit entry.
    let pod = stage.pod("mirrored-0", &bare()).await;
    assert_eq!((networks(&pod), pod.requested(0, SUB_ENI)), (Some("spiderpool/red1"), Some("1")));
    let audit = stage.server.audit_annotations("/api/v1/namespaces/mirrored-0/pods");
    let said = "cni.spidernet.io/network-resource-inject=red of the namespace selects spiderpool/red1; ";
    let says = |entry: &Value| {
        entry["namespace-pods.spiderpool.spidernet.io/injected"].as_str().is_some_and(|text| text.starts_with(said))
    };
    assert!(audit.iter().any(says), "{audit:#?}");
    // What the author of the pod wrote wins, and what it names stays.
    let own = stage.pod("mirrored-0", &pod_with(&json!({NETWORK: "blue", NETWORKS: "spiderpool/vlan"}))).await;
    assert_eq!(networks(&own), Some("spiderpool/vlan,spiderpool/blue1"));
    let plain = stage.pod("mirrored-0", &annotated("spiderpool/vlan")).await;
    assert_eq!(networks(&plain), Some("spiderpool/vlan,spiderpool/red1"));
    let mut host = bare();
    host["spec"]["hostNetwork"] = true.into();
    assert_eq!(networks(&stage.pod("mirrored-0", &host).await), None);
    let mut out = bare();
    out["metadata"]["labels"] = json!({LABEL: "false"});
    assert_eq!(networks(&stage.pod("mirrored-0", &out).await), None);

    // The label goes with the annotation; others' values stay.
    set(&stage, "mirrored-1", json!({"annotations": {NETWORK: null}})).await;
    until("the label to go", async || {
        ensure!(label("mirrored-1").await.is_none(), "{}", controller.logged());
        Ok(())
    })
    .await;
    for (name, value) in [("opted-out", "false"), ("by-hand", "mine")] {
        let object = json!({"metadata": {"name": name, "labels": {LABEL: value}, "annotations": {NETWORK: "red"}}});
        stage.create("/api/v1/namespaces", &object).await.accepted();
        set(&stage, name, json!({"annotations": {NETWORK: null}})).await;
        set(&stage, name, json!({"annotations": {NETWORK: "red"}})).await;
    }
    // One that comes later has its label: those before it were looked at.
    let object = json!({"metadata": {"name": "later", "annotations": {RDMA: "x"}}});
    stage.create("/api/v1/namespaces", &object).await.accepted();
    until("the label of a later one", async || {
        ensure!(label("later").await.is_some(), "{}", controller.logged());
        Ok(())
    })
    .await;
    assert_eq!((label("opted-out").await.as_deref(), label("by-hand").await.as_deref()), (Some("false"), Some("mine")));
    assert_eq!(networks(&stage.pod("opted-out", &bare()).await), None);
    assert_eq!(networks(&stage.pod("by-hand", &bare()).await), Some("spiderpool/red1"), "any other value asks, too");
    let metrics = controller.page("/metrics").await.expect("answers").1;
    assert!(metrics.contains("namespace_labels_total{outcome=\"removed\"} 1"), "{metrics}");
}

/// With the label in its manifest, no pod of a namespace is missed, however new it is.
#[tokio::test]
async fn a_namespace_and_its_pod_are_created_at_once() {
    let (stage, controller) = staged(&[]).await;
    selectable(&stage, "spiderpool", "red1", json!({NETWORK: "red"}), vlan("eth1")).await;
    set(&stage, "spiderpool", json!({"annotations": {FROM: "*"}})).await;
    until("the attachment to be shared", async || {
        let pod = stage.pod("team-a", &pod_with(&json!({NETWORK: "red"}))).await;
        ensure!(pod.status < 300, "{pod:?}");
        Ok(())
    })
    .await;
    for n in 0..20 {
        let name = format!("new-{n}");
        let object =
            json!({"metadata": {"name": name, "labels": {LABEL: "by-annotation"}, "annotations": {NETWORK: "red"}}});
        stage.create("/api/v1/namespaces", &object).await.accepted();
        let pod = stage.pod(&name, &bare()).await;
        assert_eq!((networks(&pod), pod.requested(0, SUB_ENI)), (Some("spiderpool/red1"), Some("1")), "{name}");
    }

    // One that the watch does not show costs one request, for all who ask within a second.
    let gets = || {
        let requests = stage.server.requests_of(CONTROLLER).into_iter();
        requests.filter(|request| request.verb == "get" && request.uri.contains("/namespaces/unseen")).count()
    };
    let request = json!({"uid": "u", "operation": "CREATE", "namespace": "unseen", "kind": {"group": "", "version": "v1", "kind": "Pod"}, "object": bare()});
    let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).to_string();
    let client = controller.client(&stage.authority());
    let ask = || send(&client, "POST", "/mutate--v1-pod", JSON, body.clone().into_bytes());
    for answer in futures::future::join_all((0..20).map(|_| ask())).await {
        assert_eq!(answer.expect("an answer").accepted()["response"]["allowed"], true);
    }
    assert!((1..=2).contains(&gets()), "{} requests", gets());
}

/// Two controllers, one writer; the other takes over.
#[tokio::test]
async fn the_controller_that_leads_writes_labels() {
    let (stage, first) = staged(&[]).await;
    let leads = "this controller leads";
    let wrote = "the label of a namespace follows";
    until("the first to lead", async || {
        ensure!(first.logged().contains(leads), "{}", first.logged());
        Ok(())
    })
    .await;
    let second = stage.ready_controller(&Stage::conf()).await;
    let annotate = async |name: &str| {
        let object = json!({"metadata": {"name": name, "annotations": {NETWORK: "red"}}});
        stage.create("/api/v1/namespaces", &object).await.accepted();
        until("the label", async || {
            let path = format!("/api/v1/namespaces/{name}");
            let found = send(&stage.admin, "GET", &path, JSON, Vec::new()).await?;
            ensure!(found.accepted()["metadata"]["labels"][LABEL] == "by-annotation", "{}", second.logged());
            Ok(())
        })
        .await;
    };
    annotate("one").await;
    let labelled = |request: &tests::api_server::Request| {
        request.verb == "patch" && request.uri.starts_with("/api/v1/namespaces/")
    };
    let patches = || stage.server.requests_of(CONTROLLER).iter().filter(|request| labelled(request)).count();
    assert_eq!(patches(), 1, "{:#?}", stage.server.requests_of(CONTROLLER));
    assert!(first.logged().contains(wrote) && !second.logged().contains(wrote) && !second.logged().contains(leads));
    first.process.signal("TERM");
    let started = Instant::now();
    annotate("two").await;
    println!("leader told to stop -> label written by the next: {:?}", started.elapsed());
    assert_eq!(patches(), 2);
    assert!(second.logged().contains(leads) && second.logged().contains(wrote), "{}", second.logged());
    assert!(started.elapsed() < Duration::from_secs(20));
}

/// The chart's policy: of a Namespace the controller's account may change one value of one label.
#[tokio::test]
async fn the_right_to_patch_namespaces_is_for_one_label() {
    let stage = Stage::set().await;
    stage.grant().await;
    stage.hold().await;
    for (name, labels) in [
        ("plain", json!({"a": "b"})),
        ("ours", json!({"a": "b", LABEL: "by-annotation"})),
        ("theirs", json!({"a": "b", LABEL: "false"})),
    ] {
        let object = json!({"metadata": {"name": name, "labels": labels, "annotations": {"c": "d"}}});
        stage.create("/api/v1/namespaces", &object).await.accepted();
    }
    let controller = stage.server.client(CONTROLLER).await;
    let merge = async |name: &str, change: Value| {
        let (path, kind) = (format!("/api/v1/namespaces/{name}?dryRun=All"), "application/merge-patch+json");
        send(&controller, "PATCH", &path, kind, change.to_string().into_bytes()).await.expect("answers")
    };
    let labels = |labels: Value| json!({"metadata": {"labels": labels}});
    until("the policy to be in force", async || {
        let answer = merge("plain", labels(json!({"x": "y"}))).await;
        ensure!(answer.status >= 400, "{answer:?}");
        Ok(())
    })
    .await;
    for (name, change) in [
        ("plain", labels(json!({"pod-security.kubernetes.io/enforce": "privileged"}))),
        ("plain", labels(json!({"a": "c"}))),
        ("plain", labels(json!({"a": null}))),
        ("plain", labels(json!({LABEL: "mine"}))),
        ("plain", labels(json!({LABEL: "by-annotation", "x": "y"}))),
        ("plain", json!({"metadata": {"annotations": {"c": null}}})),
        ("plain", json!({"metadata": {"annotations": {NETWORK: "red"}}})),
        ("plain", json!({"metadata": {"finalizers": ["x.example.com/y"]}})),
        (
            "plain",
            json!({"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]}}),
        ),
        ("ours", labels(json!({LABEL: "false"}))),
        ("theirs", labels(json!({LABEL: "by-annotation"}))),
        ("theirs", labels(json!({LABEL: null}))),
    ] {
        let answer = merge(name, change.clone()).await;
        assert!(answer.refused().contains("ValidatingAdmissionPolicy"), "{name} {change}: {answer:?}");
    }
    for (name, change) in [("plain", json!({LABEL: "by-annotation"})), ("ours", json!({LABEL: null}))] {
        merge(name, labels(change)).await.accepted();
    }
    set(&stage, "plain", json!({"labels": {"x": "y"}})).await;
}
