//! One pod that is well, as facts; and what is said of facts.

use crate::agents::Agent;
use crate::finding::{Finding, Level};
use crate::held::Held;
use crate::machines::Machine;
use crate::pod::explain::explain;
use crate::pod::facts::Facts;
use crate::pod::mentions::mentions;
use crate::pod::network::{Config, Definition, Network};
use crate::pools::Pool;
use crate::requests::Counts;
use k8s_api::conf::{Conf, Multus};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use k8s_openapi::jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const CONF: &str = "
podResourceInject: {enabled: true}
iaasNetworkProvider: {serverUrl: 'http://provider'}
agent: {networkResourcePlugin: {enabled: true, resourceAdvertisement: {subENI: {rules: [{defaultMaxCount: 4}]}, masterNIC: {rules: [{}]}}}}
";

pub(super) fn of<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("as its kind has it")
}

pub(super) fn pod(phase: &str) -> Value {
    let resources = json!({"requests": {"spidernet.io/sub-eni": "1", "spidernet.io/eth1-nic": "1"}});
    json!({
        "metadata": {"namespace": "default", "name": "web-0", "uid": "u", "creationTimestamp": "1970-01-01T00:00:00Z",
                     "annotations": {"k8s.v1.cni.cncf.io/networks": "net"}},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "resources": resources}]},
        "status": {"phase": phase},
    })
}

pub(super) fn held(more: &Value) -> Held {
    let mut spec = json!({
        "pool": "a", "address": "10.0.0.1", "node": {"name": "n"}, "state": "Held", "interface": "net1",
        "containerId": "0123456789abcdef", "pod": {"namespace": "default", "name": "web-0", "uid": "u"},
        "provider": {"server": "http://provider", "subnet": "10.0.0.0/24", "bindId": "b"},
    });
    spec.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
    let metadata = json!({"name": "10.0.0.1", "uid": "x", "resourceVersion": "1"});
    Held::read(&of(json!({"metadata": metadata, "spec": spec})))
}

pub(super) fn endpoint(uid: &str, bind_id: &str) -> Result<store::Endpoint, String> {
    let entry = json!({"interface": "net1", "ipv4": "10.0.0.1/24", "ipv4Pool": "a", "vlan": 7, "bindId": bind_id});
    store::endpoint_of(&of(json!({
        "metadata": {"namespace": "default", "name": "web-0", "uid": "e", "resourceVersion": "1"},
        "status": {"current": {"uid": uid, "node": "n", "ips": [entry]}},
    })))
}

pub(super) fn pool(name: &str, more: &Value) -> Pool {
    let mut spec = json!({"subnet": "10.0.0.0/24", "ips": ["10.0.0.1-10.0.0.2"]});
    spec.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
    Pool::read(&of(json!({"metadata": {"name": name}, "spec": spec})))
}

pub(super) fn networks(pod: &Pod, spec: Option<Value>, defined: bool) -> Vec<Network> {
    let found = mentions(pod, "default", &Multus::default()).all.into_iter();
    let config = spec.map(|spec| Config::read(&of(json!({"metadata": {"name": "net"}, "spec": spec}))).1);
    let ipam = json!({"type": "vlan", "ipam": {"type": "spiderpool", "default_ipv4_ippool": ["a"]}}).to_string();
    let definition = Definition::read(&of(json!({"metadata": {"name": "net"}, "spec": {"config": ipam}})));
    let definition = defined.then_some(definition);
    found.map(|mention| Network { mention, config: Ok(config.clone()), definition: Ok(definition.clone()) }).collect()
}

pub(super) fn vlan() -> Value {
    json!({"cniType": "vlan", "vlan": {"master": ["eth1"], "ippools": {"ipv4": ["a"]}}})
}

/// A pod that runs and has all that it needs.
pub(super) fn well() -> Facts {
    let pod: Pod = of(pod("Running"));
    let counts =
        |count| Counts::from([("spidernet.io/sub-eni".to_owned(), count), ("spidernet.io/eth1-nic".to_owned(), 10)]);
    let machine = Machine { name: "n".to_owned(), ready: true, allocatable: counts(4), ..Machine::default() };
    Facts {
        now: Timestamp::from_second(180).expect("a time"),
        namespace: "default".to_owned(),
        name: "web-0".to_owned(),
        system_namespace: "kube-system".to_owned(),
        networks: networks(&pod, Some(vlan()), true),
        pod: Some(pod),
        of_namespace: Ok(Some(Namespace::default())),
        conf: Ok(Conf::parse(CONF).expect("legal")),
        pools: Ok(vec![pool("a", &json!({}))]),
        free: BTreeMap::from([("a".to_owned(), Ok(1))]),
        nodes: Ok(vec![machine]),
        more_nodes: 0,
        requested: BTreeMap::from([("n".to_owned(), Ok(counts(1)))]),
        agents: Ok(BTreeMap::from([("n".to_owned(), Agent { pod: "kube-system/agent".to_owned(), ready: true })])),
        allocations: Ok(vec![held(&json!({}))]),
        retained: BTreeSet::new(),
        endpoint: Ok(Some(endpoint("u", "b"))),
        events: Ok(Vec::new()),
    }
}

/// A pod that waits for its sandbox, with nothing yet.
pub(super) fn waits() -> Facts {
    let pod: Pod = of(pod("Pending"));
    Facts { pod: Some(pod), allocations: Ok(Vec::new()), endpoint: Ok(None), ..well() }
}

/// A pod on no node.
pub(super) fn unplaced() -> Facts {
    let mut pod = pod("Pending");
    pod["spec"]["nodeName"] = Value::Null;
    let message = "0/1 nodes are available: 1 Insufficient spidernet.io/sub-eni.";
    pod["status"]["conditions"] =
        json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]);
    Facts { pod: Some(of(pod)), ..waits() }
}

pub(super) fn with_pod(facts: Facts, change: impl FnOnce(&mut Value)) -> Facts {
    let mut pod = serde_json::to_value(facts.pod.as_ref().expect("a pod")).expect("JSON");
    change(&mut pod);
    Facts { pod: Some(of(pod)), ..facts }
}

pub(super) fn texts(facts: &Facts, level: Level) -> Vec<String> {
    let found = explain(facts).into_iter().filter(|finding| finding.level == level);
    found.map(|finding| format!("{}: {}", finding.step, finding.text)).collect()
}

/// The only fault, which must begin so.
pub(super) fn is_wrong(facts: &Facts, begin: &str) {
    let wrong = texts(facts, Level::Wrong);
    assert_eq!(wrong.len(), 1, "{begin}: {wrong:#?}");
    assert!(wrong[0].starts_with(begin), "{begin}: {}", wrong[0]);
    let todo = explain(facts).into_iter().find(Finding::is_wrong).and_then(|finding| finding.todo);
    assert!(todo.is_some_and(|todo| !todo.is_empty()), "{begin}");
}

pub(super) fn is_noted(facts: &Facts, part: &str) {
    assert_eq!(texts(facts, Level::Wrong), Vec::<String>::new(), "{part}");
    let notes = texts(facts, Level::Note);
    assert!(notes.iter().any(|note| note.contains(part)), "{part}: {notes:#?}");
}
