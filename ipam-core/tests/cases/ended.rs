//! Pods that have ended, or only look so.

use crate::node::{Pool, Who, add_and_undo, alone, del, look_after, start, who};
use crate::world::Shared;
use std::time::Duration;

/// k8snetworkplumbingwg/whereabouts#162: pods without an address in their status, as they are for as long as they start,
/// lost theirs. Nothing here reads that status.
#[test]
fn a_pod_that_is_still_starting_keeps_what_it_was_given() {
    for provided in [false, true] {
        let shared = Shared::new();
        shared.pod("a", "a-uid", "node");
        let (agent, controller) = (start(&shared, "node"), start(&shared, ""));
        let asked = Who { provided, ..who("a", "a-uid", "c-1") };
        let given = alone(&shared, add_and_undo(&agent, &shared, &asked, &Pool(3))).expect("ends").expect("given");
        look_after(&shared, &[&agent], &controller, false);
        // Whoever else states that the node is off is wrong about a pod that lives.
        look_after(&shared, &[&agent], &controller, true);
        assert_eq!((shared.addresses(), shared.world().shown("a")), (vec![given], vec![given]));
    }
}

/// k8snetworkplumbingwg/whereabouts#176: matched by the pod's name, the new pod's address was freed instead of the old one's.
/// The agent alone, and the controller alone; that needs somebody's word that the node is off, or a provider.
#[test]
fn of_two_pods_of_one_name_the_dead_one_loses_its_address() {
    for (provided, by_agent, node_gone) in
        [(false, true, false), (true, true, false), (true, false, false), (false, false, true)]
    {
        for round in 0..20 {
            let what = format!("provider {provided}, agent {by_agent}, round {round}");
            let shared = Shared::new();
            for _ in 0..round {
                shared.world().number();
            }
            let (a, b, controller) = (start(&shared, "a"), start(&shared, "b"), start(&shared, ""));
            let [old, new] =
                [who("web", "uid-1", "c-1"), who("web", "uid-2", "c-2")].map(|who| Who { provided, ..who });
            shared.pod("web", "uid-1", "a");
            let first = alone(&shared, add_and_undo(&a, &shared, &old, &Pool(9))).expect("ends").expect("given");
            shared.pod_goes("web");
            shared.pod("web", "uid-2", "b");
            let second = alone(&shared, add_and_undo(&b, &shared, &new, &Pool(9))).expect("ends").expect("given");
            assert_ne!(first, second, "the first is not known to be free");
            shared.world().gone.insert("c-1".to_owned());
            for _ in 0..8 {
                for address in shared.addresses() {
                    if by_agent {
                        alone(&shared, a.reconcile(address));
                        alone(&shared, b.reconcile(address));
                    } else {
                        alone(&shared, controller.collect(address, node_gone));
                    }
                }
                shared.pass(Duration::from_mins(1));
            }
            assert_eq!((shared.addresses(), shared.world().shown("web")), (vec![second], vec![second]), "{what}");
        }
    }
}

/// projectcalico/calico#7582: evicted and finished pods stay as objects, and kept their addresses.
#[test]
fn a_pod_that_ended_gives_back_and_one_whose_containers_may_run_does_not() {
    for provided in [false, true] {
        for torn_down_by in ["a DEL", "a DEL before its phase", "nobody tells"] {
            let shared = Shared::new();
            shared.pod("job", "uid", "node");
            let (agent, controller) = (start(&shared, "node"), start(&shared, ""));
            let asked = Who { provided, ..who("job", "uid", "c-1") };
            alone(&shared, add_and_undo(&agent, &shared, &asked, &Pool(3))).expect("ends").expect("given");
            let end = || shared.world().pods.get_mut("job").expect("there").terminal = true;
            if torn_down_by == "a DEL before its phase" {
                alone(&shared, del(&agent, &asked));
            }
            end();
            if torn_down_by == "a DEL" {
                alone(&shared, del(&agent, &asked));
                assert!(shared.addresses().is_empty(), "at once");
            }
            shared.world().gone.insert("c-1".to_owned());
            look_after(&shared, &[&agent], &controller, false);
            assert!(shared.addresses().is_empty() && shared.world().bound.is_empty(), "{torn_down_by}, {provided}");
        }
    }
    // Failed by the controller of nodes, on a node that nobody reaches. (A provider takes the address from the node's NIC.)
    let shared = Shared::new();
    shared.pod("far", "uid", "away");
    let (agent, controller) = (start(&shared, "away"), start(&shared, ""));
    let asked = who("far", "uid", "c-1");
    alone(&shared, add_and_undo(&agent, &shared, &asked, &Pool(3))).expect("ends").expect("given");
    shared.world().pods.get_mut("far").expect("there").terminal = true;
    look_after(&shared, &[], &controller, false);
    assert_eq!(shared.addresses().len(), 1, "its container may still run");
    look_after(&shared, &[&agent], &controller, false);
    assert_eq!(shared.addresses().len(), 1, "the node is back, and it does");
    look_after(&shared, &[], &controller, true);
    assert!(shared.addresses().is_empty(), "the node is off");
}
