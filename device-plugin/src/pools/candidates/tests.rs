use super::super::known::{Followed, Pools, Reserved};
use super::*;
use ipam_core::NamespaceFacts;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

fn pool(known: &mut Known, name: &str, spec: &Value) {
    let object = json!({"apiVersion": "spiderpool.spidernet.io/v2beta1", "kind": "SpiderIPPool", "metadata": {"name": name}, "spec": spec});
    let object = serde_json::from_value(object).expect("a pool");
    Pools::put(known, name.to_owned(), Pools(object, "kube-system".to_owned()));
}

/// `any`, `web` for pods of that name, `here` for node n1, `net` for attachment kube-system/net, `v6`.
fn known() -> Known {
    let mut known = Known::default();
    pool(
        &mut known,
        "any",
        &json!({"subnet": "10.0.0.0/8", "ips": ["10.0.0.1-10.0.255.254"], "gateway": "10.0.0.1", "default": true}),
    );
    pool(
        &mut known,
        "web",
        &json!({"subnet": "11.0.0.0/24", "ips": ["11.0.0.1"], "podAffinity": {"matchLabels": {"app": "web"}}}),
    );
    pool(
        &mut known,
        "here",
        &json!({"subnet": "12.0.0.0/24", "ips": ["12.0.0.1"], "nodeName": ["n1"], "nodeAffinity": {"matchLabels": {"a": "b"}}}),
    );
    pool(&mut known, "net", &json!({"subnet": "13.0.0.0/24", "ips": ["13.0.0.1"], "multusName": ["net"]}));
    pool(&mut known, "v6", &json!({"subnet": "fd00::/64", "ips": ["fd00::1"]}));
    let reserved =
        json!({"apiVersion": "v", "kind": "k", "metadata": {"name": "r"}, "spec": {"ips": ["10.0.0.2-10.0.1.0"]}});
    Reserved::put(&mut known, "r".to_owned(), Reserved(serde_json::from_value(reserved).expect("an object")));
    known
}

fn said(namespace: &str, annotations: &[(&str, &str)], configured: &[&str]) -> String {
    let text = |text: &&str| (*text).to_owned();
    let pools = ("ipam.spidernet.io/default-ipv4-ippool".to_owned(), r#"["here","any"]"#.to_owned());
    let of_namespace = if namespace == "ns" { [pools].into() } else { BTreeMap::new() };
    let pod = PodFacts {
        node: "n1".to_owned(),
        labels: Labels::from([("app".to_owned(), "web".to_owned())]),
        annotations: annotations.iter().map(|(key, value)| (text(key), text(value))).collect(),
        namespace: Arc::new(NamespaceFacts { annotations: of_namespace, ..NamespaceFacts::default() }),
        ..PodFacts::default()
    };
    let configured = configured.iter().map(|name| PoolName::read(name).expect("a name")).collect();
    let configured = Names { ipv4: configured, ipv6: Vec::new() };
    let asked = Asked {
        namespace,
        pod: &pod,
        node_labels: None,
        interface: "eth0",
        index: 0,
        network: "kube-system/net",
        configured: &configured,
        ipv4: true,
        ipv6: true,
    };
    match known().candidates(&asked) {
        Ok(Chosen { wanted, clean_gateway, routes: _ }) => {
            let pools = wanted.iter().flat_map(|wanted| &wanted.candidates).map(|candidate| candidate.pool.as_str());
            format!(
                "{}{}",
                pools.collect::<Vec<_>>().join(" "),
                if clean_gateway == Some(true) { " clean" } else { "" }
            )
        }
        Err(error) => error.to_string(),
    }
}

#[test]
fn sources_come_in_their_order() {
    let by_interface = (POD_POOLS, r#"[{"interface":"eth0","ipv4":["web"],"ipv6":["v6"],"cleangateway":true}]"#);
    let for_any = (POD_POOL, r#"{"ipv4":["net"]}"#);
    assert_eq!(said("ns", &[by_interface, for_any], &["any"]), "web v6 clean");
    assert_eq!(said("ns", &[for_any], &["any"]), "net");
    assert_eq!(said("ns", &[(POD_POOLS, r#"[{"interface":"net1","ipv4":["web"]}]"#)], &["any"]), "here any");
    assert_eq!(said("other", &[], &["web"]), "web");
    assert_eq!(said("other", &[], &[]), "any");
}

#[test]
fn patterns_cover_pools_of_the_family_and_the_most_special_comes_first() {
    assert_eq!(said("other", &[], &["*"]), "web here net any");
}

#[test]
fn faults_of_annotations_are_told() {
    let text = said("ns", &[(POD_POOLS, "x")], &[]);
    assert!(text.starts_with("wrong input, invalid format of Pod annotation 'ipam.spidernet.io/ippools'"), "{text}");
    assert!(said("other", &[], &["none"]).starts_with("failed to get original IPPool none"));
}

#[test]
fn reserved_addresses_are_not_given_and_lists_end_what_they_do_not_show() {
    let mut known = known();
    let first = |known: &Known| known.catalog.get("any").map(|pool| pool.candidate.addresses.count());
    assert_eq!(first(&known), Some(65_534 - 255));
    known.keep::<Reserved>(&std::collections::BTreeSet::new());
    assert_eq!(first(&known), Some(65_534));
    assert!(!known.is_whole());
    known.keep::<Pools>(&["web".to_owned()].into());
    assert_eq!((first(&known), known.is_whole()), (None, true));
}
