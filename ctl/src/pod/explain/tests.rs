//! Each thing that can be wrong with a pod.

mod world;

use super::super::facts::{Facts, Occurred};
use super::super::network::{Definition, Network};
use super::explain;
use crate::agents::Agent;
use crate::fault::NotSeen;
use crate::finding::{Finding, Level, Verdict};
use crate::machines::Machine;
use crate::requests::Counts;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use world::{endpoint, held, is_noted, is_wrong, networks, of, pool, texts, unplaced, vlan, waits, well, with_pod};

#[test]
fn a_pod_that_is_well() {
    let findings = explain(&well());
    let shown = findings.iter().map(|finding| format!("{:?} {}: {}", finding.level, finding.step, finding.text));
    assert_eq!(
        shown.collect::<Vec<_>>(),
        [
            "Ok pod: Running on node n, 3m old, UID u",
            "Ok namespace: default is there, and names no pools",
            "Ok networks: net1: default/net, vlan on eth1, its VLAN from the provider",
            "Ok resources: it asks for spidernet.io/eth1-nic: 1, and its networks need 1",
            "Ok resources: it asks for spidernet.io/sub-eni: 1, and its networks need 1",
            "Ok node: n is ready, its agent kube-system/agent is ready; spidernet.io/eth1-nic: pods ask for 10 of 10; \
             spidernet.io/sub-eni: pods ask for 1 of 4",
            "Ok pools: net1, IPv4, named by the network's configuration: a (1 of 2 free)",
            "Ok addresses: 10.0.0.1 of a for net1: Held on node n, sandbox 0123456789ab, bound at http://provider as b",
            "Ok endpoint: net1: 10.0.0.1, VLAN 7",
        ]
    );
    assert!(Verdict::of(&findings).ok);
    is_noted(&waits(), "Pending on node n");
}

#[test]
fn the_pod_and_its_namespace() {
    let gone = Facts { pod: None, networks: Vec::new(), allocations: Ok(Vec::new()), endpoint: Ok(None), ..well() };
    is_wrong(&gone, "pod: there is no pod default/web-0, and nothing is held");
    let left = Facts { pod: None, networks: Vec::new(), endpoint: Ok(None), ..well() };
    is_wrong(&left, "addresses: 10.0.0.1 of a for net1: Held on node n");
    let failed = with_pod(waits(), |pod| {
        pod["status"] = json!({"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": "no devices"});
    });
    is_wrong(&failed, "pod: Failed on node n, 3m old, UID u; it has failed: UnexpectedAdmissionError no devices");
    is_noted(&with_pod(waits(), |pod| pod["status"]["phase"] = "Succeeded".into()), "it has ended");
    let deleted = "2026-01-01T00:00:00Z";
    is_noted(&with_pod(well(), |pod| pod["metadata"]["deletionTimestamp"] = deleted.into()), "is being deleted");
    is_noted(&with_pod(waits(), |pod| pod["spec"]["hostNetwork"] = true.into()), "on the host's network");
    is_wrong(&Facts { of_namespace: Ok(None), ..waits() }, "namespace: there is no namespace default");
    let going: Namespace = of(json!({"metadata": {"deletionTimestamp": deleted}}));
    is_wrong(&Facts { of_namespace: Ok(Some(going)), ..waits() }, "namespace: default is being deleted");
}

#[test]
fn networks_that_are_not_as_they_should_be() {
    let pod_of = |facts: &Facts| facts.pod.clone().expect("a pod");
    let of_networks = |spec: Option<Value>, defined: bool| {
        let facts = waits();
        Facts { networks: networks(&pod_of(&facts), spec, defined), ..facts }
    };
    is_wrong(
        &of_networks(Some(vlan()), false),
        "networks: net1: default/net has a SpiderMultusConfig and no NetworkAttachment",
    );
    let none = of_networks(None, false);
    assert!(texts(&none, Level::Wrong)[0].starts_with("networks: net1: there is no network default/net"));
    is_noted(&of_networks(None, true), "which none of its networks needs");
    let unreadable = of_networks(Some(json!({"cniType": "x"})), true);
    is_wrong(&unreadable, "networks: net1: SpiderMultusConfig default/net cannot be read");
    let with = |annotations: Value| {
        let facts = with_pod(waits(), |pod| {
            pod["metadata"]["annotations"] = annotations;
            pod["spec"]["containers"] = json!([]);
        });
        let networks = networks(&pod_of(&facts), None, false);
        Facts { networks, ..facts }
    };
    is_wrong(
        &with(json!({"k8s.v1.cni.cncf.io/networks": "a b"})),
        "networks: annotation k8s.v1.cni.cncf.io/networks: ",
    );
    is_wrong(
        &with(json!({"k8s.v1.cni.cncf.io/networks": "[{\"name\": \"a/b\"}]"})),
        "networks: net1: default/a/b is a name",
    );
    let selects = json!({"cni.spidernet.io/network-resource-inject": "blue"});
    is_wrong(&with(selects), "networks: annotation cni.spidernet.io/network-resource-inject is \"blue\"");
    is_noted(&with(json!({})), "names none");

    let mut isolated = waits();
    let mut conf = isolated.conf.clone().expect("seen");
    conf.multus.isolation = Some(BTreeSet::new());
    isolated.conf = Ok(conf);
    isolated.networks[0].mention.reference.namespace = "other".to_owned();
    is_wrong(&isolated, "networks: net1: Multus keeps namespaces apart, and refuses other/net to pods of default");

    let mut unready = waits();
    let config = unready.networks[0].config.as_mut().expect("seen").as_mut().expect("there");
    config.ready = Some(of(json!({"type": "Ready", "status": "False", "reason": "Foreign", "message": "is another's",
                                  "lastTransitionTime": "2026-01-01T00:00:00Z"})));
    is_wrong(
        &unready,
        "networks: net1: default/net, vlan on eth1, its VLAN from the provider; it is not ready: Foreign",
    );
}

#[test]
fn resources_that_were_not_injected() {
    let bare = with_pod(waits(), |pod| pod["spec"]["containers"] = json!([{"name": "c"}]));
    let wrong = texts(&bare, Level::Wrong);
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    assert!(wrong[1].starts_with("resources: it does not ask for spidernet.io/sub-eni: 1"), "{wrong:?}");
    let out = with_pod(bare.clone(), |pod| pod["metadata"]["labels"] = json!({"cni.spidernet.io/inject": "false"}));
    is_noted(&out, "keeps it from being given");
    let mut off = bare.conf.clone().expect("seen");
    off.inject = false;
    is_noted(&Facts { conf: Ok(off), ..bare.clone() }, "podResourceInject is off");
    let mut without = bare.conf.clone().expect("seen");
    without.provider = None;
    let wrong = texts(&Facts { conf: Ok(without), ..bare }, Level::Wrong);
    assert!(wrong[0].contains("iaasNetworkProvider.serverUrl is empty"), "{wrong:?}");
    let two = Facts { networks: [waits().networks, waits().networks].concat(), ..waits() };
    is_noted(&two, "spidernet.io/sub-eni: 1, and its networks need 2");
}

#[test]
fn nodes_that_cannot_carry_it() {
    let machine = || Machine { name: "n".to_owned(), ready: true, ..Machine::default() };
    let on = |machine: Machine| Facts { nodes: Ok(vec![machine]), ..waits() };
    is_wrong(&Facts { nodes: Ok(Vec::new()), ..waits() }, "node: there is no Node n");
    is_wrong(&on(Machine { ready: false, ..machine() }), "node: n is not ready");
    is_wrong(&on(Machine { out_of_service: true, ..machine() }), "node: n is tainted out-of-service");
    is_wrong(&Facts { agents: Ok(BTreeMap::new()), ..waits() }, "node: n runs no agent");
    let agent = Agent { pod: "kube-system/agent".to_owned(), ready: false };
    let unready = Facts { agents: Ok(BTreeMap::from([("n".to_owned(), agent)])), ..waits() };
    is_wrong(&unready, "node: the agent of n, kube-system/agent, is not ready");

    let todo = |facts: &Facts| explain(facts).into_iter().find(Finding::is_wrong).and_then(|finding| finding.todo);
    let full = Facts {
        requested: BTreeMap::from([("n".to_owned(), Ok(well().nodes.expect("seen")[0].allocatable.clone()))]),
        ..unplaced()
    };
    is_wrong(&full, "node: it is on no node: Unschedulable: 0/1 nodes are available");
    assert!(todo(&full).expect("one").starts_with("every node is full of spidernet.io/eth1-nic"));
    assert!(texts(&full, Level::Note).iter().any(|note| note.contains("spidernet.io/sub-eni: 0 of 4 free, 1 needed")));
    let none = Facts { nodes: Ok(Vec::new()), ..unplaced() };
    assert!(todo(&none).expect("one").starts_with("no node that can be used offers spidernet.io/eth1-nic"));
    let other = Facts { requested: BTreeMap::from([("n".to_owned(), Ok(Counts::new()))]), ..unplaced() };
    assert!(todo(&other).expect("one").contains("something else keeps it from these nodes"));
    is_noted(&with_pod(unplaced(), |pod| pod["status"]["conditions"] = json!([])), "has not looked at it yet");
}

#[test]
fn pools_that_give_nothing() {
    let full = Facts { free: BTreeMap::from([("a".to_owned(), Ok(0))]), ..waits() };
    is_wrong(
        &full,
        "pools: none of its pools has an address to give: net1, IPv4, named by the network's configuration: a (0 of 2",
    );
    is_wrong(
        &Facts { pools: Ok(Vec::new()), ..waits() },
        "pools: net1, IPv4, named by the network's configuration: there is no SpiderIPPool a",
    );
    for (more, word) in
        [(json!({"disable": true}), "is disabled"), (json!({"subnet": "fd00::/64"}), "none of its pools")]
    {
        let facts = Facts { pools: Ok(vec![pool("a", &more)]), ..waits() };
        is_wrong(&facts, "pools: none of its pools has an address to give");
        assert!(texts(&facts, Level::Wrong)[0].contains(word), "{word}");
    }
    let other = pool("a", &json!({"podAffinity": {"matchLabels": {"app": "web"}}}));
    let strange = Facts { pools: Ok(vec![other]), ..waits() };
    is_wrong(&strange, "pools: none of its pools has an address to give");
    assert!(
        texts(&strange, Level::Wrong)[0]
            .ends_with("a (1 of 2 free, not for this pod: spec.podAffinity does not select the pod)")
    );
    let mine = with_pod(strange, |pod| pod["metadata"]["labels"] = json!({"app": "web"}));
    assert!(texts(&mine, Level::Ok).iter().any(|text| text.ends_with("a (1 of 2 free, for pods(app=web))")));
    let named = |value: &str| {
        with_pod(waits(), |pod| pod["metadata"]["annotations"]["ipam.spidernet.io/ippool"] = value.into())
    };
    is_wrong(
        &named("{\"ipv4\": [\"b\"]}"),
        "pools: net1, IPv4, named by Pod annotation ipam.spidernet.io/ippool: there is no SpiderIPPool b",
    );
    is_wrong(
        &named("{\"ipv4\": [\"b*\"]}"),
        "pools: net1, IPv4, named by Pod annotation ipam.spidernet.io/ippool: no pool of IPv4 is covered by b*",
    );
    is_wrong(&named("x\x1b"), "pools: net1: wrong input, invalid format of Pod annotation 'ipam.spidernet.io/ippool'");
    let mut conf = waits().conf.expect("seen");
    conf.ipv4 = false;
    is_wrong(
        &Facts { conf: Ok(conf), ..waits() },
        "pools: net1, IPv4, named by the network's configuration: IPv4 is disabled",
    );
    let mut nobody = waits();
    nobody.networks[0].definition = Ok(Some(Definition { pools: Ok(Some(k8s_api::ipam::Names::default())) }));
    is_wrong(&nobody, "pools: net1: nobody names a pool, and no pool is the default");
    let default = Facts { pools: Ok(vec![pool("a", &json!({"default": true}))]), ..nobody };
    assert!(
        texts(&default, Level::Ok)
            .iter()
            .any(|text| text.contains("named by nobody, so the default ones: a (1 of 2 free)"))
    );
    let namespace: Namespace =
        of(json!({"metadata": {"annotations": {"ipam.spidernet.io/default-ipv4-ippool": "[\"c\"]"}}}));
    is_wrong(
        &Facts { of_namespace: Ok(Some(namespace)), ..waits() },
        "pools: net1, IPv4, named by Namespace annotations",
    );
    // The runtime's own network may be another's, whatever the pod says about its pools.
    let first = with_pod(Facts { free: BTreeMap::from([("a".to_owned(), Ok(0))]), ..well() }, |pod| {
        pod["metadata"]["annotations"]["ipam.spidernet.io/ippools"] =
            "[{\"interface\": \"eth0\", \"ipv4\": [\"a\"]}]".into();
    });
    assert_eq!(texts(&first, Level::Wrong), Vec::<String>::new());
    assert!(texts(&first, Level::Ok).iter().any(|text| text.starts_with("pools: eth0, IPv4, named by Pod annotation")));
    // What has an address needs none.
    assert_eq!(
        texts(&Facts { free: BTreeMap::from([("a".to_owned(), Ok(0))]), ..well() }, Level::Wrong),
        Vec::<String>::new()
    );
}

#[test]
fn addresses_of_the_name() {
    let with = |more: Value| Facts { allocations: Ok(vec![held(&more)]), endpoint: Ok(None), ..waits() };
    is_noted(&with(json!({"detached": true})), "Held, without a sandbox");
    let releasing = json!({"state": "Releasing", "releasing": {"releaser": "r", "then": "Delete"}});
    is_noted(&with(releasing), "the pod waits until that is done");
    let request = json!({"releaseRequest": {"by": "ann", "at": "2026-01-01T00:00:00Z"}});
    is_noted(&with(request), "release asked for by ann");
    is_wrong(&with(json!({"node": {"name": "m"}})), "addresses: 10.0.0.1 of a for net1: Held on node m");
    let unreadable = with(json!({"state": "Held", "releasing": {"releaser": "r", "then": "Keep"}}));
    is_wrong(&unreadable, "addresses: SpiderIPAllocation 10.0.0.1 cannot be read");
    let earlier = |node: &str| {
        with(json!({"node": {"name": node}, "pod": {"namespace": "default", "name": "web-0", "uid": "v"}}))
    };
    is_noted(&earlier("n"), "it is of an earlier pod of this name, UID v; the agent of its node frees it");
    let retained = |facts| Facts { retained: BTreeSet::from(["10.0.0.1".to_owned()]), ..facts };
    is_noted(&retained(earlier("n")), "the pod takes it over");
    is_wrong(&retained(earlier("m")), "addresses: 10.0.0.1 of a for net1: Held on node m");
    is_noted(&retained(Facts { pod: None, networks: Vec::new(), ..earlier("m") }), "still has a place for the name");
    is_noted(&with(json!({})), "whether the provider has bound it is not known");
    let mut conf = waits().conf.expect("seen");
    conf.provider = None;
    let unserved = |facts: Facts| Facts { conf: Ok(conf.clone()), ..facts };
    let neither = "it may be bound at provider http://provider, which is neither iaasNetworkProvider.serverUrl";
    let waiting = texts(&unserved(with(json!({}))), Level::Wrong);
    assert!(waiting.iter().any(|text| text.starts_with("addresses: ") && text.contains(neither)), "{waiting:?}");
    let running = texts(&unserved(well()), Level::Note);
    assert!(running.iter().any(|text| text.contains(neither) && text.contains("it stays when the pod goes")));
    let none = Facts { allocations: Ok(Vec::new()), endpoint: Ok(None), ..well() };
    is_wrong(&none, "addresses: net1 has no address, and yet the pod runs");
}

#[test]
fn endpoints_that_say_something_else() {
    is_wrong(&Facts { endpoint: Ok(None), ..well() }, "endpoint: there is none, and yet the pod runs");
    is_noted(&Facts { pod: waits().pod, endpoint: Ok(None), ..well() }, "there is none yet");
    is_wrong(
        &Facts { endpoint: Ok(Some(endpoint("v", "b"))), ..well() },
        "endpoint: it is of an earlier pod of this name, UID v",
    );
    let stale = Facts { endpoint: Ok(Some(endpoint("u", "other"))), ..well() };
    is_wrong(&stale, "endpoint: it shows 10.0.0.1 as net1 of binding other, and the address is for net1 of binding b");
    is_wrong(&Facts { endpoint: Ok(Some(Err("odd".to_owned()))), ..well() }, "endpoint: it cannot be read: odd");
    let stray = Facts { allocations: Ok(Vec::new()), ..waits() };
    let stray = Facts { endpoint: Ok(Some(endpoint("u", "b"))), ..stray };
    is_wrong(&stray, "endpoint: net1: it shows 10.0.0.1, which the pod does not hold");
}

#[test]
fn what_was_said_last() {
    let said = |message: &str| {
        let at = Timestamp::from_second(60).ok();
        let one =
            |reason: &str, warning| Occurred { warning, reason: reason.to_owned(), message: message.to_owned(), at };
        vec![one("FailedCreatePodSandBox", true), one("FailedCreatePodSandBox", true), one("Pulled", false)]
    };
    let full = said("plugin failed: all addresses of IPv4 are used out in a (2 addresses)\x1b[31m");
    let waiting = Facts { events: Ok(full.clone()), ..waits() };
    is_wrong(&waiting, "events: 2m ago, FailedCreatePodSandBox: plugin failed: all addresses");
    let todo = explain(&waiting).into_iter().find(Finding::is_wrong).and_then(|finding| finding.todo);
    assert!(todo.expect("one").starts_with("give the pool more addresses"));
    is_noted(&Facts { events: Ok(full), ..well() }, "2m ago, FailedCreatePodSandBox");
    let long = Facts { events: Ok(said(&"x".repeat(5000))), ..waits() };
    assert!(texts(&long, Level::Wrong)[0].len() < 900);
}

#[test]
fn what_may_not_be_looked_at_is_said_and_is_no_fault() {
    let no = || NotSeen("ann may not".to_owned());
    let blind = Facts {
        of_namespace: Err(no()),
        conf: Err(no()),
        networks: well().networks.into_iter().map(|one| Network { config: Err(no()), ..one }).collect(),
        pools: Err(no()),
        nodes: Err(no()),
        agents: Err(no()),
        allocations: Err(no()),
        endpoint: Err(no()),
        events: Err(no()),
        ..waits()
    };
    let findings = explain(&blind);
    let not_seen: Vec<_> = findings.iter().filter(|one| one.level == Level::NotSeen).map(|one| one.step).collect();
    assert_eq!(
        not_seen,
        ["namespace", "networks", "configuration", "node", "pools", "addresses", "endpoint", "events"]
    );
    let verdict = Verdict::of(&findings);
    assert!(verdict.ok && verdict.text == "nothing is wrong in what could be looked at", "{verdict:?}");
}
