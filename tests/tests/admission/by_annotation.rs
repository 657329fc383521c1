//! Networks that an annotation of a pod selects; of its namespace: `namespaces.rs`.

mod namespaces;

use super::{ETH1, JSON, SUB_ENI, staged, vlan};
use anyhow::ensure;
use serde_json::{Value, json};
use tests::answer::{Answer, annotated, pod_with, send};
use tests::api_server::CONTROLLER;
use tests::controller::{SOON, Stage};
use tests::wait;

const NETWORKS: &str = "k8s.v1.cni.cncf.io/networks";
const RDMA: &str = "cni.spidernet.io/rdma-resource-inject";
const NETWORK: &str = "cni.spidernet.io/network-resource-inject";
const FROM: &str = "cni.spidernet.io/allow-inject-from";
const LABEL: &str = "cni.spidernet.io/inject";

/// An attachment that annotations with this value select, and one more that they do not.
async fn selectable(stage: &Stage, namespace: &str, name: &str, annotations: Value, spec: Value) {
    let path = format!("/apis/spiderpool.spidernet.io/v2beta1/namespaces/{namespace}/spidermultusconfigs");
    let object = json!({
        "apiVersion": "spiderpool.spidernet.io/v2beta1", "kind": "SpiderMultusConfig",
        "metadata": {"name": name, "annotations": annotations}, "spec": spec,
    });
    stage.create(&path, &object).await.accepted();
}

fn sriov(resource: &str) -> Value {
    json!({"cniType": "sriov", "sriov": {"resourceName": resource, "ippools": {"ipv4": ["p"]}}})
}

fn macvlan(master: &str, resource: &str) -> Value {
    json!({"cniType": "macvlan", "macvlan": {"master": [master], "rdmaResourceName": resource, "ippools": {"ipv4": ["p"]}}})
}

fn bare() -> Value {
    json!({"metadata": {"generateName": "bare-"}, "spec": {"containers": [{"name": "a", "image": "x"}]}})
}

fn networks(pod: &Answer) -> Option<&str> {
    pod.accepted()["metadata"]["annotations"][NETWORKS].as_str()
}

async fn set(stage: &Stage, namespace: &str, metadata: Value) {
    stage.merge(&format!("/api/v1/namespaces/{namespace}"), &json!({ "metadata": metadata })).await.accepted();
}

async fn until(what: &str, probe: impl AsyncFn() -> anyhow::Result<()>) {
    wait::until(what, SOON, probe).await;
}

#[tokio::test]
async fn a_pod_gets_what_its_annotation_selects() {
    let (stage, _controller) = staged(&[]).await;
    selectable(&stage, "team-a", "red1", json!({NETWORK: "red"}), vlan("eth1")).await;
    let red = stage.pod("team-a", &pod_with(&json!({NETWORK: "red"}))).await;
    assert_eq!(networks(&red), Some("team-a/red1"), "created in the same second");
    assert_eq!((red.requested(0, SUB_ENI), red.requested(0, ETH1)), (Some("1"), Some("1")));
    let audit = stage.server.audit_annotations("/api/v1/namespaces/team-a/pods");
    let said = "cni.spidernet.io/network-resource-inject=red of the pod selects team-a/red1; spidernet.io/eth1-nic=1 for team-a/red1; spidernet.io/sub-eni=1 for team-a/red1";
    assert!(audit.iter().any(|entry| entry["pods.spiderpool.spidernet.io/injected"] == said), "{audit:#?}");

    // Several, in the order of their masters.
    selectable(&stage, "team-a", "blue1", json!({NETWORK: "blue"}), vlan("eth2")).await;
    selectable(&stage, "team-a", "blue2", json!({NETWORK: "blue"}), vlan("eth1")).await;
    until("both to be known", async || {
        let pod = stage.pod("team-a", &pod_with(&json!({NETWORK: "blue"}))).await;
        ensure!(networks(&pod) == Some("team-a/blue2,team-a/blue1"), "{pod:?}");
        ensure!(pod.requested(0, SUB_ENI) == Some("2"), "{pod:?}");
        Ok(())
    })
    .await;

    // What the pod names by itself stays, to the byte, in its own grammar.
    for (own, merged, count) in [
        ("spiderpool/vlan@net5", "spiderpool/vlan@net5,team-a/red1", "2"),
        (" spiderpool/vlan ,red1", " spiderpool/vlan ,red1", "2"),
        ("red1,red1", "red1,red1", "2"),
        ("", "team-a/red1", "1"),
        (
            "[ {\"name\":\"vlan\", \"namespace\":\"spiderpool\"}\n]",
            "[ {\"name\":\"vlan\", \"namespace\":\"spiderpool\"}\n,{\"name\":\"red1\",\"namespace\":\"team-a\"}]",
            "2",
        ),
        ("[]", r#"[{"name":"red1","namespace":"team-a"}]"#, "1"),
    ] {
        let pod = stage.pod("team-a", &pod_with(&json!({NETWORK: "red", NETWORKS: own}))).await;
        assert_eq!((networks(&pod), pod.requested(0, SUB_ENI)), (Some(merged), Some(count)), "{own:?}");
    }

    // What cannot be fulfilled is refused, with the reason.
    let refused = async |annotations: Value| {
        let pod = stage.pod("team-a", &pod_with(&annotations)).await;
        pod.refused().to_owned()
    };
    let text = refused(json!({NETWORK: "green"})).await;
    assert!(
        text.contains("no spidermultusconfigs with annotation: cni.spidernet.io/network-resource-inject:green found"),
        "{text}"
    );
    let text = refused(json!({NETWORK: ""})).await;
    assert!(text.contains("network-resource-inject: found for namespace team-a"), "{text}");
    let text = refused(json!({RDMA: "red"})).await;
    assert!(
        text.contains("no spidermultusconfigs with annotation: cni.spidernet.io/rdma-resource-inject:red"),
        "{text}"
    );
    let text = refused(json!({NETWORK: "red", NETWORKS: "a/b/c"})).await;
    assert!(text.contains("cannot take the networks") && text.contains("\"a/b/c\" is not of the form"), "{text}");

    // The first annotation counts.
    let both = stage.pod("team-a", &pod_with(&json!({RDMA: "nothing", NETWORK: "red"}))).await;
    assert!(both.refused().contains("rdma-resource-inject:nothing"), "{both:?}");

    // A controller's pods, and the way out.
    let mut owned = pod_with(&json!({NETWORK: "red"}));
    owned["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "owner", "uid": "u", "controller": true}]);
    assert_eq!(networks(&stage.pod("team-a", &owned).await), Some("team-a/red1"));
    let mut out = pod_with(&json!({NETWORK: "red"}));
    out["metadata"]["labels"] = json!({LABEL: "false"});
    assert_eq!(networks(&stage.pod("team-a", &out).await), None);

    // All that costs no request.
    let gets = || {
        stage
            .server
            .requests_of(CONTROLLER)
            .into_iter()
            .filter(|request| request.verb == "get" && !request.uri.contains("leases"))
            .count()
    };
    let before = gets();
    for _ in 0..20 {
        stage.pod("team-a", &pod_with(&json!({NETWORK: "red", NETWORKS: "spiderpool/vlan"}))).await.accepted();
        stage.pod("team-a", &pod_with(&json!({NETWORK: "green"}))).await.refused();
    }
    assert_eq!(gets(), before);
}

/// Another namespace's attachments, where it says so.
#[tokio::test]
async fn attachments_of_others_only_where_they_are_shared() {
    let (stage, _controller) = staged(&[]).await;
    for name in ["secret1", "secret2"] {
        selectable(&stage, "spiderpool", name, json!({NETWORK: "red"}), vlan("eth1")).await;
    }
    let pod = pod_with(&json!({NETWORK: "red"}));
    until("a refusal that counts two", async || {
        let text = stage.pod("team-a", &pod).await.refused().to_owned();
        ensure!(text.contains("found for namespace team-a; 2 are in namespaces that do not share them"), "{text}");
        ensure!(text.contains("cni.spidernet.io/allow-inject-from: team-a"), "{text}");
        ensure!(!text.contains("secret") && !text.contains("spiderpool/"), "{text}");
        Ok(())
    })
    .await;
    let plain = stage.pod("team-a", &annotated("spiderpool/secret1")).await;
    assert_eq!(plain.requested(0, SUB_ENI), Some("1"), "the plain way stays open");
    for (from, given) in [("team-b", false), ("team-b, team-a", true), ("", false), ("*", true)] {
        set(&stage, "spiderpool", json!({"annotations": {FROM: from}})).await;
        until("the namespace's word to count", async || {
            let pod = stage.pod("team-a", &pod).await;
            ensure!((pod.status < 300) == given, "{from:?}: {pod:?}");
            ensure!(!given || networks(&pod) == Some("spiderpool/secret1,spiderpool/secret2"), "{pod:?}");
            Ok(())
        })
        .await;
    }
    set(&stage, "spiderpool", json!({"annotations": {FROM: null}})).await;
    selectable(&stage, "team-a", "own", json!({NETWORK: "red"}), vlan("eth1")).await;
    until("its own alone", async || {
        let pod = stage.pod("team-a", &pod).await;
        ensure!(pod.status < 300 && networks(&pod) == Some("team-a/own"), "{pod:?}");
        Ok(())
    })
    .await;
}

/// Devices of other plugins come with what an annotation selects, and with nothing else.
#[tokio::test]
async fn devices_of_other_plugins() {
    let (stage, _controller) = staged(&[]).await;
    // Some are of a time when attachments were not checked.
    let checks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/spiderpool-controller";
    send(&stage.admin, "DELETE", checks, JSON, Vec::new()).await.expect("answers").accepted();
    let unchecked = json!({"apiVersion": "spiderpool.spidernet.io/v2beta1", "kind": "SpiderMultusConfig", "metadata": {"name": "probe"}, "spec": vlan("")});
    until("attachments not to be checked", async || {
        let path = "/apis/spiderpool.spidernet.io/v2beta1/namespaces/team-a/spidermultusconfigs?dryRun=All";
        let probe = stage.create(path, &unchecked).await;
        ensure!(probe.status == 201, "{probe:?}");
        Ok(())
    })
    .await;
    for (name, annotations, spec) in [
        ("vf1", json!({NETWORK: "vf"}), sriov("example.com/vf")),
        ("vf2", json!({NETWORK: "vf"}), sriov("example.com/vf")),
        ("rdma1", json!({RDMA: "rdma"}), macvlan("eth1", "example.com/rdma")),
        ("rdma2", json!({RDMA: "rdma"}), macvlan("eth2", "example.com/rdma")),
        (
            "ib",
            json!({RDMA: "ib"}),
            json!({"cniType": "ib-sriov", "ibsriov": {"resourceName": "example.com/ib", "ippools": {"ipv4": ["p"]}}}),
        ),
        ("none", json!({RDMA: "none"}), vlan("eth1")),
        ("ovs", json!({NETWORK: "ovs"}), json!({"cniType": "ovs", "ovs": {}})),
        ("dry", json!({NETWORK: "dry"}), json!({"cniType": "sriov", "sriov": {"resourceName": "example.com/vf"}})),
        ("last", json!({NETWORK: "last"}), vlan("eth1")),
    ] {
        selectable(&stage, "team-a", name, annotations, spec).await;
    }
    until("all to be known", async || {
        let pod = stage.pod("team-a", &pod_with(&json!({NETWORK: "last"}))).await;
        ensure!(pod.status < 300, "{pod:?}");
        Ok(())
    })
    .await;
    let pod = async |annotations: Value| stage.pod("team-a", &pod_with(&annotations)).await;
    let vf = pod(json!({NETWORK: "vf"})).await;
    assert_eq!(
        (networks(&vf), vf.requested(0, "example.com/vf")),
        (Some("team-a/vf1,team-a/vf2"), Some("2")),
        "one each"
    );
    let rdma = pod(json!({RDMA: "rdma"})).await;
    assert_eq!(
        (networks(&rdma), rdma.requested(0, "example.com/rdma")),
        (Some("team-a/rdma1,team-a/rdma2"), Some("1"))
    );
    assert_eq!((rdma.requested(0, ETH1), rdma.requested(0, "spidernet.io/eth2-nic")), (Some("1"), Some("1")));
    assert_eq!(pod(json!({RDMA: "ib"})).await.requested(0, "example.com/ib"), Some("1"));
    let plain = pod(json!({NETWORKS: "vf1,rdma1"})).await;
    assert_eq!((plain.requested(0, "example.com/vf"), plain.requested(0, "example.com/rdma")), (None, None));
    let mut own = pod_with(&json!({NETWORK: "vf"}));
    own["spec"]["containers"][0]["resources"] = json!({"limits": {"example.com/vf": "4"}});
    assert_eq!(stage.pod("team-a", &own).await.requested(0, "example.com/vf"), Some("4"), "what the user wrote");
    for (annotations, text) in [
        (json!({RDMA: "none"}), "rdmaResourceName can not empty for spidermultusconfig team-a/none"),
        (json!({NETWORK: "ovs"}), "network resource injection does not support cniType: ovs"),
        (json!({NETWORK: "dry"}), "no any ippools configured for spidermultusconfig team-a/dry"),
    ] {
        let refused = pod(annotations).await;
        assert!(refused.refused().contains(text), "{refused:?}");
    }
}

/// What Multus keeps apart is not selected, and gets no requests where it is named.
#[tokio::test]
async fn where_multus_keeps_namespaces_apart() {
    let stage = Stage::set().await;
    stage.grant().await;
    for namespace in ["spiderpool", "team-a", "global"] {
        stage.namespace(namespace).await;
        selectable(&stage, namespace, "red", json!({NETWORK: "red"}), vlan("eth1")).await;
        set(&stage, namespace, json!({"annotations": {FROM: "*"}})).await;
    }
    selectable(&stage, "spiderpool", "blue", json!({NETWORK: "blue"}), vlan("eth1")).await;
    let conf = format!("{}multus: {{namespaceIsolation: true, globalNamespaces: [global]}}\n", Stage::conf());
    let controller = stage.ready_controller(&conf).await;
    stage.webhooks(&controller.url, &stage.authority(), &[]).await;
    until("the API server to ask", async || {
        let pod = stage.create("/api/v1/namespaces/team-a/pods?dryRun=All", &annotated("nowhere")).await;
        ensure!(pod.warnings.iter().any(|text| text.contains("there is no attachment team-a/nowhere")), "{pod:?}");
        Ok(())
    })
    .await;
    let pod = stage.pod("team-a", &pod_with(&json!({NETWORK: "red"}))).await;
    assert_eq!((networks(&pod), pod.requested(0, SUB_ENI)), (Some("global/red,team-a/red"), Some("2")));
    let apart = stage.pod("team-a", &pod_with(&json!({NETWORK: "blue"}))).await;
    assert!(apart.refused().contains("1 is in namespaces that Multus keeps apart from it"), "{apart:?}");
    let plain = stage.pod("team-a", &annotated("spiderpool/red,global/red")).await;
    assert_eq!(plain.requested(0, SUB_ENI), Some("1"));
    let warned = plain
        .warnings
        .iter()
        .any(|text| text.contains("Multus keeps namespaces apart") && text.contains("spiderpool/red"));
    assert!(warned, "{plain:?}");
    let default = json!({"v1.multus-cni.io/default-network": "spiderpool/red"});
    let default = stage.pod("team-a", &pod_with(&default)).await;
    assert_eq!(default.requested(0, SUB_ENI), Some("1"), "the default network may be anywhere");
}
