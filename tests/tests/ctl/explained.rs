//! Pools, pods and nodes.

use crate::stage::{ANN, GROUP, PODS, Stage, object, offers};
use serde_json::{Value, json};
use tests::chart;
use tests::wait;

const CONF: &str = "
podResourceInject: {enabled: true}
iaasNetworkProvider: {serverUrl: 'http://provider'}
agent:
  networkResourcePlugin:
    enabled: true
    resourceAdvertisement: {subENI: {rules: [{defaultMaxCount: 2}]}, masterNIC: {rules: [{}]}}
";

fn networks() -> Value {
    json!({"k8s.v1.cni.cncf.io/networks": "lan"})
}

fn on(node: &str) -> Value {
    let requests = json!({"spidernet.io/sub-eni": "1", "spidernet.io/eth1-nic": "1"});
    let resources = json!({"requests": requests, "limits": requests});
    let spec = json!({"containers": [{"name": "c", "image": "i", "resources": resources}]});
    if node.is_empty() {
        return spec;
    }
    let mut spec = spec;
    spec["nodeName"] = node.into();
    spec
}

/// A cluster with one node, one network and a pool of three addresses.
async fn cluster() -> (Stage, String) {
    let stage = Stage::set().await;
    let node = stage.node("node1", &offers("2")).await;
    stage.agent("node1").await;
    stage.conf(CONF).await;
    stage.pool("pool-a", &["10.6.0.10-10.6.0.12"], &json!({"podAffinity": {"matchLabels": {"app": "web"}}})).await;
    let vlan = json!({"cniType": "vlan", "vlan": {"master": ["eth1"], "ippools": {"ipv4": ["pool-a"]}}});
    let config = object("SpiderMultusConfig", "lan", &json!({"spec": vlan}));
    stage.create(&format!("{GROUP}/namespaces/default/spidermultusconfigs"), &config).await;
    (stage, node)
}

/// Multus's definition, and a network of it.
async fn defined(stage: &Stage) {
    for document in tests::controller::rendered("multus/crd.yaml", &["--set", "multus.multusCNI.install=true"]) {
        stage.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &document).await;
    }
    let ipam = json!({"type": "spiderpool", "default_ipv4_ippool": ["pool-a"]});
    let config =
        json!({"cniVersion": "0.3.1", "name": "lan", "type": "vlan", "master": "eth1", "ipam": ipam}).to_string();
    let network = json!({"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
                         "metadata": {"name": "lan"}, "spec": {"config": config}});
    let path = "/apis/k8s.cni.cncf.io/v1/namespaces/default/network-attachment-definitions";
    wait::until("the definition to be served", crate::stage::SOON, async || {
        let answer = chart::create(&stage.admin, path, &network).await;
        anyhow::ensure!(answer.status < 300, "{answer:?}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn pools_are_counted_from_what_is_held() {
    let (stage, node) = cluster().await;
    stage.pool("pool-b", &["10.6.0.20"], &json!({"disable": true, "default": true})).await;
    let reserved = object("SpiderReservedIP", "gateways", &json!({"spec": {"ips": ["10.6.0.12"]}}));
    stage.create(&format!("{GROUP}/spiderreservedips"), &reserved).await;
    stage.held("10.6.0.10", ["web", "u"], ["node1", &node], &json!({})).await;
    let status = json!({"status": {"allocatedIPCount": 5, "totalIPCount": 3}});
    stage.merge(&format!("{GROUP}/spiderippools/pool-a/status"), &status).await;

    let all = stage.run("admin", &["pools"]);
    assert_eq!(all.code, 0, "{all:?}");
    all.line(&["pool-a", "10.6.0.0/24", "4", "3", "1 (status: 5)", "1", "-", "pods(app=web)"]);
    all.line(&["pool-b", "1 (status: none)", "0 (status: none)", "1", "disabled,default", "everybody"]);
    let json = stage.run("admin", &["pools", "-o", "json"]).json();
    let pool = &json["pools"][0];
    assert_eq!((&pool["total"], &pool["allocated"], &pool["free"]), (&json!(3), &json!(1), &json!(1)));
    assert_eq!(pool["status"], json!({"allocated": 5, "total": 3}));
    assert_eq!(json["pools"][1]["disabled"], true);

    let one = stage.run("admin", &["pools", "pool-a"]);
    assert!(one.code == 0 && !one.out.contains("pool-b"), "{one:?}");
    one.line(&["10.6.0.10", "default", "web", "net1", "node1", "Held"]);
    let unknown = stage.run("admin", &["pools", "pool-c"]);
    assert_eq!(unknown.code, 1);
    assert!(unknown.err.contains("there is no SpiderIPPool pool-c"), "{unknown:?}");
}

#[tokio::test]
async fn more_objects_than_one_page_are_all_read() {
    let (stage, node) = cluster().await;
    let many: Vec<_> = (0..=1).flat_map(|high| (0..=255).map(move |low| format!("10.7.{high}.{low}"))).collect();
    for few in many.chunks(32) {
        let held = few.iter().map(|address| async {
            stage.held(address, ["web", "u"], ["node1", &node], &json!({})).await;
        });
        futures::future::join_all(held).await;
    }
    let all = stage.run("admin", &["pools", "-o", "json"]).json();
    assert_eq!(all["pools"][0]["allocated"], 512);
    let one = stage.run("admin", &["pools", "pool-a", "-o", "json"]).json();
    assert_eq!(one["addresses"].as_array().map(Vec::len), Some(512));
    let lists = stage.server.requests_until_now("admin").await;
    let paged = lists
        .iter()
        .filter(|request| request.uri.contains("spideripallocations?") && request.uri.contains("continue="));
    assert_eq!(paged.count(), 2, "one page more for each");
}

#[tokio::test]
async fn a_pod_that_is_well() {
    let (stage, node) = cluster().await;
    defined(&stage).await;
    let uid = stage.pod("web", &networks(), &on("node1"), &json!({"phase": "Running"})).await;
    stage.held("10.6.0.10", ["web", &uid], ["node1", &node], &json!({})).await;
    stage.shown(["web", &uid], "node1", "10.6.0.10").await;
    for arguments in [&["pod", "default/web"][..], &["pod", "web", "-n", "default"], &["pod", "web"]] {
        let ran = stage.run("admin", arguments);
        assert_eq!(ran.code, 0, "{ran:?}\n{}", ran.out);
        ran.line(&["ok", "pod", "Running on node node1"]);
        ran.line(&["ok", "networks", "net1: default/lan, vlan on eth1, its VLAN from the provider"]);
        ran.line(&["ok", "resources", "spidernet.io/sub-eni: 1, and its networks need 1"]);
        ran.line(&[
            "ok",
            "node",
            "its agent kube-system/spiderpool-agent-node1 is ready",
            "sub-eni: pods ask for 1 of 2",
        ]);
        ran.line(&["ok", "pools", "named by the network's configuration: pool-a (2 of 3 free, for pods(app=web))"]);
        ran.line(&["ok", "addresses", "10.6.0.10 of pool-a for net1: Held on node node1, sandbox 0123456789ab"]);
        ran.line(&["ok", "endpoint", "net1: 10.6.0.10, VLAN 7"]);
        ran.line(&["verdict: nothing is wrong"]);
    }
    let json = stage.run("admin", &["pod", "web", "-ojson"]).json();
    assert_eq!(
        json["pod"],
        json!({"namespace": "default", "name": "web", "exists": true, "uid": uid, "phase": "Running", "node": "node1"})
    );
    assert_eq!(json["verdict"], json!({"ok": true, "text": "nothing is wrong"}));
    assert_eq!(json["allocations"][0]["address"], "10.6.0.10");
    assert!(json["findings"].as_array().is_some_and(|all| all.iter().all(|one| one["level"] == "ok")), "{json:#}");
}

#[tokio::test]
async fn a_pod_without_an_address_is_told_why() {
    let (stage, node) = cluster().await;
    // Multus is not installed yet.
    let uid = stage.pod("web", &networks(), &on("node1"), &json!({"phase": "Pending"})).await;
    let ran = stage.run("admin", &["pod", "web"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    ran.line(&["WRONG", "networks", "default/lan has a SpiderMultusConfig and no NetworkAttachmentDefinition"]);
    defined(&stage).await;
    for (n, address) in ["10.6.0.10", "10.6.0.11", "10.6.0.12"].into_iter().enumerate() {
        stage.held(address, [&format!("other-{n}"), "o"], ["node1", &node], &json!({})).await;
    }
    let event = json!({
        "metadata": {"name": "web.1"}, "type": "Warning", "reason": "FailedCreatePodSandBox",
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "web", "uid": uid},
        "message": "plugin failed: all addresses of IPv4 are used out in pool-a (3 addresses)",
        "lastTimestamp": "2026-01-01T00:00:00Z",
    });
    stage.create("/api/v1/namespaces/default/events", &event).await;
    let ran = stage.run("admin", &["pod", "web"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    ran.line(&["WRONG", "pools", "none of its pools has an address to give", "pool-a (0 of 3 free"]);
    ran.line(&["-> give the pool more addresses (kubectl edit spiderippool pool-a)", "spiderpoolctl pools pool-a"]);
    ran.line(&[
        "WRONG",
        "events",
        "FailedCreatePodSandBox: plugin failed: all addresses of IPv4 are used out in pool-a",
    ]);
    ran.line(&["verdict: none of its pools has an address to give", "(and 1 more above)"]);
    ran.line(&["next:", "give the pool more addresses"]);
}

#[tokio::test]
async fn a_pod_on_no_node_is_told_how_much_is_free_where() {
    let (stage, _) = cluster().await;
    defined(&stage).await;
    for name in ["a", "b"] {
        stage.pod(name, &networks(), &on("node1"), &json!({"phase": "Running"})).await;
    }
    let message = "0/1 nodes are available: 1 Insufficient spidernet.io/sub-eni.";
    let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message});
    stage.pod("web", &networks(), &on(""), &json!({"phase": "Pending", "conditions": [condition]})).await;
    let ran = stage.run("admin", &["pod", "web"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    ran.line(&["WRONG", "node", "it is on no node: Unschedulable: 0/1 nodes are available"]);
    ran.line(&["-", "node", "node1:", "spidernet.io/sub-eni: 0 of 2 free, 1 needed"]);
    ran.line(&["next:", "every node is full of spidernet.io/sub-eni"]);

    let node = stage.run("admin", &["node", "node1"]);
    assert_eq!(node.code, 0, "{node:?}");
    node.line(&["spidernet.io/sub-eni", "2", "2", "2"]);
    node.line(&["default", "a", "spidernet.io/eth1-nic: 1, spidernet.io/sub-eni: 1"]);
    assert!(!node.out.contains("cpu"), "{node:?}");
}

#[tokio::test]
async fn a_pod_that_is_gone_still_has_what_is_held_under_its_name() {
    let (stage, node) = cluster().await;
    stage.held("10.6.0.10", ["web", "old"], ["node1", &node], &json!({})).await;
    stage.shown(["web", "old"], "node1", "10.6.0.10").await;
    let ran = stage.run("admin", &["pod", "web"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    ran.line(&["-", "pod", "there is no pod default/web; what its name still has is below"]);
    ran.line(&["WRONG", "addresses", "10.6.0.10 of pool-a", "its pod is gone"]);
    ran.line(&["-", "endpoint", "of the pod with UID old on node node1"]);
    let nobody = stage.run("admin", &["pod", "nobody"]);
    assert_eq!(nobody.code, 1);
    nobody.line(&["verdict: there is no pod default/nobody, and nothing is held under its name"]);

    // Another pod has got the name.
    stage.pod("web", &networks(), &on("node1"), &json!({"phase": "Pending"})).await;
    let ran = stage.run("admin", &["pod", "web"]);
    ran.line(&["WRONG", "endpoint", "it is of an earlier pod of this name, UID old on node node1"]);
    ran.line(&["-", "addresses", "it is of an earlier pod of this name, UID old"]);
    assert_eq!(stage.get(PODS).await["items"].as_array().map(Vec::len), Some(1), "nothing was written");
}

#[tokio::test]
async fn a_node_says_what_is_held_there() {
    let (stage, node) = cluster().await;
    stage.held("10.6.0.10", ["a", "u"], ["node1", &node], &json!({"detached": true})).await;
    let releasing = json!({"state": "Releasing", "releasing": {"releaser": "r", "then": "Delete"}, "pool": "pool-b"});
    stage.held("10.6.0.11", ["b", "u"], ["node1", &node], &releasing).await;
    stage.held("10.6.0.12", ["c", "u"], ["node2", ""], &json!({})).await;
    let ran = stage.run("admin", &["node", "node1", "-o", "json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let json = ran.json();
    assert_eq!(
        json["addresses"],
        json!([
            {"pool": "pool-a", "held": 1, "releasing": 0, "detached": 1},
            {"pool": "pool-b", "held": 0, "releasing": 1, "detached": 0},
        ])
    );
    assert_eq!(json["node"]["agent"], "kube-system/spiderpool-agent-node1");
    let sub_eni = json!({"name": "spidernet.io/sub-eni", "capacity": 2, "allocatable": 2, "requested": 0});
    assert_eq!(json["resources"][1], sub_eni);

    let gone = stage.run("admin", &["node", "node2"]);
    assert_eq!(gone.code, 1, "{gone:?}");
    gone.line(&["verdict: there is no Node node2"]);
    gone.line(&["pool-a", "1", "0", "0"]);
    let taints = json!({"spec": {"taints": [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]}});
    stage.merge("/api/v1/nodes/node1", &taints).await;
    let off = stage.run("admin", &["node", "node1"]);
    assert_eq!(off.code, 1);
    off.line(&["verdict: node1 is tainted out-of-service"]);
}

#[tokio::test]
async fn who_may_only_view_sees_what_that_shows() {
    let (stage, node) = cluster().await;
    let uid = stage.pod("web", &networks(), &on("node1"), &json!({"phase": "Running"})).await;
    stage.held("10.6.0.10", ["web", &uid], ["node1", &node], &json!({})).await;
    stage.shown(["web", &uid], "node1", "10.6.0.10").await;
    let ran = stage.run(ANN, &["pools"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("cannot list resource \"spiderippools\""), "{ran:?}");

    chart::install(&stage.admin, "people.yaml").await;
    stage.bind("spiderpool-view", ANN).await;
    wait::until("the right to see pools", crate::stage::SOON, async || {
        let ran = stage.run(ANN, &["pools"]);
        anyhow::ensure!(ran.code == 0, "{ran:?}");
        Ok(())
    })
    .await;
    let blind = stage.run(ANN, &["pod", "web"]);
    assert_eq!(blind.code, 2, "pods are what it is about: {blind:?}");
    // The cluster's own role takes ours in, where its controller runs; here pods alone.
    stage.grant("pods", ANN, &json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}])).await;
    wait::until("the right to get pods", crate::stage::SOON, async || {
        let ran = stage.run(ANN, &["pod", "web"]);
        anyhow::ensure!(ran.code == 0, "{ran:?}");
        Ok(())
    })
    .await;
    let ran = stage.run(ANN, &["pod", "web"]);
    ran.line(&["?", "node", "not looked at: nodes \"node1\" is forbidden"]);
    ran.line(&["?", "events", "not looked at: events is forbidden"]);
    ran.line(&["verdict: nothing is wrong in what could be looked at"]);
}
