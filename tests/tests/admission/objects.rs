//! The objects of existing systems, and what the definitions say of them.

use super::JSON;
use serde_json::{Value, json};
use tests::answer::send;
use tests::controller::Stage;

/// The quick start's objects to the letter, and fuller ones as existing systems store them: no field is unknown.
#[tokio::test]
async fn objects_of_existing_systems_load_unchanged() {
    let stage = Stage::set().await;
    stage.namespace("spiderpool").await;
    let text = std::fs::read_to_string(tests::process::root().join("docs/examples/iaas-vlan-config.yaml"))
        .expect("an example");
    let quick_start = text.split("---").map(|document| serde_saphyr::from_str::<Value>(document).expect("YAML"));
    for mut object in quick_start.chain(fuller()) {
        object["apiVersion"] = "spiderpool.spidernet.io/v2beta1".into();
        let (path, plural) = collection(&object);
        let answer = stage.create(&format!("{path}?fieldValidation=Strict"), &object).await;
        let stored = answer.accepted();
        assert_eq!(answer.warnings, Vec::<String>::new(), "{plural}");
        let (sent, kept) = (&object["spec"], &stored["spec"]);
        assert!(includes(kept, sent), "{plural}: {sent} became {kept}");
        if plural == "spiderendpoints" {
            assert!(includes(&stored["status"], &object["status"]), "the status is no subresource: {stored}");
        }
    }

    look(&stage).await;
    refuse(&stage).await;
}

/// Objects as existing systems store them.
fn fuller() -> Vec<Value> {
    let full = json!({
        "apiVersion": "spiderpool.spidernet.io/v2beta1", "kind": "SpiderMultusConfig",
        "metadata": {"name": "full", "namespace": "spiderpool", "annotations": {"multus.spidernet.io/cni-version": "0.3.1"}},
        "spec": {
            "cniType": "macvlan", "enableCoordinator": true, "disableIPAM": false, "chainCNIJsonData": ["{\"type\":\"tuning\"}"],
            "macvlan": {"master": ["eth0", "eth1"], "vlanID": 100, "mtu": 1400, "rdmaResourceName": "spidernet.io/rdma", "bond": {"name": "bond0", "mode": 1, "options": "primary=eth0"}, "ippools": {"ipv4": ["a"], "ipv6": ["b"]}},
            "coordinator": {"mode": "auto", "tunePodRoutes": true, "podDefaultRouteNIC": "eth0", "hijackCIDR": ["10.0.0.0/8"], "detectGateway": false, "podRPFilter": 0},
        },
    });
    let sriov = json!({"kind": "SpiderMultusConfig", "metadata": {"name": "sriov", "namespace": "spiderpool"}, "spec": {"cniType": "sriov", "sriov": {"resourceName": "a/b", "vlanID": 3, "minTxRateMbps": 1, "ippools": {"ipv4": ["a"], "matchMasterSubnet": true}}}});
    let custom = json!({"kind": "SpiderMultusConfig", "metadata": {"name": "custom", "namespace": "spiderpool"}, "spec": {"cniType": "custom", "customCNI": "{}"}});
    let manual = json!({"kind": "SpiderMultusConfig", "metadata": {"name": "manual", "namespace": "spiderpool"}, "spec": {"cniType": "vlan", "vlan": {"master": ["eth1"], "vlanMode": "manual", "vlanID": 0, "mtu": 0, "rdmaResourceName": "", "ippools": {"ipv4": [], "ipv6": []}}}});
    let pool = json!({
        "kind": "SpiderIPPool", "metadata": {"name": "full", "finalizers": ["spiderpool.spidernet.io/x"]},
        "spec": {
            "ipVersion": 4, "subnet": "10.6.0.0/16", "ips": ["10.6.168.101-10.6.168.110", "10.6.1.1"], "excludeIPs": ["10.6.168.105"], "gateway": "10.6.0.1", "default": true, "disable": false,
            "routes": [{"dst": "10.7.0.0/16", "gw": "10.6.0.2"}], "podAffinity": {"matchLabels": {"app": "x"}}, "nodeName": ["n"], "namespaceName": ["ns"], "multusName": ["spiderpool/full"],
            "namespaceAffinity": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}, "nodeAffinity": {"matchLabels": {"a": "b"}},
        },
        "status": {"allocatedIPs": "{\"10.6.1.1\":{\"pod\":\"a/b\",\"podUid\":\"u\"}}", "allocatedIPCount": 1, "totalIPCount": 10},
    });
    let endpoint = json!({
        "kind": "SpiderEndpoint", "metadata": {"name": "pod-1", "namespace": "spiderpool", "finalizers": ["spiderpool.spidernet.io/x"]},
        "status": {"current": {"uid": "u", "node": "node1", "ips": [{"interface": "eth0", "ipv4": "10.6.1.1/16", "ipv4Pool": "full", "vlan": 0, "ipv4Gateway": "10.6.0.1", "cleanGateway": false, "routes": [{"dst": "10.7.0.0/16", "gw": "10.6.0.2"}]}]}, "ownerControllerType": "Deployment", "ownerControllerName": "d"},
    });
    let reserved = json!({"kind": "SpiderReservedIP", "metadata": {"name": "r"}, "spec": {"ipVersion": 4, "ips": ["10.6.0.1-10.6.0.9"]}});
    vec![full, sriov, custom, manual, pool, endpoint, reserved, allocation()]
}

fn allocation() -> Value {
    json!({"kind": "SpiderIPAllocation", "metadata": {"name": "10.6.1.1"}, "spec": {
        "pool": "full", "address": "10.6.1.1", "node": {"name": "node1"}, "pod": {"namespace": "a", "name": "b", "uid": "u"}, "state": "Held",
    }})
}

/// What the columns and the field selectors say.
async fn look(stage: &Stage) {
    let table = |plural: &'static str| {
        let request = http::Request::get(format!("/apis/spiderpool.spidernet.io/v2beta1/{plural}"))
            .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
            .body(Vec::new())
            .expect("a request");
        let admin = stage.admin.clone();
        async move { admin.request::<Value>(request).await.expect("a table") }
    };
    let columns = |table: &Value| -> Vec<String> {
        let columns = table["columnDefinitions"].as_array().expect("a list");
        columns.iter().filter_map(|column| column["name"].as_str().map(ToOwned::to_owned)).collect()
    };
    assert_eq!(
        columns(&table("spiderippools").await)[..6],
        ["Name", "VERSION", "SUBNET", "ALLOCATED-IP-COUNT", "TOTAL-IP-COUNT", "DEFAULT"]
    );
    assert_eq!(
        columns(&table("spiderendpoints").await),
        ["Name", "INTERFACE", "IPV4POOL", "IPV4", "IPV6POOL", "IPV6", "NODE"]
    );
    for (plural, field, count) in [
        ("spiderendpoints", "status.current.node=node1", 1),
        ("spiderendpoints", "status.current.node=node2", 0),
        ("spideripallocations", "spec.node.name=node1", 1),
        ("spideripallocations", "spec.pool=full,spec.pod.name=b", 1),
        ("spideripallocations", "spec.pool=other", 0),
    ] {
        let path = format!("/apis/spiderpool.spidernet.io/v2beta1/{plural}?fieldSelector={field}");
        let found = send(&stage.admin, "GET", &path, JSON, Vec::new()).await.expect("answers");
        assert_eq!(found.accepted()["items"].as_array().map(Vec::len), Some(count), "{field}");
    }
}

/// What the definitions refuse, in words.
async fn refuse(stage: &Stage) {
    for (object, word) in [
        (
            json!({"kind": "SpiderMultusConfig", "spec": {"cniType": "vlan"}}),
            "spec.vlan: Required value: no spec.vlan specified",
        ),
        (
            json!({"kind": "SpiderMultusConfig", "spec": {"cniType": "vlan", "vlan": {"master": []}}}),
            "spec.vlan.master: Required value: master can't be empty",
        ),
        (
            json!({"kind": "SpiderMultusConfig", "spec": {"cniType": "vlan", "vlan": {"master": ["eth1"], "vlanMode": "manual"}}}),
            "spec.vlan.vlanID: Required value: vlanId must not be nil when vlanMode is manual",
        ),
        (
            json!({"kind": "SpiderMultusConfig", "spec": {"cniType": "vlan", "vlan": {"master": ["eth1"], "vlanMode": "auto", "vlanID": 5}}}),
            "spec.vlan.vlanID: Forbidden: vlanId must not be specified when vlanMode is auto",
        ),
        (
            json!({"kind": "SpiderMultusConfig", "spec": {"cniType": "vlan", "vlan": {"master": ["eth1"], "vlanID": 4095}}}),
            "invalid vlanId, please make sure vlanId in range [0,4094]",
        ),
        (
            json!({"kind": "SpiderMultusConfig", "spec": {"cniType": "vlan", "vlan": {"master": ["eth1", "eth2"]}}}),
            "the bond property is nil with multiple Interfaces",
        ),
        (
            json!({"kind": "SpiderMultusConfig", "spec": {"cniType": "vlan", "vlan": {"master": ["eth1"]}, "macvlan": {"master": ["eth1"]}}}),
            "the cniType vlan only supports spec.vlan, please remove other CNI configs",
        ),
        (
            json!({"kind": "SpiderMultusConfig", "spec": {"cniType": "ib-sriov", "ibsriov": {}, "ovs": {}}}),
            "the cniType ib-sriov only supports spec.ibsriov, please remove other CNI configs",
        ),
        (
            json!({"kind": "SpiderMultusConfig", "spec": {"vlan": {"master": ["eth1"]}}}),
            "the cniType custom only supports spec.customCNI, please remove other CNI configs",
        ),
        (
            json!({"kind": "SpiderMultusConfig", "spec": {"cniType": "vlan", "vlan": {"master": ["eth1"], "mtu": -1}}}),
            "MTU must be greater than or equal to 0",
        ),
        (
            json!({"kind": "SpiderMultusConfig", "spec": {"cniType": "ipvlan", "ipvlan": {"master": ["a", "b"], "bond": {"name": ""}}}}),
            "bond name can't be empty",
        ),
        (
            json!({"kind": "SpiderMultusConfig", "spec": {"cniType": "vlan", "vlan": {"master": ["eth1"], "ippools": {"matchMasterSubnet": true}}}}),
            "MatchMasterSubnet feature is not supported for vlan",
        ),
        (json!({"kind": "SpiderIPPool", "spec": {"subnet": "10.0.0.1/24"}}), "without host bits"),
        (json!({"kind": "SpiderIPPool", "spec": {"subnet": "10.0.0.0/24", "gateway": "x"}}), "must be an address"),
        (json!({"kind": "SpiderIPPool", "spec": {"subnet": "10.0.0.0/24", "ipVersion": 5}}), "must be 4 or 6"),
        (
            json!({"kind": "SpiderIPAllocation", "spec": allocation()["spec"].clone()}),
            "metadata.name must be the address",
        ),
    ] {
        let mut object = object;
        object["apiVersion"] = "spiderpool.spidernet.io/v2beta1".into();
        object["metadata"] = json!({"name": "refused", "namespace": "spiderpool"});
        if object["kind"] != "SpiderMultusConfig" {
            object["metadata"] = json!({"name": "refused"});
        }
        let (path, _) = collection(&object);
        let answer = stage.create(&path, &object).await;
        assert!(answer.refused().contains(word), "{word}: {answer:?}");
    }
    let moved = stage
        .merge(
            "/apis/spiderpool.spidernet.io/v2beta1/spiderippools/pool-eth1",
            &json!({"spec": {"subnet": "10.0.0.0/8"}}),
        )
        .await;
    assert!(moved.refused().contains("is not changeable"), "{moved:?}");
}

fn collection(object: &Value) -> (String, String) {
    let plural = format!("{}s", object["kind"].as_str().expect("a kind").to_lowercase());
    let group = "/apis/spiderpool.spidernet.io/v2beta1";
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => (format!("{group}/namespaces/{namespace}/{plural}"), plural),
        None => (format!("{group}/{plural}"), plural),
    }
}

/// Whether `whole` has everything that `part` has.
fn includes(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(key, value)| whole.get(key).is_some_and(|found| includes(found, value)))
        }
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(whole, part)| includes(whole, part))
        }
        (whole, part) => whole == part,
    }
}
