use super::super::rules::Rule::{Absent, Fails, Holds};
use super::*;

const PLACE: &str = "Pod annotation 'ipam.spidernet.io/ippools'";

fn pool(name: &str, subnet: &str) -> Pool {
    let subnet: crate::Subnet = subnet.parse().expect("a subnet");
    let addresses = subnet.range().into();
    let candidate = Candidate { pool: name.to_owned(), subnet, addresses, gateway: None, routes: Vec::new() };
    Pool { candidate, default: false, disabled: false, terminating: false, unadopted: false }
}

/// `a` to `d` of IPv4, `v6` of IPv6.
fn catalog(change: impl Fn(&mut Pool)) -> Catalog {
    let mut catalog = Catalog::default();
    let v4 = ["a", "b", "c", "d"].into_iter().zip(["10.0.0.0/24", "10.0.1.0/24", "10.0.2.0/24", "10.0.3.0/24"]);
    for (name, subnet) in v4.chain([("v6", "fd00::/64")]) {
        let mut pool = pool(name, subnet);
        change(&mut pool);
        catalog.put(pool);
    }
    catalog
}

fn exact(names: &[&str]) -> Vec<Named> {
    names.iter().map(|name| Named::Exact((*name).to_owned())).collect()
}

fn covers(text: &str, pools: &[&str]) -> Named {
    Named::Pattern { text: text.to_owned(), pools: pools.iter().map(ToString::to_string).collect() }
}

fn source(ipv4: Vec<Named>, ipv6: Vec<Named>) -> Source {
    Source { place: PLACE, ipv4, ipv6 }
}

/// `IPv4: a b | IPv6: v6`, or the refusal.
fn said(wanted: Result<Vec<Wanted>, NoPool>) -> String {
    let names = |wanted: Wanted| {
        let names: Vec<_> = wanted.candidates.into_iter().map(|candidate| candidate.pool).collect();
        format!("{}: {}", wanted.family, names.join(" "))
    };
    match wanted {
        Ok(all) => all.into_iter().map(names).collect::<Vec<_>>().join(" | "),
        Err(error) => error.to_string(),
    }
}

fn of(sources: &[Source], catalog: &Catalog, rules: impl Fn(&Pool) -> Rules) -> String {
    said(choose(&Request { nic: "eth0", sources, ipv4: true, ipv6: true }, catalog, rules))
}

fn no_rules(_: &Pool) -> Rules {
    Rules::default()
}

#[test]
fn the_first_that_names_pools_counts_for_both_families() {
    let all = catalog(|_| {});
    let sources = [source(vec![], vec![]), source(exact(&["b"]), vec![]), source(exact(&["a"]), exact(&["v6"]))];
    assert_eq!(of(&sources, &all, no_rules), "IPv4: b");
    assert_eq!(of(&sources[2..], &all, no_rules), "IPv4: a | IPv6: v6");
    assert_eq!(
        of(&[], &all, no_rules),
        "no IPPool available, no pool selection rules of any type are specified; name pools in the Pod annotation 'ipam.spidernet.io/ippools', or set spec.default of an IPPool"
    );
}

#[test]
fn patterns_stand_where_they_are_written() {
    let all = catalog(|_| {});
    let list = |names: Vec<Named>| of(&[source(names, vec![])], &all, no_rules);
    let named = |name: &str| Named::Exact(name.to_owned());
    assert_eq!(list(vec![named("d"), covers("*", &["a", "b", "c", "d"])]), "IPv4: d a b c");
    assert_eq!(list(vec![covers("[ab]", &["a", "b"]), named("a")]), "IPv4: a b", "no person repeated it");
    assert_eq!(list(vec![covers("x*", &[]), named("c")]), "IPv4: c");
    assert_eq!(
        list(vec![covers("x*", &[]), covers("y*", &[])]),
        format!("no IPPool available, no IPv4 IPPool is covered by [x*, y*] of eth0 in {PLACE}")
    );
}

#[test]
fn what_is_written_wrongly_is_refused() {
    let all = catalog(|_| {});
    let list = |names: Vec<Named>| of(&[source(names, vec![])], &all, no_rules);
    let twice = "wrong input, duplicate IPPool a specified for NIC eth0 in Pod annotation";
    assert!(list(exact(&["a", "b", "a"])).starts_with(twice));
    assert!(list(vec![covers("a*", &[]), covers("a*", &[])]).starts_with("wrong input, duplicate IPPool a* specified"));
    assert!(list(exact(&["a", "x"])).starts_with("failed to get original IPPool x: there is none of this name"));
    assert_eq!(
        list(exact(&["v6"])),
        "no IPPool available, all IPv4 IPPools [v6] of eth0 filtered out: [v6: IPPool of another IP version]"
    );
    let sources = [source(exact(&["a"]), exact(&["v6"]))];
    let request = Request { nic: "eth0", sources: &sources, ipv4: true, ipv6: false };
    let off = said(choose(&request, &all, no_rules));
    assert!(off.starts_with("wrong input, IPv6 IPPools [v6] of eth0 in Pod annotation"), "{off}");
    assert!(off.ends_with("set the chart value ipam.enableIPv6 to true"), "{off}");
}

#[test]
fn what_is_named_must_be_given_in_each_family() {
    let sources = [source(exact(&["a"]), exact(&["v6"]))];
    let all = catalog(|pool| pool.disabled = pool.candidate.pool == "v6");
    assert_eq!(
        of(&sources, &all, no_rules),
        "no IPPool available, all IPv6 IPPools [v6] of eth0 filtered out: [v6: disabled IPPool]"
    );
}

#[test]
fn default_pools_give_what_fits() {
    let all = catalog(|pool| pool.default = pool.candidate.pool != "a");
    assert_eq!(of(&[], &all, no_rules), "IPv4: b c d | IPv6: v6");
    let no_v6 =
        |pool: &Pool| Rules { node: if pool.candidate.pool == "v6" { Fails } else { Absent }, ..Rules::default() };
    assert_eq!(of(&[], &all, no_v6), "IPv4: b c d");
    let request = Request { nic: "eth0", sources: &[], ipv4: false, ipv6: true };
    assert_eq!(said(choose(&request, &all, no_rules)), "IPv6: v6");
    assert_eq!(
        said(choose(&request, &all, no_v6)),
        "no IPPool available, all IPv6 IPPools [v6] of eth0 filtered out: [v6: spec.nodeAffinity does not select the pod's node]"
    );
}

#[test]
fn each_rule_leaves_out_with_its_reason() {
    let only = |catalog: &Catalog, rules: Rules| of(&[source(exact(&["a"]), vec![])], catalog, move |_| rules);
    let reason = |rules: Rules, wanted: &str| {
        let text = format!("no IPPool available, all IPv4 IPPools [a] of eth0 filtered out: [a: {wanted}]");
        assert_eq!(only(&catalog(|_| {}), rules), text);
    };
    let none = Rules::default();
    reason(Rules { node_name: Fails, node: Holds, ..none }, "spec.nodeName has not the pod's node");
    reason(Rules { node: Fails, ..none }, "spec.nodeAffinity does not select the pod's node");
    reason(Rules { namespace_name: Fails, namespace: Holds, ..none }, "spec.namespaceName has not the pod's namespace");
    reason(Rules { namespace: Fails, ..none }, "spec.namespaceAffinity does not select the pod's namespace");
    reason(Rules { pod: Fails, ..none }, "spec.podAffinity does not select the pod");
    reason(Rules { network: Fails, ..none }, "spec.multusName has not the interface's network");
    let beside = Rules { node_name: Holds, node: Fails, namespace_name: Holds, namespace: Fails, ..none };
    assert_eq!(only(&catalog(|_| {}), beside), "IPv4: a", "a name counts instead of its affinity");
    let going = catalog(|pool| pool.terminating = true);
    assert!(only(&going, none).ends_with("[a: terminating IPPool]"));
}

#[test]
fn the_pool_that_asks_for_most_comes_first_and_the_users_order_stays() {
    let all = catalog(|_| {});
    let order = |rules: &dyn Fn(&str) -> Rules| {
        of(&[source(exact(&["d", "c", "b", "a"]), vec![])], &all, |pool| rules(&pool.candidate.pool))
    };
    assert_eq!(order(&|_| Rules::default()), "IPv4: d c b a");
    let none = Rules::default();
    let ranked = |name: &str| match name {
        "a" => Rules { pod: Holds, ..none },
        "b" => Rules { node_name: Holds, node: Holds, namespace_name: Holds, network: Holds, ..none },
        "c" => Rules { node: Holds, namespace_name: Holds, namespace: Holds, network: Holds, ..none },
        _ => Rules { network: Holds, ..none },
    };
    assert_eq!(order(&ranked), "IPv4: a b c d");
    let tie = |name: &str| if name == "a" || name == "c" { Rules { network: Holds, ..none } } else { none };
    assert_eq!(order(&tie), "IPv4: c a d b");
}

#[test]
fn long_lists_are_cut() {
    let mut all = Catalog::default();
    let names: Vec<String> = (0..100).map(|n| format!("p{n:02}")).collect();
    for name in &names {
        all.put(Pool { disabled: true, ..pool(name, "10.0.0.0/8") });
    }
    let text =
        of(&[source(vec![covers("*", &names.iter().map(String::as_str).collect::<Vec<_>>())], vec![])], &all, no_rules);
    assert!(
        text.contains("p07, and 92 more] of eth0") && text.ends_with("p07: disabled IPPool, and 92 more]"),
        "{text}"
    );
}

#[test]
fn a_pool_that_is_being_taken_over_gives_nothing_and_is_waited_for() {
    let of_old = |old: &'static [&'static str]| {
        catalog(move |pool| {
            pool.unadopted = old.contains(&pool.candidate.pool.as_str());
            pool.default = true;
        })
    };
    let named = [source(exact(&["a", "b"]), vec![])];
    let request = |sources| Request { nic: "eth0", sources, ipv4: true, ipv6: true };
    assert_eq!(said(choose(&request(&named), &of_old(&["a"]), no_rules)), "IPv4: b");
    let refused = choose(&request(&named), &of_old(&["a", "b"]), no_rules).expect_err("none");
    assert!(
        refused.passes && refused.text.contains("a: records of an earlier system are being taken over"),
        "{refused}"
    );
    let refused = choose(&request(&[]), &of_old(&["v6"]), no_rules).expect_err("one family is not both");
    assert!(refused.passes, "{refused}");
    assert!(!choose(&request(&[]), &catalog(|_| {}), no_rules).expect_err("none").passes);
}
