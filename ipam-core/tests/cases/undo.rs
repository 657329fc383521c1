//! The way back, and faults on it.

use crate::faults::troubles;
use crate::node::{Pool, Who, add_and_undo, alone, look_after, start, who};
use crate::world::{Shared, Trouble};
use ipam_core::{Step, StoreError};

/// The cloud says no, and then `trouble` meets the first `step` of the way back.
fn refused(shared: &Shared, step: Option<Step>, trouble: Trouble) -> bool {
    shared.pod("a", "a-uid", "node");
    let agent = start(shared, "node");
    let (mut refused, mut met) = (false, false);
    let done = std::sync::Arc::new(std::sync::Mutex::new(false));
    let seen = std::sync::Arc::clone(&done);
    shared.trouble(move |_, _, at| {
        if at == Step::Bind && !refused {
            refused = true;
            return Trouble::Refuse(StoreError::Refused("quota".to_owned()));
        }
        if refused && Some(at) == step && !met {
            met = true;
            *seen.lock().expect("whole") = true;
            return trouble.clone();
        }
        Trouble::None
    });
    let asked = Who { provided: true, ..who("a", "a-uid", "c-1") };
    let ended = alone(shared, add_and_undo(&agent, shared, &asked, &Pool(3)));
    if let Some(ended) = ended {
        assert!(ended.expect_err("refused").contains("the provider refuses to bind"));
    }
    shared.no_trouble();
    *done.lock().expect("whole")
}

/// cilium/cilium#9854: what a complete answer says no to is given back before anything else happens.
#[test]
fn a_refusal_is_taken_back_at_once() {
    let shared = Shared::new();
    refused(&shared, None, Trouble::None);
    let world = shared.world();
    assert!(world.allocations.is_empty() && world.bound.is_empty() && world.shown("a").is_empty());
}

/// The same, when the way back is cut: what is stored says what there is to do, to whoever looks next. The pod lives on.
#[test]
fn a_way_back_that_is_cut_is_gone_to_its_end_by_others() {
    let mut met = 0;
    for step in [Step::ReadEndpoint, Step::Withdraw, Step::Fence, Step::Unbind, Step::Renew, Step::Remove] {
        for trouble in troubles() {
            let shared = Shared::new();
            if !refused(&shared, Some(step), trouble.clone()) {
                continue;
            }
            met += 1;
            // Not the process that was at it.
            look_after(&shared, &[&start(&shared, "node")], &start(&shared, ""), false);
            let world = shared.world();
            assert!(world.allocations.is_empty(), "{trouble:?} at {step:?}: {:?}", world.allocations);
            assert!(world.bound.is_empty() && world.shown("a").is_empty(), "{trouble:?} at {step:?}");
        }
    }
    assert!(met >= 5 * 7, "{met}: every step of the way, with every trouble");
}
