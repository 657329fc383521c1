//! Endpoints that others delete and make again.

use crate::node::{Pool, Who, add_and_undo, alone, look_after, start, who};
use crate::world::{Shared, Trouble, World};
use ipam_core::Step;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Remade {
    Not,
    Empty,
    Same,
    /// Of the pod that had the name before.
    OfAnother,
}

fn remake(world: &mut World, remade: Remade) {
    let Some(mut old) = world.endpoints.remove("a") else { return };
    match remade {
        Remade::Not => return,
        Remade::Empty => old.value.interfaces.clear(),
        Remade::Same => {}
        Remade::OfAnother => "earlier".clone_into(&mut old.value.pod.uid),
    }
    let new = world.store(old.value, None);
    world.endpoints.insert("a".to_owned(), new);
}

/// spidernet-io/spiderpool#4362: a pod with several interfaces did not start, because its endpoint was another object by the
/// time of the second. Before its ADD, and in the middle of it.
#[test]
fn a_pod_of_several_interfaces_starts_whatever_becomes_of_its_endpoint() {
    for provided in [false, true] {
        for remade in [Remade::Not, Remade::Empty, Remade::Same, Remade::OfAnother] {
            for when in [None, Some(Step::ReadEndpoint), Some(Step::Reserve), Some(Step::Publish), Some(Step::Keep)] {
                let what = format!("provider {provided}, {remade:?} at {when:?}");
                let shared = Shared::new();
                shared.pod("a", "uid", "node");
                let (agent, controller) = (start(&shared, "node"), start(&shared, ""));
                let asked =
                    ["net1", "net2", "net3"].map(|interface| Who { interface, provided, ..who("a", "uid", "c-1") });
                let mut given = Vec::new();
                for one in &asked {
                    let mut left = 1;
                    match when {
                        None => remake(&mut shared.world(), remade),
                        Some(when) => shared.trouble(move |world, _, step| {
                            if step == when && left > 0 {
                                left -= 1;
                                remake(world, remade);
                            }
                            Trouble::None
                        }),
                    }
                    // The runtime tries again, with a minute of looking after between; a provider's address may be bound anew.
                    let address = (0..4).find_map(|_| {
                        let added = alone(&shared, add_and_undo(&agent, &shared, one, &Pool(9))).expect("ends");
                        added.inspect_err(|_| look_after(&shared, &[&agent], &controller, false)).ok()
                    });
                    shared.no_trouble();
                    given.push(address.unwrap_or_else(|| panic!("{what}: {} gets none", one.interface)));
                }
                look_after(&shared, &[&agent], &controller, false);
                let mut distinct = given.clone();
                distinct.sort_unstable();
                distinct.dedup();
                assert_eq!(shared.addresses(), distinct, "{what}: each has its own, and none has two");
                assert_eq!(distinct.len(), 3, "{what}");
                if provided {
                    assert_eq!(shared.world().bound.len(), 3, "{what}");
                }
            }
        }
    }
}
