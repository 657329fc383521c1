//! One thing that is left behind at a time.

use super::facts::{Facts, Shown};
use super::judge::{By, Leak, judge};
use crate::agents::Agent;
use crate::held::Held;
use crate::machines::Machine;
use crate::providers::Providers;
use k8s_api::conf::{Conf, Gc};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};

fn held(more: &Value) -> Held {
    let mut spec = json!({
        "pool": "a", "address": "10.0.0.1", "node": {"name": "n", "uid": "nu"}, "state": "Held", "interface": "net1",
        "pod": {"namespace": "default", "name": "web-0", "uid": "u"},
    });
    spec.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
    let metadata =
        json!({"name": "10.0.0.1", "uid": "x", "resourceVersion": "1", "creationTimestamp": "1970-01-01T00:00:00Z"});
    Held::read(&serde_json::from_value(json!({"metadata": metadata, "spec": spec})).expect("an object"))
}

fn shown(uid: &str, ips: &Value) -> Shown {
    let object = json!({
        "metadata": {"namespace": "default", "name": "web-0", "uid": "e", "resourceVersion": "1"},
        "status": {"current": {"uid": uid, "node": "n", "ips": ips}},
    });
    Shown {
        key: ("default".to_owned(), "web-0".to_owned()),
        created: Some(Timestamp::UNIX_EPOCH),
        owned: false,
        finalizers: Vec::new(),
        what: store::endpoint_of(&serde_json::from_value(object).expect("an object")),
    }
}

fn entry() -> Value {
    json!([{"interface": "net1", "ipv4": "10.0.0.1/24", "ipv4Pool": "a"}])
}

/// A pod that lives on a node that is there, and has all that it is shown with.
fn well() -> Facts {
    let machine = Machine { name: "n".to_owned(), uid: "nu".to_owned(), ready: true, ..Machine::default() };
    let agent = Agent { pod: "kube-system/agent".to_owned(), ready: true };
    Facts {
        now: Timestamp::from_second(120).expect("a time"),
        gc: Gc::default(),
        providers: Providers::default(),
        allocations: vec![held(&json!({}))],
        pods: HashMap::from([(("default".to_owned(), "web-0".to_owned()), vec!["u".to_owned()])]),
        endpoints: Ok(vec![shown("u", &entry())]),
        machines: Ok(BTreeMap::from([("n".to_owned(), machine)])),
        agents: Ok(BTreeMap::from([("n".to_owned(), agent)])),
        retained: BTreeSet::new(),
        records: false,
        not_seen: Vec::new(),
    }
}

/// The same without the pod.
fn gone() -> Facts {
    Facts { pods: HashMap::new(), ..well() }
}

fn only(facts: &Facts) -> Leak {
    let leaks = judge(facts);
    assert_eq!(leaks.len(), 1, "{leaks:#?}");
    leaks[0].clone()
}

fn is(facts: &Facts, by: By, reason: &str, when: &str) {
    let leak = only(facts);
    assert_eq!(leak.freed_by, by, "{leak:#?}");
    assert!(leak.reason.contains(reason) && leak.when.contains(when), "{reason} {when}: {leak:#?}");
}

#[test]
fn what_is_needed_is_no_leak() {
    assert_eq!(judge(&well()), []);
    assert_eq!(judge(&Facts { retained: BTreeSet::from(["10.0.0.1".to_owned()]), ..gone() }), []);
}

#[test]
fn an_agent_frees_what_is_of_its_node() {
    is(&gone(), By::Agent, "its pod is gone or has ended", "within five minutes");
    let other = HashMap::from([(("default".to_owned(), "web-0".to_owned()), vec!["v".to_owned()])]);
    is(&Facts { pods: other, ..well() }, By::Agent, "another pod has the name", "within five minutes");
    is(&Facts { agents: Ok(BTreeMap::new()), ..gone() }, By::Agent, "gone", "none does now");
    let agent = Agent { pod: "kube-system/agent".to_owned(), ready: false };
    let unready = Facts { agents: Ok(BTreeMap::from([("n".to_owned(), agent)])), ..gone() };
    is(&unready, By::Agent, "gone", "when the agent kube-system/agent is ready");
    let machine = Machine { name: "n".to_owned(), uid: "nu".to_owned(), ..Machine::default() };
    let away = Facts { machines: Ok(BTreeMap::from([("n".to_owned(), machine)])), ..gone() };
    is(&away, By::Agent, "gone", "when node n is back");
    is(&Facts { endpoints: Ok(Vec::new()), ..well() }, By::Agent, "no endpoint shows it", "within five minutes");
    let young = Facts { now: Timestamp::from_second(30).expect("a time"), endpoints: Ok(Vec::new()), ..well() };
    assert_eq!(judge(&young), []);
}

#[test]
fn the_controller_frees_what_is_of_nodes_that_are_gone() {
    let nowhere = |facts: Facts| Facts { machines: Ok(BTreeMap::new()), ..facts };
    is(&nowhere(gone()), By::Controller, "gone", "10 minutes after the node went");
    is(&nowhere(well()), By::Kubernetes, "its node is gone, its pod not yet", "");
    let other = Machine { name: "n".to_owned(), uid: "other".to_owned(), ready: true, ..Machine::default() };
    is(
        &Facts { machines: Ok(BTreeMap::from([("n".to_owned(), other)])), ..gone() },
        By::Controller,
        "gone",
        "10 minutes",
    );
    let off = Machine { name: "n".to_owned(), out_of_service: true, uid: "nu".to_owned(), ..Machine::default() };
    is(
        &Facts { machines: Ok(BTreeMap::from([("n".to_owned(), off)])), ..gone() },
        By::Controller,
        "gone",
        "within a minute",
    );
    let imported = vec![held(&json!({"node": {"name": ""}}))];
    is(&Facts { allocations: imported, ..gone() }, By::Controller, "gone", "when its pool has been taken over");
    let with = |more: Value| Facts { allocations: vec![held(&more)], ..nowhere(gone()) };
    let asked = json!({"releaseRequest": {"by": "ann", "at": "now"}});
    is(&with(asked), By::Controller, "gone", "ann asked for its release");
    let releasing = with(json!({"state": "Releasing", "releasing": {"releaser": "r", "then": "Delete"}}));
    is(&releasing, By::Nobody, "gone", "spiderpoolctl release 10.0.0.1");
    let gc = Gc { dry_run: true, ..Gc::default() };
    is(&Facts { gc, ..nowhere(gone()) }, By::Nobody, "gone", "ipam.gc.dryRun");
}

/// Bound at `http://p`, last written at `written`.
fn at_provider(more: &Value, written: i64) -> Held {
    let mut spec = json!({
        "pool": "a", "address": "10.0.0.1", "node": {"name": "n", "uid": "nu"}, "state": "Held", "interface": "net1",
        "pod": {"namespace": "default", "name": "web-0", "uid": "u"},
        "provider": {"server": "http://p", "subnet": "10.0.0.0/24", "bindId": "b", "settleMilliseconds": 52000},
    });
    spec.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
    let time = Timestamp::from_second(written).expect("a time").to_string();
    let metadata = json!({"name": "10.0.0.1", "uid": "x", "resourceVersion": "1", "creationTimestamp": "1970-01-01T00:00:00Z",
        "managedFields": [{"manager": "m", "operation": "Update", "time": time}]});
    Held::read(&serde_json::from_value(json!({"metadata": metadata, "spec": spec})).expect("an object"))
}

fn named(conf: &str) -> Providers {
    Providers::of(Some(&Conf::parse(conf).expect("legal")))
}

const SERVED: &str = "iaasNetworkProvider: {serverUrl: 'http://p'}";

#[test]
fn what_a_provider_bound_is_freed_by_who_asks_it() {
    let releasing = json!({"state": "Releasing", "releasing": {"releaser": "0123456789abcdef", "then": "Delete"}});
    let with = |facts: Facts, more: &Value, written: i64| Facts {
        allocations: vec![at_provider(more, written)],
        providers: named(SERVED),
        ..facts
    };
    let none = json!({});
    is(&with(gone(), &none, 0), By::Agent, "its pod is gone", "within five minutes");
    let unknown = "within five minutes, not before what http://p was asked has come to its end (42s at the most)";
    is(&with(gone(), &none, 110), By::Agent, "its pod is gone", unknown);
    is(&with(Facts { endpoints: Ok(Vec::new()), ..well() }, &none, 110), By::Agent, "no endpoint shows it", unknown);
    is(
        &with(gone(), &releasing, 100),
        By::Agent,
        "being released by process 01234567, last tried 20s ago",
        "when http://p lets go of it",
    );
    let later = |facts: Facts| Facts { now: Timestamp::from_second(1000).expect("a time"), ..facts };
    is(&later(with(gone(), &releasing, 100)), By::Agent, "last tried 15m ago", "within five minutes");

    // Nobody on the node asks.
    let agentless = || Facts { agents: Ok(BTreeMap::new()), ..gone() };
    is(&with(agentless(), &none, 0), By::Controller, "gone", "does not see to it; it asks http://p");
    let off = Gc { enabled: false, ..Gc::default() };
    is(&with(Facts { gc: off, ..agentless() }, &none, 0), By::Agent, "gone", "none does now");
    let nowhere = || Facts { machines: Ok(BTreeMap::new()), ..gone() };
    is(&with(nowhere(), &none, 0), By::Controller, "gone", "within 10 minutes after the node went; it asks http://p");
    is(&with(nowhere(), &releasing, 100), By::Controller, "being released", "when http://p lets go of it");
    is(&with(Facts { gc: off, ..nowhere() }, &none, 0), By::Nobody, "gone", "spiderpoolctl release 10.0.0.1");
    is(&with(gone(), &json!({"node": {"name": ""}}), 0), By::Controller, "gone", "has been taken over");
    let asked = json!({"releaseRequest": {"by": "ann", "at": "now"}});
    is(&with(nowhere(), &asked, 0), By::Controller, "gone", "ann asked for its release; it asks http://p first");
}

#[test]
fn what_nobody_may_ask_for_stays() {
    let unserved = |facts: Facts, more: &Value| Facts {
        allocations: vec![at_provider(more, 0)],
        providers: named("iaasNetworkProvider: {serverUrl: 'http://q'}"),
        ..facts
    };
    let todo = "name http://p in iaasNetworkProvider.formerServers; or, if it is known to be free there: \
                spiderpoolctl release --abandon 10.0.0.1";
    let releasing = json!({"state": "Releasing", "releasing": {"releaser": "r", "then": "Keep"}});
    let asked = |abandon: bool| json!({"releaseRequest": {"by": "ann", "at": "now", "abandon": abandon}});
    for more in [json!({}), releasing.clone(), asked(false)] {
        is(&unserved(gone(), &more), By::Nobody, "may be bound at provider http://p, which is neither", todo);
    }
    is(&unserved(gone(), &asked(true)), By::Controller, "gone", "within seconds, if one leads: ann asked");
    let hidden = Facts { endpoints: Ok(Vec::new()), ..well() };
    is(&unserved(hidden, &releasing), By::Nobody, "its pod waits for it: it may be bound at provider http://p", todo);
    let shown = |uid: &str| shown(uid, &json!([{"interface": "net1", "ipv4": "10.0.0.1/24", "bindId": "b"}]));
    assert_eq!(judge(&unserved(Facts { endpoints: Ok(vec![shown("u")]), ..well() }, &json!({}))), [], "it is used");
    // Not seen is not known.
    let blind = Facts { providers: Providers::default(), ..unserved(gone(), &json!({})) };
    is(&blind, By::Agent, "gone", "within five minutes");
}

#[test]
fn endpoints_without_addresses() {
    let none = |facts: Facts| Facts { allocations: Vec::new(), ..facts };
    is(&none(gone()), By::Controller, "nothing is held under its name", "within two minutes");
    let with = |shown: Shown| Facts { endpoints: Ok(vec![shown]), ..none(gone()) };
    is(&with(Shown { owned: true, ..shown("u", &entry()) }), By::Kubernetes, "gone", "garbage collector");
    let kept = Shown { finalizers: vec!["x/y".to_owned()], owned: true, ..shown("u", &entry()) };
    is(&with(kept), By::Nobody, "gone", "finalizer x/y");
    is(&Facts { records: true, ..none(gone()) }, By::Controller, "gone", "taken over");
    let gc = Gc { enabled: false, ..Gc::default() };
    is(&Facts { gc, ..none(gone()) }, By::Nobody, "gone", "ipam.gc.enabled");
    is(&none(well()), By::Nobody, "its pod lives and is shown with 10.0.0.1, which nobody holds", "delete the pod");
    assert_eq!(
        judge(&Facts { endpoints: Ok(vec![shown("u", &json!([]))]), ..none(well()) }),
        [],
        "of a pod without addresses"
    );
    let young = Shown { created: Timestamp::from_second(119).ok(), ..shown("u", &entry()) };
    assert_eq!(judge(&with(young)), []);
}

#[test]
fn what_cannot_be_read_stays() {
    let odd = held(&json!({"state": "Releasing"}));
    is(&Facts { allocations: vec![odd], endpoints: Ok(Vec::new()), ..well() }, By::Nobody, "cannot be read", "mended");
    let odd = Shown { what: Err("odd".to_owned()), ..shown("u", &entry()) };
    is(
        &Facts { endpoints: Ok(vec![odd]), allocations: Vec::new(), ..well() },
        By::Nobody,
        "cannot be read: odd",
        "mended",
    );
}
