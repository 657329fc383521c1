//! Sets of pods that are scaled, and pods that come back under their names.

use crate::node::{Flow, Going, Pool, Who, add_and_undo, alone, del, look_after, start, together, who};
use crate::world::Shared;
use ipam_core::Address;
use std::collections::BTreeSet;

async fn until_added(agent: &Flow, shared: &Shared, who: &Who, pool: &Pool) -> Option<Address> {
    for _ in 0..40 {
        if let Ok(address) = add_and_undo(agent, shared, who, pool).await {
            return Some(address);
        }
        // Its kubelet pauses.
        ipam_core::Host::sleep(&crate::side::Side::new(shared, "node"), std::time::Duration::from_secs(10)).await;
    }
    None
}

/// spidernet-io/spiderpool#3778: what ran for the old pod of a name read the new one's endpoint, and freed its address.
#[test]
fn scaling_down_and_up_beside_the_collectors_takes_nothing_from_who_lives() {
    const PODS: usize = 5;
    for provided in [false, true] {
        let shared = Shared::new();
        let (agent, controller) = (start(&shared, "node"), start(&shared, ""));
        let pool = Pool(8);
        let asked = |n: usize, round: u32| Who {
            provided,
            ..who(&format!("db-{n}"), &format!("db-{n}-{round}"), &format!("c-{n}-{round}"))
        };
        for round in 0..20 {
            shared.world().replicas = PODS;
            let now: Vec<Who> = (0..PODS).map(|n| asked(n, round)).collect();
            for one in &now {
                shared.pod(&one.name, &one.uid, "node");
            }
            let before: Vec<Who> =
                round.checked_sub(1).into_iter().flat_map(|last| (0..PODS).map(move |n| asked(n, last))).collect();
            let mut flows: Vec<Going<'_, Option<Address>>> = Vec::new();
            for one in &now {
                flows.push(Box::pin(until_added(&agent, &shared, one, &pool)));
            }
            for address in shared.addresses() {
                for flows_of in [&agent, &controller] {
                    flows.push(Box::pin(async move {
                        let _ = flows_of.reconcile(address).await;
                        let _ = flows_of.collect(address, false).await;
                        None
                    }));
                }
            }
            for one in &before {
                let agent = &agent;
                flows.push(Box::pin(async move {
                    del(agent, one).await;
                    None
                }));
            }
            let given: Vec<Option<Address>> =
                together(&shared, flows).into_iter().take(PODS).map(Option::flatten).collect();
            let distinct: BTreeSet<Address> = given.iter().copied().flatten().collect();
            assert_eq!(distinct.len(), PODS, "round {round}, provider {provided}: {given:?}");
            for (one, address) in now.iter().zip(&given) {
                let world = shared.world();
                let held = &world.allocations[&address.expect("given")].value;
                assert_eq!((&held.pod.uid, held.held()), (&one.uid, true), "round {round}, provider {provided}");
                assert_eq!(world.bound.contains_key(&held.address), provided, "round {round}");
            }
            // Down, at once; the sandboxes go, some DELs come only in the next round.
            let mut world = shared.world();
            world.replicas = 0;
            for one in &now {
                world.pods.remove(&one.name);
                world.gone.insert(one.container.clone());
            }
            drop(world);
            if round % 3 == 0 {
                look_after(&shared, &[&agent], &controller, false);
                assert!(shared.addresses().is_empty(), "round {round}, provider {provided}");
            }
        }
    }
}

/// aws/amazon-vpc-cni-k8s#1374: what was left of a pod of the same name on the same node caught the next one.
#[test]
fn after_ten_pods_of_a_name_there_is_what_was_after_the_first() {
    for provided in [false, true] {
        let shared = Shared::new();
        shared.world().replicas = 1;
        let (agent, controller) = (start(&shared, "node"), start(&shared, ""));
        let mut after = Vec::new();
        for round in 0..10 {
            let one = Who { provided, ..who("db-0", &format!("uid-{round}"), &format!("c-{round}")) };
            shared.pod("db-0", &one.uid, "node");
            let given = alone(&shared, until_added(&agent, &shared, &one, &Pool(9))).flatten();
            look_after(&shared, &[&agent], &controller, false);
            let world = shared.world();
            after.push((given, world.allocations.len(), world.bound.clone(), world.shown("db-0")));
            drop(world);
            // Deleted with a grace of 0: the pod is gone before its sandbox is.
            shared.pod_goes("db-0");
            shared.world().gone.insert(one.container.clone());
            alone(&shared, del(&agent, &one));
            look_after(&shared, &[&agent], &controller, false);
        }
        assert!(after[0].0.is_some());
        assert!(after.iter().all(|round| *round == after[0]), "provider {provided}: {after:?}");
    }
}
