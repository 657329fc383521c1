use super::*;
use proptest::option;
use proptest::prelude::*;

prop_compose! {
    fn address(four: bool)(number: u128, prefix in 0..=32_u8, pool in "[a-z]{1,5}", gateway: bool) -> Assigned {
        let (family, mask) = if four { (Family::V4, 0xffff_ffff) } else { (Family::V6, u128::MAX) };
        // Beyond the addresses that IPv6 has for IPv4.
        let address = Address::new(family, (number | 1 << 127) & mask).expect("in its family");
        Assigned { address, prefix, pool, gateway: gateway.then_some(address) }
    }
}

prop_compose! {
    fn entry_of(name: usize)(four in option::of(address(true)), six in option::of(address(false)),
        vlan in option::of(1..=VLAN_MAX), mac in option::of("[a-f0-9]{2}"), clean_gateway: bool,
        routes in 0..3_usize, bind_id in option::of("[a-z]{3}")) -> Interface {
        let route = Route { dst: "10.0.0.0/8".to_owned(), gw: "10.0.0.1".to_owned() };
        Interface { name: format!("eth{name}"), addresses: four.into_iter().chain(six).collect(), vlan, mac, clean_gateway,
            routes: vec![route; routes], bind_id }
    }
}

prop_compose! {
    fn endpoint()(one in option::of(entry_of(0)), two in option::of(entry_of(1)), owner in option::of("[A-Z][a-z]{3}"),
        goes_with in option::of("[a-z]{4}"), uid in "[a-z]{0,4}", node in "[a-z]{0,4}") -> Endpoint {
        Endpoint {
            pod: Pod { namespace: "ns".to_owned(), name: "pod".to_owned(), uid }, node, goes_with,
            owner: owner.map(|kind| Owner { kind, name: "o".to_owned(), ..Owner::default() }),
            interfaces: one.into_iter().chain(two).collect(),
        }
    }
}

fn object(mut written: Value) -> DynamicObject {
    written["metadata"]["uid"] = json!("u");
    written["metadata"]["resourceVersion"] = json!("3");
    serde_json::from_value(written).expect("an object")
}

proptest! {
    #[test]
    fn is_read_as_it_was_written(endpoint in endpoint()) {
        let (read, version) = read(&object(written(&endpoint, None).expect("writable"))).expect("readable");
        prop_assert_eq!(read, endpoint);
        prop_assert_eq!(version, Version { uid: "u".to_owned(), resource: "3".to_owned() });
    }
}

#[test]
fn faults_are_named() {
    let read_with = |ips: Value| {
        let metadata = json!({"name": "pod", "namespace": "ns"});
        let status = json!({"current": {"ips": [ips]}});
        read(&object(json!({"metadata": metadata, "status": status}))).map_err(|error| error.to_string())
    };
    for (entry, why) in [
        (json!({"interface": "e", "ipv4": "10.0.0.1"}), "10.0.0.1 is no IPv4 address with a prefix"),
        (json!({"interface": "e", "ipv4": "10.0.0.1/33"}), "10.0.0.1/33 is no IPv4 address with a prefix"),
        (json!({"interface": "e", "ipv6": "10.0.0.1/24"}), "10.0.0.1/24 is no IPv6 address with a prefix"),
        (json!({"interface": "e", "ipv4": "10.0.0.1/24", "ipv4Gateway": "x"}), "gateway x: it is not an IP address"),
        (json!({"interface": "e", "vlan": 4095}), "e: 4095 is no VLAN id"),
        (json!({"interface": "e", "vlan": -1}), "e: -1 is no VLAN id"),
        (json!({}), "missing field `interface`"),
    ] {
        let said = read_with(entry).expect_err(why);
        assert!(said.contains(why) && said.contains("SpiderEndpoint pod cannot be read"), "{said}");
    }
    let loose = read_with(json!({"interface": "e", "vlan": 0, "ipv4": "", "ipv4Gateway": ""})).expect("readable").0;
    assert_eq!(loose.interfaces[0].vlan, None, "0 is none");
    let (bare, _) = read(&object(json!({"metadata": {"name": "pod"}}))).expect("readable");
    assert_eq!(bare.interfaces, [], "an endpoint without a status has nothing");
}

#[test]
fn two_addresses_of_a_family_cannot_be_written() {
    let own = Assigned { address: "10.0.0.1".parse().expect("one"), prefix: 8, pool: "p".to_owned(), gateway: None };
    let interface = Interface {
        name: "e".to_owned(),
        addresses: vec![own.clone(), own],
        vlan: None,
        mac: None,
        clean_gateway: false,
        routes: Vec::new(),
        bind_id: None,
    };
    assert_eq!(entry(&interface), Err("e cannot have both 10.0.0.1/8 and 10.0.0.1".to_owned()));
}

#[test]
fn a_patch_names_what_it_replaces_and_takes_nothing_of_others_along() {
    let endpoint =
        Endpoint { pod: Pod::default(), node: String::new(), owner: None, goes_with: None, interfaces: vec![] };
    let version = Version { uid: "u".to_owned(), resource: "9".to_owned() };
    let patch = written(&endpoint, Some(&version)).expect("writable");
    assert_eq!(
        patch["metadata"],
        json!({"uid": "u", "resourceVersion": "9", "annotations": {REPLACES: "9"}, "ownerReferences": []})
    );
}
