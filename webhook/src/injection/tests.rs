//! `WH-…` are public bug reports of webhooks.

use super::*;
use k8s_api::attachment::{Device, Needs};
use k8s_api::conf::Conf;
use k8s_api::multus::Reference;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

const CONF: &str = "
iaasNetworkProvider: {serverUrl: 'http://provider.example'}
podResourceInject: {enabled: true}
agent:
  networkResourcePlugin:
    enabled: true
    resourceAdvertisement:
      subENI: {rules: [{defaultMaxCount: 256}, {resourceName: example.com/other, defaultMaxCount: 1}]}
      masterNIC: {rules: [{includeInterfaces: ['eth*', 'bond?'], excludeInterfaces: [eth0]}]}
";

fn conf() -> Conf {
    Conf::parse(CONF).expect("valid")
}

/// The attachments that every test knows, by name: NICs, and whether the VLAN is the provider's.
fn attachment(name: &str) -> Attachment {
    let ours = |masters: &[&str], sub_eni| {
        let masters = masters.iter().map(ToString::to_string).collect();
        Attachment::Ours(Arc::new(Needs { masters, sub_eni, device: None }))
    };
    let taking = |device| Attachment::Ours(Arc::new(Needs { device: Some(device), ..Needs::default() }));
    match name {
        "vlan1" | "vlan1b" => ours(&["eth1"], true),
        "vlan2" => ours(&["eth2"], true),
        "bonded" => ours(&["eth3", "eth4"], true),
        "macvlan" => ours(&["eth1"], false),
        "typo" => ours(&["ens9"], false),
        "odd" => ours(&["eth1@x"], false),
        "faulty" => Attachment::Unreadable("no".into()),
        "renamed" => Attachment::Renamed("other".into()),
        "foreign" => Attachment::Foreign,
        "rdma1" | "rdma2" => taking(Device::Shared("example.com/rdma".to_owned())),
        "vf1" | "vf2" => taking(Device::Own("example.com/vf".to_owned())),
        "nameless" => taking(Device::Own("vf".to_owned())),
        _ => Attachment::Missing,
    }
}

/// The namespace of the request; the object has none (WH-04).
fn judge(pod: &Value, conf: &Conf) -> (Decision, Vec<Value>) {
    let text = pod.to_string();
    let pod: Pod<'_> = serde_json::from_str(&text).expect("a pod");
    let mentions = pod.mentions("team-a", None, &conf.multus);
    assert_eq!(mentions.faults, Vec::<String>::new());
    let mention = |reference: Reference| Mention { attachment: attachment(&reference.name), reference };
    let found: Vec<_> = mentions.references.into_iter().map(mention).collect();
    let decision = decide(&pod, &found, &Selected::new(), conf, None);
    let operations = pod.first_container().map(|first| patch(first, &decision.add)).unwrap_or_default();
    (decision, operations)
}

fn apply(pod: &Value, operations: &[Value]) -> Value {
    let mut pod = pod.clone();
    let operations: json_patch::Patch = serde_json::from_value(json!(operations)).expect("a patch");
    json_patch::patch(&mut pod, &operations).expect("it applies to what was sent");
    pod
}

fn pod(networks: &str, containers: &Value) -> Value {
    json!({"metadata": {"generateName": "x-", "annotations": {"k8s.v1.cni.cncf.io/networks": networks}}, "spec": {"containers": containers}})
}

fn added(networks: &str) -> BTreeMap<String, u32> {
    judge(&pod(networks, &json!([{"name": "a"}])), &conf()).0.add
}

fn wanted(counts: &[(&str, u32)]) -> BTreeMap<String, u32> {
    counts.iter().map(|(name, count)| (format!("spidernet.io/{name}"), *count)).collect()
}

/// WH-03: one sub-interface an attachment, however it is spelt; one of each NIC.
#[test]
fn attachments_are_counted_and_nics_are_not() {
    for (networks, counts) in [
        ("vlan1", &[("eth1-nic", 1), ("sub-eni", 1)][..]),
        ("vlan1,vlan1,team-a/vlan1", &[("eth1-nic", 1), ("sub-eni", 3)]),
        ("vlan1,vlan1b", &[("eth1-nic", 1), ("sub-eni", 2)]),
        ("vlan1,vlan2", &[("eth1-nic", 1), ("eth2-nic", 1), ("sub-eni", 2)]),
        ("bonded,bonded", &[("eth3-nic", 1), ("eth4-nic", 1), ("sub-eni", 2)]),
        ("macvlan", &[("eth1-nic", 1)]),
        ("foreign", &[]),
        ("typo", &[("ens9-nic", 1)]),
        ("odd,vlan2", &[("eth2-nic", 1), ("sub-eni", 1)]),
        ("missing,vlan2", &[("eth2-nic", 1), ("sub-eni", 1)]),
    ] {
        assert_eq!(added(networks), wanted(counts), "{networks}");
    }
    let fifty = vec!["vlan1"; 50].join(",");
    assert_eq!(added(&fifty), wanted(&[("eth1-nic", 1), ("sub-eni", 50)]));
}

#[test]
fn the_default_network_counts_named_or_not() {
    let named = json!({"metadata": {"annotations": {"v1.multus-cni.io/default-network": "vlan1"}}, "spec": {"containers": [{}]}});
    assert_eq!(judge(&named, &conf()).0.add, wanted(&[("eth1-nic", 1), ("sub-eni", 1)]));
    let clusterwide = Conf::parse(&format!("{CONF}multus: {{clusterNetwork: kube-system/vlan2}}\n")).expect("valid");
    let bare = json!({"spec": {"containers": [{}]}});
    assert_eq!(judge(&bare, &clusterwide).0.add, wanted(&[("eth2-nic", 1), ("sub-eni", 1)]));
    assert_eq!(judge(&named, &clusterwide).0.add, wanted(&[("eth1-nic", 1), ("sub-eni", 1)]), "the pod's own wins");
    assert_eq!(judge(&bare, &conf()).0.add, wanted(&[]));
}

#[test]
fn switches_of_the_configuration() {
    let add = |from: &str, to: &str| {
        assert!(CONF.contains(from));
        let (decision, _) = judge(&pod("vlan1", &json!([{}])), &Conf::parse(&CONF.replace(from, to)).expect("valid"));
        (decision.add, decision.warnings)
    };
    let (without_provider, warnings) = add("http://provider.example", "");
    assert_eq!(without_provider, wanted(&[("eth1-nic", 1)]));
    assert!(warnings[0].contains("team-a/vlan1") && warnings[0].contains("serverUrl is empty"), "{warnings:?}");
    let nics = "{rules: [{includeInterfaces: ['eth*', 'bond?'], excludeInterfaces: [eth0]}]}";
    assert_eq!(add(nics, "{rules: []}").0, wanted(&[("sub-eni", 1)]));
    let (without_plugin, warnings) = add("    enabled: true", "    enabled: false");
    assert_eq!(without_plugin, wanted(&[]));
    assert!(warnings[0].contains("networkResourcePlugin.enabled is false"), "{warnings:?}");
}

/// WH-02, WH-22: what a user wrote on any container stays, and stops nothing else.
#[test]
fn what_a_user_wrote_stays() {
    let own = |resources: Value| pod("vlan1,vlan2", &json!([{"name": "a"}, {"name": "b", "resources": resources}]));
    for (resources, warned) in [
        (json!({"limits": {"spidernet.io/sub-eni": "1"}, "requests": {"spidernet.io/sub-eni": "1"}}), true),
        (json!({"limits": {"spidernet.io/sub-eni": "1"}}), true),
        (json!({"requests": {"spidernet.io/sub-eni": 2}}), false),
        (json!({"limits": {"spidernet.io/sub-eni": "1k"}}), false),
    ] {
        let (decision, _) = judge(&own(resources.clone()), &conf());
        assert_eq!(decision.add, wanted(&[("eth1-nic", 1), ("eth2-nic", 1)]), "{resources}");
        assert_eq!(decision.warnings.iter().any(|warning| warning.contains("sub-eni: 2")), warned, "{resources}");
    }
    let each = json!({"limits": {"spidernet.io/sub-eni": "1"}});
    let both = pod("vlan1,vlan2", &json!([{"name": "a", "resources": each.clone()}, {"name": "b", "resources": each}]));
    assert_eq!(judge(&both, &conf()).0.warnings, Vec::<String>::new(), "together they ask for enough");
    let mut init = pod("vlan1", &json!([{"name": "a"}]));
    init["spec"]["initContainers"] =
        json!([{"name": "i", "restartPolicy": "Always", "resources": {"limits": {"spidernet.io/eth1-nic": "1"}}}]);
    assert_eq!(judge(&init, &conf()).0.add, wanted(&[("sub-eni", 1)]), "an init or sidecar container counts");
    init["spec"]["ephemeralContainers"] = init["spec"]["initContainers"].take();
    assert_eq!(judge(&init, &conf()).0.add.len(), 2, "WH-11: an ephemeral one does not");
}

/// WH-01, WH-07: the patch applies to what was sent, whatever is missing or null, and touches nothing else.
#[test]
fn the_patch_applies_to_every_shape() {
    for resources in [
        None,
        Some(json!(null)),
        Some(json!({})),
        Some(json!({"limits": null, "requests": null})),
        Some(json!({"requests": {"cpu": "1"}})),
        Some(json!({"limits": {"memory": "1Gi"}})),
        Some(json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1"}, "claims": [{"name": "c"}]})),
    ] {
        let mut container = json!({"name": "a", "image": "x"});
        if let Some(resources) = &resources {
            container["resources"] = resources.clone();
        }
        let sent = pod("vlan1", &json!([container, {"name": "b", "resources": {"limits": {"cpu": "2"}}}]));
        let (_, operations) = judge(&sent, &conf());
        let given = apply(&sent, &operations);
        for part in ["limits", "requests"] {
            for name in ["spidernet.io/sub-eni", "spidernet.io/eth1-nic"] {
                assert_eq!(given["spec"]["containers"][0]["resources"][part][name], "1", "{resources:?}");
            }
        }
        assert_eq!(without_ours(&given), without_ours(&sent), "{resources:?}");
    }
}

/// The pod less what is ours to add: our keys, and the empty or null parents of such keys.
fn without_ours(pod: &Value) -> Value {
    let mut pod = pod.clone();
    let first = pod.pointer_mut("/spec/containers/0").and_then(Value::as_object_mut).expect("a container");
    if let Some(resources) = first.get_mut("resources").and_then(Value::as_object_mut) {
        for part in ["limits", "requests"] {
            if let Some(quantities) = resources.get_mut(part).and_then(Value::as_object_mut) {
                quantities.retain(|name, _| !name.starts_with("spidernet.io/"));
            }
        }
        resources.retain(|_, value| !(value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty)));
    }
    first.retain(|name, value| name != "resources" || value.as_object().is_some_and(|map| !map.is_empty()));
    pod
}

/// Only for networks that an annotation selects: an RDMA device once, a virtual function for each interface.
#[test]
fn devices_of_other_plugins_are_requested_for_what_is_selected() {
    let conf = conf();
    let judged = |networks: &str, selected: &[&str], container: Value| {
        let text = pod(networks, &json!([container])).to_string();
        let pod: Pod<'_> = serde_json::from_str(&text).expect("a pod");
        let mention = |reference: Reference| Mention { attachment: attachment(&reference.name), reference };
        let found: Vec<_> = pod.mentions("team-a", None, &conf.multus).references.into_iter().map(mention).collect();
        let selected = selected.iter().map(|name| ("team-a".to_owned(), (*name).to_owned())).collect();
        let decision = decide(&pod, &found, &selected, &conf, None);
        (decision.add.into_iter().collect::<Vec<_>>(), decision.warnings)
    };
    let of = |name: &str, count| vec![(format!("example.com/{name}"), count)];
    assert_eq!(judged("rdma1,rdma2", &["rdma1", "rdma2"], json!({})), (of("rdma", 1), vec![]));
    assert_eq!(judged("vf1,vf2", &["vf1", "vf2"], json!({})), (of("vf", 2), vec![]));
    assert_eq!(judged("vf1,vf1,vf2", &["vf1"], json!({})), (of("vf", 2), vec![]), "named by the pod once more");
    assert_eq!(judged("rdma1,vf1", &[], json!({})), (vec![], vec![]), "the plain way adds none");
    let own = json!({"resources": {"limits": {"example.com/vf": "2"}}});
    assert_eq!(judged("vf1,vf2", &["vf1", "vf2"], own), (vec![], vec![]), "written by the user");
    let (added, warnings) = judged("nameless", &["nameless"], json!({}));
    assert!(added.is_empty() && warnings[0].contains("\"vf\" is no resource name"), "{warnings:?}");
}

#[test]
fn what_multus_keeps_apart_gets_no_requests() {
    let conf = Conf::parse(&format!("{CONF}multus: {{namespaceIsolation: true, globalNamespaces: [shared]}}\n"));
    let conf = conf.expect("valid");
    let annotations = json!({"k8s.v1.cni.cncf.io/networks": "other/vlan1,shared/vlan1,vlan1", "v1.multus-cni.io/default-network": "other/vlan1"});
    let text = json!({"metadata": {"annotations": annotations}}).to_string();
    let pod: Pod<'_> = serde_json::from_str(&text).expect("a pod");
    let mentions = pod.mentions("team-a", None, &conf.multus);
    let namespaces: Vec<_> = mentions.references.iter().map(|one| one.namespace.as_str()).collect();
    assert_eq!(namespaces, ["other", "shared", "team-a"], "the default network is Multus's own affair");
    assert!(mentions.faults[0].contains("\"other/vlan1\" to a pod of team-a"), "{mentions:?}");
}

/// Whatever of the parents is missing or null, and nothing else is touched.
#[test]
fn networks_are_written_into_every_shape() {
    for (sent, wanted) in [
        (json!({}), json!({"k8s.v1.cni.cncf.io/networks": "a/b"})),
        (json!({"metadata": null}), json!({"k8s.v1.cni.cncf.io/networks": "a/b"})),
        (json!({"metadata": {"labels": {"a": "b"}}}), json!({"k8s.v1.cni.cncf.io/networks": "a/b"})),
        (json!({"metadata": {"annotations": null}}), json!({"k8s.v1.cni.cncf.io/networks": "a/b"})),
        (
            json!({"metadata": {"annotations": {"k8s.v1.cni.cncf.io/networks": "x", "a/b~c": "d"}}}),
            json!({"k8s.v1.cni.cncf.io/networks": "a/b", "a/b~c": "d"}),
        ),
    ] {
        let text = sent.to_string();
        let pod: Pod<'_> = serde_json::from_str(&text).expect("a pod");
        let given = apply(&sent, &[annotate(&pod, "a/b")]);
        assert_eq!(given["metadata"]["annotations"], wanted, "{sent}");
        assert_eq!(given["metadata"]["labels"], sent["metadata"]["labels"]);
    }
}

#[test]
fn pods_that_are_none_of_ours() {
    for (pod, reason) in [
        (json!({"spec": {"hostNetwork": true}}), Some("host-network")),
        (json!({"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}}), Some("mirror-pod")),
        (json!({"metadata": {"annotations": null}, "spec": {"hostNetwork": false, "containers": null}}), None),
        (json!({}), None),
        (json!({"metadata": null, "spec": null}), None),
    ] {
        let text = pod.to_string();
        let pod: Pod<'_> = serde_json::from_str(&text).expect("a pod");
        assert_eq!(pod.left_alone(), reason);
        assert!(pod.first_container().is_none());
    }
}

/// MA-01 to MA-04: what Multus would refuse is not guessed at.
#[test]
fn a_broken_annotation_is_a_warning() {
    let text = pod("a,,B", &json!([{}])).to_string();
    let pod: Pod<'_> = serde_json::from_str(&text).expect("a pod");
    let mentions = pod.mentions("team-a", None, &conf().multus);
    assert_eq!(mentions.references, []);
    assert!(
        mentions.faults[0].contains("k8s.v1.cni.cncf.io/networks") && mentions.faults[0].contains("\"B\""),
        "{mentions:?}"
    );
}

#[test]
fn warnings_say_what_is_wrong_and_what_to_do() {
    let warnings = |networks: &str, offers: Option<&Offers>| {
        let conf = conf();
        let text = pod(networks, &json!([{}])).to_string();
        let pod: Pod<'_> = serde_json::from_str(&text).expect("a pod");
        let mention = |reference: Reference| Mention { attachment: attachment(&reference.name), reference };
        let found: Vec<_> = pod.mentions("team-a", None, &conf.multus).references.into_iter().map(mention).collect();
        decide(&pod, &found, &Selected::new(), &conf, offers).warnings.join("\n")
    };
    assert_eq!(warnings("vlan1,foreign", None), "");
    assert!(warnings("typo", None).contains("no masterNIC rule selects ens9"));
    assert!(warnings("odd", None).contains("makes no resource name"));
    assert!(warnings("nothing", None).contains("there is no attachment team-a/nothing"));
    assert!(warnings("renamed", None).contains("write that name"));
    assert!(warnings("faulty", None).contains("cannot be read"));
    let offers = Offers::from([("spidernet.io/eth1-nic".to_owned(), 1)]);
    assert_eq!(
        warnings("vlan1", Some(&offers)),
        "no node offers spidernet.io/sub-eni now; the pod will stay Pending until one does"
    );
    assert_eq!(warnings("vlan1,missing,missing", None).lines().count(), 1, "said once");
}

fn quantities() -> impl Strategy<Value = Value> {
    let names = prop::sample::select(vec![
        "cpu",
        "memory",
        "spidernet.io/sub-eni",
        "spidernet.io/eth1-nic",
        "a~b/c",
        "example.com/gpu",
    ]);
    prop_oneof![
        Just(Value::Null),
        prop::collection::btree_map(names, prop_oneof![Just(json!("1")), Just(json!(3)), Just(json!("500m"))], 0..4)
            .prop_map(|map| json!(map)),
    ]
}

fn containers() -> impl Strategy<Value = Value> {
    let resources = prop_oneof![
        Just(Value::Null),
        (quantities(), quantities()).prop_map(|(limits, requests)| json!({"limits": limits, "requests": requests})),
        quantities().prop_map(|limits| json!({ "limits": limits })),
    ];
    prop::collection::vec((any::<bool>(), resources), 0..4).prop_map(|all| {
        let container = |(i, (bare, resources)): (usize, (bool, Value))| {
            if bare {
                json!({"name": format!("c{i}")})
            } else {
                json!({"name": format!("c{i}"), "resources": resources})
            }
        };
        Value::from(all.into_iter().enumerate().map(container).collect::<Vec<_>>())
    })
}

proptest! {
    /// Applied twice equals once; all else stays equal; limits and requests are equal for what we add.
    #[test]
    fn a_patch_is_idempotent_and_minimal(
        containers in containers(),
        networks in prop::collection::vec(prop::sample::select(vec!["vlan1", "vlan2", "bonded", "macvlan", "foreign", "typo", "x"]), 0..6),
    ) {
        let sent = pod(&networks.join(","), &containers);
        let (decision, operations) = judge(&sent, &conf());
        if sent["spec"]["containers"].as_array().is_some_and(Vec::is_empty) {
            prop_assert!(operations.is_empty());
            return Ok(());
        }
        let given = apply(&sent, &operations);
        for (name, count) in &decision.add {
            for part in ["limits", "requests"] {
                let written = &given["spec"]["containers"][0]["resources"][part][name];
                prop_assert_eq!(written, &json!(count.to_string()));
            }
        }
        let (again, more) = judge(&given, &conf());
        prop_assert_eq!(again.add.len(), 0);
        prop_assert!(more.is_empty());
        let mut rest = given.clone();
        if let Some(resources) = rest.pointer_mut("/spec/containers/0/resources").and_then(Value::as_object_mut) {
            for part in ["limits", "requests"] {
                if let Some(quantities) = resources.get_mut(part).and_then(Value::as_object_mut) {
                    quantities.retain(|name, _| !decision.add.contains_key(name));
                }
            }
        }
        let bare = |pod: &Value| without_empty(pod);
        prop_assert_eq!(bare(&rest), bare(&sent));
    }

    #[test]
    fn no_pod_is_too_odd(text in "\\PC{0,200}") {
        let _ = serde_json::from_str::<Pod<'_>>(&text);
    }
}

/// Less the parents that an addition makes: null and empty count the same.
fn without_empty(pod: &Value) -> Value {
    let mut pod = pod.clone();
    if let Some(first) = pod.pointer_mut("/spec/containers/0").and_then(Value::as_object_mut) {
        if let Some(resources) = first.get_mut("resources").and_then(Value::as_object_mut) {
            resources.retain(|_, value| !(value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty)));
        }
        first.retain(|name, value| name != "resources" || value.as_object().is_some_and(|map| !map.is_empty()));
    }
    pod
}
