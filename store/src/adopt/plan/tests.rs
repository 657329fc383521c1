use super::super::gather::Entry;
use super::super::pods::LivePod;
use super::*;

fn address(text: &str) -> Address {
    text.parse().expect("an address")
}

fn pool(name: &str, subnet: &str, records: &[(&str, &str, &str)]) -> OldPool {
    let records: Vec<_> =
        records.iter().map(|(ip, pod, uid)| format!(r#""{ip}": {{"pod": "{pod}", "podUid": "{uid}"}}"#)).collect();
    OldPool {
        name: name.to_owned(),
        uid: format!("{name}-uid"),
        subnet: subnet.parse().ok(),
        text: format!("{{{}}}", records.join(",")),
    }
}

fn endpoint(name: &str, uid: &str, node: &str, entries: &[(&str, &str)]) -> OldEndpoint {
    let entry = |(interface, ip): &(&str, &str)| Entry {
        interface: (*interface).to_owned(),
        addresses: vec![address(ip)],
        pools: vec!["p".to_owned()],
        ..Entry::default()
    };
    OldEndpoint {
        namespace: "ns".to_owned(),
        name: name.to_owned(),
        pod_uid: uid.to_owned(),
        node: node.to_owned(),
        entries: entries.iter().map(entry).collect(),
        ..OldEndpoint::default()
    }
}

fn with(pools: Vec<OldPool>, endpoints: Vec<OldEndpoint>) -> Gathered {
    let endpoints = endpoints.into_iter().map(|one| ((one.namespace.clone(), one.name.clone()), one)).collect();
    let node = Node { name: "a".to_owned(), uid: "a-uid".to_owned(), machine_id: "a-machine".to_owned() };
    Gathered { pools, endpoints, nodes: [("a".to_owned(), node)].into(), ..Gathered::default() }
}

fn lives(gathered: &mut Gathered, uid: &str, name: &str, node: &str, owner: Option<&str>) {
    let owner = owner.map(set);
    let pod = Pod { namespace: "ns".to_owned(), name: name.to_owned(), uid: uid.to_owned() };
    gathered.pods.insert(uid.to_owned(), LivePod { pod, node: node.to_owned(), owner });
}

fn set(name: &str) -> Owner {
    let text = str::to_owned;
    Owner { api_version: text("apps/v1"), kind: text("StatefulSet"), name: text(name), uid: format!("{name}-uid") }
}

fn only(gathered: &Gathered) -> Plan {
    let plans = plans(gathered);
    let [plan] = plans.as_slice() else { panic!("{plans:?}") };
    plan.clone()
}

/// Address, pod, node, interface.
fn imports(plan: &Plan) -> Vec<[String; 4]> {
    let one = |one: &Allocation| {
        [one.address.to_string(), one.pod.name.clone(), one.node.name.clone(), one.interface.clone()]
    };
    plan.imports.iter().map(one).collect()
}

#[test]
fn node_and_interface_are_the_endpoints_else_the_pods_else_unknown() {
    let records = [
        ("10.0.0.1", "ns/both", "1"),
        ("10.0.0.2", "ns/pod", "2"),
        ("10.0.0.3", "ns/gone", "3"),
        ("10.0.0.4", "ns/lost", "4"),
        ("10.0.0.5", "ns/again", "5"),
    ];
    let endpoints = vec![
        endpoint("both", "1", "a", &[("eth0", "10.0.9.9"), ("net1", "10.0.0.1")]),
        endpoint("gone", "3", "b", &[("net1", "10.0.0.3")]),
        // Of the next pod of the name.
        endpoint("again", "6", "a", &[("net1", "10.0.0.5")]),
    ];
    let mut gathered = with(vec![pool("p", "10.0.0.0/16", &records)], endpoints);
    lives(&mut gathered, "1", "both", "a", None);
    lives(&mut gathered, "2", "pod", "a", None);
    let plan = only(&gathered);
    let text = |four: [&str; 4]| four.map(str::to_owned);
    assert_eq!(
        imports(&plan),
        [
            text(["10.0.0.1", "both", "a", "net1"]),
            text(["10.0.0.2", "pod", "a", ""]),
            text(["10.0.0.3", "gone", "b", "net1"]),
            text(["10.0.0.4", "lost", "", ""]),
            text(["10.0.0.5", "again", "", ""]),
        ]
    );
    assert_eq!((plan.records, plan.there, plan.faults.len()), (5, 0, 0));
    let first = plan.imports.first().expect("one");
    assert_eq!((first.node.uid.as_str(), first.node.machine_id.as_str()), ("a-uid", "a-machine"));
    assert!(first.held() && first.sandbox_unknown() && first.provider.is_none() && !first.detached);
    assert!(plan.imports.iter().all(|one| one.pod.uid.len() == 1), "the recorded pod's, whoever has the name");
}

#[test]
fn who_keeps_addresses_is_known_by_the_pod_or_by_the_endpoint() {
    let records = [("10.0.0.1", "ns/db-0", "1"), ("10.0.0.2", "ns/db-1", "2"), ("10.0.0.3", "ns/x-0", "3")];
    let owned = |mut endpoint: OldEndpoint, name: &str| {
        endpoint.owner = Some(("StatefulSet".to_owned(), name.to_owned()));
        endpoint
    };
    let endpoints =
        vec![owned(endpoint("db-1", "2", "a", &[]), "db"), owned(endpoint("x-0", "3", "a", &[]), "deleted")];
    let mut gathered = with(vec![pool("p", "10.0.0.0/16", &records)], endpoints);
    lives(&mut gathered, "1", "db-0", "a", Some("db"));
    gathered.owners.insert(("ns".to_owned(), "StatefulSet".to_owned(), "db".to_owned()), set("db"));
    let owners: Vec<_> = only(&gathered).imports.into_iter().map(|one| one.owner).collect();
    assert_eq!(owners, [Some(set("db")), Some(set("db")), None]);
}

#[test]
fn the_pod_of_a_virtual_machine_has_its_own_name() {
    let mut gathered = with(vec![pool("p", "10.0.0.0/16", &[("10.0.0.1", "ns/vm", "1")])], Vec::new());
    lives(&mut gathered, "1", "virt-launcher-vm-x", "a", None);
    assert_eq!(only(&gathered).imports.first().expect("one").pod.name, "virt-launcher-vm-x");
}

fn exists(gathered: &mut Gathered, ip: &str, pool: &str, name: &str, uid: &str) {
    let pod = Pod { namespace: "ns".to_owned(), name: name.to_owned(), uid: uid.to_owned() };
    gathered.existing.insert(address(ip), Existing::Held { pool: pool.to_owned(), pod, bind_id: None });
}

#[test]
fn what_was_done_is_not_done_again() {
    let records = [("10.0.0.1", "ns/a", "1"), ("10.0.0.2", "ns/db-0", "2"), ("10.0.0.3", "ns/c", "3")];
    let mut gathered = with(vec![pool("p", "10.0.0.0/16", &records)], Vec::new());
    exists(&mut gathered, "10.0.0.1", "p", "a", "1");
    // The next pod of a set has inherited it meanwhile.
    exists(&mut gathered, "10.0.0.2", "p", "db-0", "new");
    let plan = only(&gathered);
    assert_eq!((plan.there, plan.imports.len(), plan.faults.len()), (2, 1, 0));
}

#[test]
fn faults_name_the_record_and_hold_nobody_else() {
    let mut bad = pool("bad", "10.0.0.0/24", &[("10.0.0.1", "ns/a", "1"), ("10.0.1.1", "ns/b", "2")]);
    let twice =
        [("10.0.0.1", "ns/c", "3"), ("10.0.0.2", "ns/d", "4"), ("10.0.0.3", "ns/e", "5"), ("10.0.0.4", "ns/f", "6")];
    let mut gathered = with(
        vec![
            bad.clone(),
            OldPool { text: "[".to_owned(), ..pool("broken", "10.3.0.0/24", &[]) },
            OldPool { subnet: None, ..pool("nowhere", "", &[("10.4.0.1", "ns/g", "7")]) },
            pool("q", "10.0.0.0/16", &twice),
        ],
        Vec::new(),
    );
    exists(&mut gathered, "10.0.0.2", "q", "other", "9");
    exists(&mut gathered, "10.0.0.3", "z", "e", "5");
    gathered.existing.insert(address("10.0.0.4"), Existing::Unreadable);
    let texts: Vec<Vec<String>> =
        plans(&gathered).iter().map(|plan| plan.faults.iter().map(ToString::to_string).collect()).collect();
    let has = |plan: usize, part: &str| {
        assert!(texts[plan].iter().any(|text| text.starts_with(part)), "{part:?} in {:?}", texts[plan]);
    };
    has(0, "10.0.0.1 of ns/a is recorded in pool q too: remove");
    has(0, "10.0.1.1 of ns/b is not in the pool's subnet 10.0.0.0/24: delete");
    has(1, "status.allocatedIPs is no JSON map of addresses: ");
    has(2, "10.4.0.1 of ns/g is not in the pool's subnet (which cannot be read)");
    has(3, "10.0.0.1 of ns/c is recorded in pool bad too");
    has(3, "10.0.0.2 of ns/d is held by ns/other of pool q: delete");
    has(3, "10.0.0.3 of ns/e is held by ns/e of pool z");
    has(3, "10.0.0.4 of ns/f is held by a SpiderIPAllocation that cannot be read");
    assert!(plans(&gathered).iter().all(|plan| plan.imports.is_empty()));

    bad.text = pool("bad", "", &[("10.0.0.9", "ns/a", "1"), ("10.0.1.1", "ns/b", "2")]).text;
    let plan = only(&with(vec![bad], Vec::new()));
    assert_eq!((plan.imports.len(), plan.faults.len(), plan.records), (1, 1, 2), "what is right is done");
}

#[test]
fn what_a_provider_has_or_may_have_bound_has_a_binding() {
    let records = [
        ("10.0.0.1", "ns/vlan", "1"),
        ("10.0.0.2", "ns/plain", "2"),
        ("10.0.0.3", "ns/begun", "3"),
        ("10.0.0.4", "ns/next", "4"),
    ];
    let vlan = |mut endpoint: OldEndpoint| {
        endpoint.entries.iter_mut().for_each(|entry| entry.vlan = true);
        endpoint
    };
    let endpoints = vec![
        vlan(endpoint("vlan", "1", "a", &[("net1", "10.0.0.1")])),
        endpoint("plain", "2", "a", &[("net1", "10.0.0.2")]),
        // Kept under its name by a set, for the next pod.
        vlan(endpoint("next", "5", "a", &[("net1", "10.0.0.4")])),
    ];
    let mut gathered = with(vec![pool("p", "10.0.0.0/16", &records)], endpoints);
    let bound = |gathered: &Gathered| {
        let imports = only(gathered).imports.into_iter();
        imports.map(|one| one.provider.map(|binding| binding.settle.as_secs())).collect::<Vec<_>>()
    };
    assert_eq!(bound(&gathered), [None; 4], "without a provider a VLAN is the pool's own");
    gathered.provider = Some("http://p".to_owned());
    assert_eq!(bound(&gathered), [Some(0), None, None, Some(0)]);
    gathered.provided.insert("p".to_owned());
    assert_eq!(bound(&gathered), [Some(0), None, Some(102), Some(0)], "nobody shows it, and its call may have left");
    let first = only(&gathered).imports.first().and_then(|one| one.provider.clone()).expect("bound");
    assert_eq!(
        (first.server.as_str(), first.subnet.as_str(), first.parent_nic_mac.as_str()),
        ("http://p", "10.0.0.0/16", "")
    );

    let six = vlan(endpoint("six", "6", "a", &[("net1", "fd00::1")]));
    let mut six = with(vec![pool("p", "fd00::/64", &[("fd00::1", "ns/six", "6")])], vec![six]);
    six.provider = gathered.provider;
    assert_eq!(bound(&six), [None]);
}
