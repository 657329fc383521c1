//! Addresses that were taken over from an earlier system: nobody knows their sandboxes, and of some not even the interface.

use crate::node::{Flow, Pool, Who, add_and_undo, alone, del, look_after, start, who};
use crate::world::{Shared, stateful_set};
use ipam_core::{Address, Allocation, Assigned, Endpoint, Interface, Node, Pod, State, Successor, UNKNOWN_SANDBOX};
use std::time::Duration;

fn address() -> Address {
    "10.0.0.3".parse().expect("an address")
}

/// As the import writes it; with the earlier system's endpoint, if the interface is known.
fn adopt(shared: &Shared, who: &Who, node: &str, interface: &str) {
    let pod = Pod { namespace: "default".to_owned(), name: who.name.clone(), uid: who.uid.clone() };
    let retained = who.name.starts_with("db-");
    let allocation = Allocation {
        pool: "pool".to_owned(),
        address: address(),
        node: Node { name: node.to_owned(), ..Node::default() },
        pod: pod.clone(),
        owner: retained.then(stateful_set),
        container_id: UNKNOWN_SANDBOX.to_owned(),
        interface: interface.to_owned(),
        network: String::new(),
        netns: None,
        boot_id: String::new(),
        flow_id: "import".to_owned(),
        state: State::Held,
        provider: None,
        detached: false,
        release_request: None,
    };
    let mut world = shared.world();
    let stored = world.store(allocation, None);
    world.allocations.insert(address(), stored);
    if interface.is_empty() {
        return;
    }
    let assigned = Assigned { address: address(), prefix: 16, pool: "pool".to_owned(), gateway: None };
    let entry = Interface {
        name: interface.to_owned(),
        addresses: vec![assigned],
        vlan: None,
        mac: None,
        clean_gateway: false,
        routes: Vec::new(),
        bind_id: None,
    };
    let goes_with = (!retained).then(|| pod.uid.clone());
    let name = pod.name.clone();
    let endpoint = Endpoint { pod, node: node.to_owned(), owner: None, goes_with, interfaces: vec![entry] };
    let stored = world.store(endpoint, None);
    world.endpoints.insert(name, stored);
}

fn held(shared: &Shared) -> Option<Allocation> {
    shared.world().allocations.get(&address()).map(|stored| stored.value.clone())
}

fn looked(shared: &Shared, agent: &Flow, after: Duration) -> bool {
    shared.pass(after);
    alone(shared, agent.reconcile(address()));
    held(shared).is_some()
}

#[test]
fn a_pod_that_lives_keeps_its_address_whatever_is_known_of_it() {
    for interface in ["net1", ""] {
        let shared = Shared::new();
        shared.pod("a", "a-uid", "node");
        let asked = who("a", "a-uid", "any");
        adopt(&shared, &asked, "node", interface);
        let (agent, controller) = (start(&shared, "node"), start(&shared, ""));
        look_after(&shared, &[&agent], &controller, true);
        // Of an earlier sandbox, perhaps.
        alone(&shared, del(&agent, &asked));
        look_after(&shared, &[&agent], &controller, false);
        assert!(held(&shared).is_some_and(|one| !one.detached), "{interface:?}");
        // The sandbox is made again.
        let again = Who { container: "c-2".to_owned(), ..asked };
        let given = alone(&shared, add_and_undo(&agent, &shared, &again, &Pool(9))).expect("ends").expect("given");
        assert_eq!(given, address(), "{interface:?}");
        let now = held(&shared).expect("there");
        assert_eq!((now.container_id.as_str(), now.interface.as_str()), ("c-2", "net1"));
        assert_eq!((shared.addresses(), shared.world().shown("a")), (vec![address()], vec![address()]));
        shared.pod_goes("a");
        alone(&shared, del(&agent, &again));
        assert!(held(&shared).is_none());
    }
}

/// A kubelet takes dead sandboxes of a pod down also while it ends, and containers of another run on.
#[test]
fn a_del_while_the_pod_ends_may_be_of_an_earlier_sandbox() {
    for name in ["a", "db-0"] {
        let shared = Shared::new();
        shared.world().replicas = 1;
        shared.pod(name, "uid", "node");
        let asked = who(name, "uid", "an-earlier-one");
        adopt(&shared, &asked, "node", "net1");
        let agent = start(&shared, "node");
        shared.world().pods.get_mut(name).expect("there").terminating = true;
        alone(&shared, del(&agent, &asked));
        assert!(held(&shared).is_some_and(|one| !one.detached), "{name}");
        shared.pod_goes(name);
        alone(&shared, agent.reconcile(address()));
        assert!(held(&shared).is_some_and(|one| !one.detached), "{name}: its kubelet may still be at it");
    }
}

#[test]
fn a_pod_that_goes_gives_it_back_at_its_del_or_a_while_later() {
    for (terminal, told) in [(false, true), (true, true), (false, false), (true, false)] {
        let shared = Shared::new();
        shared.pod("a", "a-uid", "node");
        let asked = who("a", "a-uid", "any");
        adopt(&shared, &asked, "node", "net1");
        let agent = start(&shared, "node");
        if terminal {
            shared.world().pods.get_mut("a").expect("there").terminal = true;
        } else {
            shared.pod_goes("a");
        }
        if told {
            alone(&shared, del(&agent, &asked));
            assert!(held(&shared).is_none());
            continue;
        }
        // Who deletes by force is faster than the kubelet.
        assert!(looked(&shared, &agent, Duration::from_mins(10)), "seen for the first time");
        assert!(looked(&shared, &agent, Duration::from_secs(119)));
        // An agent that starts anew counts anew.
        let anew = start(&shared, "node");
        assert!(looked(&shared, &anew, Duration::from_secs(1)));
        assert!(!looked(&shared, &anew, Duration::from_mins(2)), "terminal {terminal}");
    }
}

#[test]
fn another_pod_of_the_name_does_not_keep_it() {
    let shared = Shared::new();
    shared.pod("a", "new", "node");
    adopt(&shared, &who("a", "old", "any"), "node", "net1");
    let agent = start(&shared, "node");
    assert!(looked(&shared, &agent, Duration::ZERO));
    assert!(!looked(&shared, &agent, Duration::from_mins(2)));
}

/// A StatefulSet's pod: here and on another node, with a DEL and without.
#[test]
fn a_retained_address_goes_to_the_next_pod_once_the_sandbox_is_gone() {
    for told in [true, false] {
        for (elsewhere, interface) in [(true, "net1"), (false, "net1"), (true, ""), (false, "")] {
            let what = format!("told {told}, elsewhere {elsewhere}, interface {interface:?}");
            let shared = Shared::new();
            shared.world().replicas = 1;
            let old = who("db-0", "old", "any");
            adopt(&shared, &old, "a", interface);
            let (a, b, controller) = (start(&shared, "a"), start(&shared, "b"), start(&shared, ""));
            let (node, agent) = if elsewhere { ("b", &b) } else { ("a", &a) };
            shared.pod("db-0", "new", node);
            let new = who("db-0", "new", "c-new");
            let pod = Pod { namespace: "default".to_owned(), name: "db-0".to_owned(), uid: "new".to_owned() };
            let to = Successor { pod, node: Node { name: node.to_owned(), ..Node::default() } };
            let add = || alone(&shared, add_and_undo(agent, &shared, &new, &Pool(9))).expect("ends");
            let look = || {
                alone(&shared, a.reconcile(address()));
                alone(&shared, controller.move_to(address(), &to, false));
            };
            look();
            add().expect_err("the old sandbox may be there");
            if told && !interface.is_empty() {
                alone(&shared, del(&a, &old));
                let now = held(&shared).expect("kept");
                assert_eq!((now.detached, now.container_id.as_str()), (true, "any"), "{what}");
                shared.world().gone.insert("any".to_owned());
            } else {
                shared.pass(Duration::from_mins(2));
            }
            look();
            assert_eq!(add(), Ok(address()), "{what}");
            assert_eq!(shared.addresses(), [address()], "{what}");
        }
    }
}
