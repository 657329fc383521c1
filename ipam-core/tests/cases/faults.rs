//! Something fails in the middle of an ADD.

use crate::node::{Flow, Going, Pool, Who, add_and_undo, alone, del, look_after, start, together, who};
use crate::world::{Shared, Trouble};
use futures::FutureExt;
use ipam_core::{Address, Step, StoreError};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const NODE: &str = "node";

pub(crate) fn troubles() -> [Trouble; 7] {
    let unknown = || StoreError::Unknown("not done".to_owned());
    [
        Trouble::Refuse(StoreError::Conflict),
        Trouble::Refuse(StoreError::Gone),
        Trouble::Refuse(StoreError::Throttled { after: None }),
        Trouble::Refuse(StoreError::Refused("policy".to_owned())),
        Trouble::Refuse(unknown()),
        Trouble::Lose,
        Trouble::Die,
    ]
}

/// An ADD that meets one trouble at one step, and the agent as it is after that. None if it never gets there.
fn spoilt(shared: &Shared, asked: &Who, step: Step, trouble: &Trouble) -> Option<Flow> {
    let met = Arc::new(Mutex::new(false));
    let (seen, trouble) = (Arc::clone(&met), trouble.clone());
    shared.trouble(move |_, _, at| {
        let first = at == step && !std::mem::replace(&mut *seen.lock().expect("whole"), at == step);
        if first { trouble.clone() } else { Trouble::None }
    });
    let agent = start(shared, NODE);
    let ended = alone(shared, add_and_undo(&agent, shared, asked, &Pool(3)));
    shared.no_trouble();
    let met = *met.lock().expect("whole");
    met.then(|| if ended.is_some() { agent } else { start(shared, NODE) })
}

fn each(act: impl Fn(&Shared, &Who, Flow, &str)) {
    let mut met = BTreeSet::new();
    for provided in [false, true] {
        for step in Step::ALL {
            for trouble in troubles() {
                let shared = Shared::new();
                shared.pod("a", "a-uid", NODE);
                let asked = Who { provided, ..who("a", "a-uid", "c-1") };
                let Some(agent) = spoilt(&shared, &asked, *step, &trouble) else { continue };
                met.insert(*step);
                act(&shared, &asked, agent, &format!("provider {provided}, {trouble:?} at {step:?}"));
            }
        }
    }
    let every = [Step::ReadPod, Step::ReadEndpoint, Step::Reserve, Step::Bind, Step::Publish, Step::Keep];
    assert!(every.iter().all(|step| met.contains(step)), "{met:?}");
}

/// cilium/cilium#9854: the way back was not always gone. The pod goes after its ADD has failed, with or without a DEL.
#[test]
fn an_add_that_fails_anywhere_leaves_all_as_before() {
    for deleted in [true, false] {
        each(|shared, asked, agent, what| {
            if deleted {
                alone(shared, del(&agent, asked));
            }
            shared.world().gone.insert(asked.container.clone());
            shared.pod_goes("a");
            look_after(shared, &[&agent], &start(shared, ""), false);
            let world = shared.world();
            assert!(world.allocations.is_empty(), "{what}: {:?}", world.allocations);
            assert!(world.bound.is_empty(), "{what}: the cloud still has {:?}", world.bound);
            assert!(world.shown("a").is_empty(), "{what}: the endpoint still shows {:?}", world.shown("a"));
        });
    }
}

/// The one address that pod `a` has, everywhere.
fn the_only(shared: &Shared, provided: bool, what: &str) -> Address {
    let world = shared.world();
    let held: Vec<_> = world.allocations.values().collect();
    assert!(held.len() == 1 && held[0].value.held(), "{what}: {held:?}");
    let address = held[0].value.address;
    assert_eq!(world.shown("a"), [address], "{what}");
    assert_eq!(
        world.bound.keys().copied().collect::<Vec<_>>(),
        if provided { vec![address] } else { vec![] },
        "{what}"
    );
    address
}

/// containerd/containerd#5438: after a time-out no DEL came, and the retry took a second address. The runtime forgets the
/// sandbox whose ADD failed and tries again with a new one.
#[test]
fn a_retry_after_any_fault_has_one_address_and_no_second_one_for_ever() {
    each(|shared, asked, agent, what| {
        shared.world().gone.insert(asked.container.clone());
        let controller = start(shared, "");
        let mut given = None;
        for retry in 2..8 {
            let asked = Who { container: format!("c-{retry}"), ..asked.clone() };
            if let Some(Ok(address)) = alone(shared, add_and_undo(&agent, shared, &asked, &Pool(3))) {
                given = Some(address);
                break;
            }
            shared.world().gone.insert(asked.container);
            look_after(shared, &[&agent], &controller, false);
        }
        look_after(shared, &[&agent], &controller, false);
        assert_eq!(given, Some(the_only(shared, asked.provided, what)), "{what}");
    });
}

/// The same, where the plugin alone is killed: its ADD goes on in the agent, however far it was, beside the next one.
#[test]
fn an_add_whose_caller_was_killed_and_its_retry_get_the_same_address() {
    for provided in [false, true] {
        for killed_at in 0..12 {
            let shared = Shared::new();
            shared.pod("a", "a-uid", NODE);
            let agent = start(&shared, NODE);
            let [first, second] = ["c-1", "c-2"].map(|container| Who { provided, ..who("a", "a-uid", container) });
            let pool = Pool(3);
            let mut going: Going<'_, Result<Address, String>> =
                Box::pin(add_and_undo(&agent, &shared, &first, &pool).fuse());
            let early = (0..killed_at).find_map(|_| going.as_mut().now_or_never());
            let retried: Going<'_, Result<Address, String>> = Box::pin(add_and_undo(&agent, &shared, &second, &pool));
            let given = match early {
                Some(early) => vec![early, alone(&shared, retried).expect("ends")],
                None => together(&shared, vec![going, retried]).into_iter().map(|one| one.expect("ends")).collect(),
            };
            let what = format!("provider {provided}, killed at {killed_at}");
            let address = the_only(&shared, provided, &what);
            assert_eq!(given, [Ok(address), Ok(address)], "{what}");
            // The sandbox of the killed one is taken down in the end.
            shared.world().gone.insert("c-1".to_owned());
            alone(&shared, del(&agent, &first));
            shared.pass(Duration::from_mins(5));
            look_after(&shared, &[&agent], &start(&shared, ""), false);
            assert_eq!(the_only(&shared, provided, &what), address, "{what}");
        }
    }
}
