use super::choose::given;
use super::select::{Refused, select};
use super::wish::{On, Wish};
use crate::attachments::{Config, Index};
use crate::namespaces::{Facts, Namespaces};
use k8s_api::attachment::by_annotation::Kind;
use k8s_api::conf::Multus;
use k8s_api::multus::Reference;
use k8s_api::names::{INJECT, INJECT_FROM};
use serde_json::{Value, json};

fn wish(on: On, rdma: Option<&str>, network: Option<&str>) -> Wish {
    Wish::of(on, &[rdma, network]).0.expect("one")
}

fn config(namespace: &str, name: &str, value: &str, spec: &Value) -> Config {
    let metadata = json!({"namespace": namespace, "name": name, "annotations": {INJECT[1]: value, INJECT[0]: value}});
    Config::of(&serde_json::from_value(json!({"metadata": metadata, "spec": spec})).expect("an object"))
}

fn vlan(master: &str) -> Value {
    json!({"cniType": "vlan", "vlan": {"master": [master]}})
}

/// Attachments of three namespaces; `shared` shares with `team-a`, `open` with everybody, `closed` with nobody.
fn index(configs: &[(&str, &str, Value)]) -> Index {
    let mut index = Index::default();
    for (namespace, name, spec) in configs {
        index.put_config(config(namespace, name, "red", spec));
    }
    index
}

fn namespaces() -> Namespaces {
    let mut namespaces = Namespaces::default();
    for (name, from) in [("shared", "team-b, team-a"), ("open", "*"), ("closed", "team-b")] {
        let metadata = json!({"name": name, "annotations": {INJECT_FROM: from}});
        namespaces.put(name.to_owned(), Facts::of(&serde_json::from_value(metadata).expect("metadata")));
    }
    namespaces
}

fn selected(wish: &Wish, index: &Index, multus: &Multus) -> Result<Vec<String>, String> {
    let found = select(wish, "team-a", index, &namespaces(), multus);
    let shown = |Reference { namespace, name, .. }: Reference| format!("{namespace}/{name}");
    found.map(|found| found.into_iter().map(shown).collect()).map_err(|refused| refused.to_string())
}

#[test]
fn the_first_annotation_counts_and_a_second_is_told() {
    assert_eq!(Wish::of::<&str>(On::Pod, &[None, None]), (None, None));
    let (first, warning) = Wish::of(On::Namespace, &[Some(""), Some("red")]);
    let first = first.expect("an empty value is one");
    assert_eq!((first.kind, first.value.as_str()), (Kind::Rdma, ""));
    assert_eq!(
        warning.as_deref(),
        Some(
            "annotation cni.spidernet.io/network-resource-inject of the namespace is not used, since it has cni.spidernet.io/rdma-resource-inject, too"
        )
    );
    let (first, warning) = Wish::of(On::Pod, &[None, Some("red")]);
    assert_eq!(first.expect("one").to_string(), "cni.spidernet.io/network-resource-inject=red of the pod");
    assert_eq!(warning, None);
}

#[test]
fn who_gets_what_in_which_order() {
    let red = wish(On::Pod, None, Some("red"));
    let index = index(&[
        ("team-a", "z", vlan("eth1")),
        ("team-a", "a", vlan("eth2")),
        ("shared", "b", vlan("eth1")),
        ("open", "c", json!({"cniType": "sriov", "sriov": {"resourceName": "a/b", "ippools": {"ipv4": ["p"]}}})),
        ("open", "d", json!({"cniType": "vlan", "vlan": {"master": ["eth9", "eth8"], "bond": {"name": "bond0"}}})),
        ("closed", "e", vlan("eth1")),
        ("nowhere", "f", vlan("eth1")),
    ]);
    let open = Multus::default();
    assert_eq!(
        selected(&red, &index, &open),
        Ok(["open/c", "open/d", "shared/b", "team-a/z", "team-a/a"].map(str::to_owned).to_vec())
    );
    let isolated = |global: &[&str]| Multus {
        isolation: Some(global.iter().map(ToString::to_string).collect()),
        ..Multus::default()
    };
    assert_eq!(
        selected(&red, &index, &isolated(&["shared"])),
        Ok(["shared/b", "team-a/z", "team-a/a"].map(str::to_owned).to_vec())
    );
}

#[test]
fn a_pod_that_gets_nothing_is_told_why_and_no_names() {
    let red = wish(On::Pod, None, Some("red"));
    let none = "no spidermultusconfigs with annotation: cni.spidernet.io/network-resource-inject:red found for namespace team-a; ";
    let said = |index: &Index, multus: &Multus| selected(&red, index, multus).expect_err("nothing");
    let open = Multus::default();
    assert_eq!(
        said(&index(&[]), &open),
        format!("{none}give one in this namespace the annotation, or correct the value")
    );
    assert_eq!(
        said(&index(&[("closed", "secret", vlan("eth1")), ("nowhere", "secret", vlan("eth1"))]), &open),
        format!(
            "{none}2 are in namespaces that do not share them with it: annotate the namespace of one with cni.spidernet.io/allow-inject-from: team-a"
        )
    );
    let isolated = Multus { isolation: Some([].into()), ..Multus::default() };
    assert_eq!(
        said(&index(&[("open", "secret", vlan("eth1"))]), &isolated),
        format!(
            "{none}1 is in namespaces that Multus keeps apart from it: name those of it in multus.multusCNI.globalNamespaces, as Multus has them"
        )
    );
    let empty = wish(On::Pod, Some(""), None);
    let mut index = Index::default();
    index.put_config(config("team-a", "a", "", &vlan("eth1")));
    assert!(selected(&empty, &index, &open).expect_err("nothing").contains("rdma-resource-inject: found"));
}

#[test]
fn one_that_cannot_be_given_refuses_the_pod() {
    let said = |kind: [Option<&str>; 2], spec: Value| {
        let wish = Wish::of(On::Namespace, &kind).0.expect("one");
        selected(&wish, &index(&[("team-a", "a", spec)]), &Multus::default()).expect_err("refused")
    };
    let (rdma, network) = ([Some("red"), None], [None, Some("red")]);
    assert_eq!(said(network, json!({"cniType": "vlan"})), "vlan config is nil");
    assert_eq!(said(rdma, json!({"cniType": "ovs"})), "RDMA resource injection does not support cniType: ovs");
    assert_eq!(said(rdma, vlan("eth1")), "rdmaResourceName can not empty for spidermultusconfig team-a/a");
    assert_eq!(
        said(network, json!({"cniType": "sriov", "sriov": {"resourceName": "a/b"}})),
        "no any ippools configured for spidermultusconfig team-a/a"
    );
    let unreadable = said(network, json!({"cniType": "vlan", "vlan": {"master": 5}}));
    assert!(
        unreadable.starts_with(
            "spidermultusconfig team-a/a, which cni.spidernet.io/network-resource-inject selects, cannot be read"
        ),
        "{unreadable}"
    );
}

#[test]
fn what_is_selected_is_merged_and_told() {
    let red = wish(On::Namespace, None, Some("red"));
    let networks = [("shared", "b"), ("team-a", "z")].map(|(namespace, name)| Reference {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        interface: String::new(),
    });
    let found = given(&red, Some("z, other"), "team-a", &networks, None).expect("given");
    assert_eq!(found.networks.as_deref(), Some("z, other,shared/b"));
    assert_eq!(found.selected.len(), 2, "also what the pod names by itself");
    let reason = "cni.spidernet.io/network-resource-inject=red of the namespace selects shared/b,team-a/z";
    assert_eq!(found.reason.as_deref(), Some(reason));
    let again = given(&red, found.networks.as_deref(), "team-a", &networks, None).expect("given");
    assert_eq!((again.networks, again.selected), (None, found.selected));
    let refused = given(&red, Some("a/b/c"), "team-a", &networks, None).expect_err("Multus could not read it");
    assert!(matches!(refused, Refused::Networks { .. }), "{refused:?}");
}
