//! DELs that come late, or again.

use crate::node::{Going, Pool, Who, add_and_undo, alone, del, look_after, start, together, who};
use crate::world::Shared;

/// cilium/cilium#10065: an address went to another pod, and a second DEL of the first one's sandbox freed it.
#[test]
fn a_del_that_comes_again_frees_nothing_of_whoever_came_after() {
    for provided in [false, true] {
        let shared = Shared::new();
        shared.pod("a", "a-uid", "node");
        let agent = start(&shared, "node");
        let [first, second] = [who("a", "a-uid", "c-1"), who("b", "b-uid", "c-2")].map(|who| Who { provided, ..who });
        let given = alone(&shared, add_and_undo(&agent, &shared, &first, &Pool(1))).expect("ends").expect("given");
        shared.pod_goes("a");
        alone(&shared, del(&agent, &first));
        shared.pod("b", "b-uid", "node");
        let again = alone(&shared, add_and_undo(&agent, &shared, &second, &Pool(1))).expect("ends");
        assert_eq!(again, Ok(given), "the pool has no other");
        let before = shared.world().allocations.clone();
        for _ in 0..3 {
            alone(&shared, del(&agent, &first));
        }
        assert_eq!(shared.world().allocations, before);
        assert_eq!(shared.world().bound.len(), usize::from(provided));
    }
}

/// The same within one pod, whose sandbox was made anew; the DEL of the old one comes while the new one asks.
#[test]
fn a_del_of_an_old_sandbox_beside_the_add_of_the_new_one_takes_nothing() {
    for provided in [false, true] {
        for round in 0..50 {
            let shared = Shared::new();
            for _ in 0..round {
                shared.world().number();
            }
            shared.pod("a", "a-uid", "node");
            let agent = start(&shared, "node");
            let [old, new] = ["c-1", "c-2"].map(|container| Who { provided, ..who("a", "a-uid", container) });
            let pool = Pool(2);
            let given = alone(&shared, add_and_undo(&agent, &shared, &old, &pool)).expect("ends").expect("given");
            let late = async {
                del(&agent, &old).await;
                Err("a DEL".to_owned())
            };
            let mut flows: Vec<Going<'_, _>> = vec![Box::pin(late)];
            flows.push(Box::pin(add_and_undo(&agent, &shared, &new, &pool)));
            let added = together(&shared, flows).pop().flatten().expect("ends");
            // A conflict is tried again by the runtime.
            let added = added.or_else(|_| alone(&shared, add_and_undo(&agent, &shared, &new, &pool)).expect("ends"));
            assert_eq!(added, Ok(given), "provider {provided}, round {round}");
            shared.world().gone.insert("c-1".to_owned());
            alone(&shared, del(&agent, &old));
            look_after(&shared, &[&agent], &start(&shared, ""), false);
            let world = shared.world();
            let held = world.allocations.values().next().expect("held");
            assert_eq!((held.value.container_id.as_str(), held.value.detached), ("c-2", false), "round {round}");
            assert_eq!(world.shown("a"), [given], "provider {provided}, round {round}");
        }
    }
}

/// k8snetworkplumbingwg/whereabouts#75: no DEL comes for pods of a dead node; and when it is back, its late DELs freed what
/// others had got.
#[test]
fn pods_of_a_dead_node_are_freed_and_its_late_dels_do_nothing() {
    for provided in [false, true] {
        let shared = Shared::new();
        let (dead, other, controller) = (start(&shared, "dead"), start(&shared, "other"), start(&shared, ""));
        let asked: Vec<Who> = (0..5)
            .map(|n| Who { provided, ..who(&format!("a{n}"), &format!("a{n}-uid"), &format!("dead-{n}")) })
            .collect();
        for one in &asked {
            shared.pod(&one.name, &one.uid, "dead");
            alone(&shared, add_and_undo(&dead, &shared, one, &Pool(5))).expect("ends").expect("given");
        }
        // The node controller evicts them; while the node may still run them, addresses without a provider stay.
        for one in &asked {
            shared.pod_goes(&one.name);
        }
        if !provided {
            look_after(&shared, &[&other], &controller, false);
            assert_eq!(shared.addresses().len(), 5, "nobody has said that the node is off");
        }
        look_after(&shared, &[&other], &controller, true);
        assert!(shared.addresses().is_empty() && shared.world().bound.is_empty());
        for n in 0..5 {
            let (name, uid) = (format!("b{n}"), format!("b{n}-uid"));
            shared.pod(&name, &uid, "other");
            let new = Who { provided, ..who(&name, &uid, &format!("other-{n}")) };
            alone(&shared, add_and_undo(&other, &shared, &new, &Pool(5))).expect("ends").expect("given");
        }
        let before = shared.world().allocations.clone();
        // It is back, with an agent that has read its allocations anew, or has not been away.
        for agent in [&start(&shared, "dead"), &dead] {
            for one in &asked {
                alone(&shared, del(agent, one));
            }
        }
        look_after(&shared, &[&dead, &other], &controller, true);
        assert_eq!(shared.world().allocations, before);
    }
}
