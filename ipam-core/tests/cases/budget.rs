//! How long calls of a provider may take, and what is not begun because there is too little time.

use crate::node::{Pool, Who, alone, asked, del, start, tried, who};
use crate::world::{Called, Mood, Shared};
use ipam_core::{AddError, Answer, Step};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(50);
const GRACE: Duration = Duration::from_secs(2);

fn provided(name: &str) -> Who {
    Who { provided: true, ..who(name, "uid", "c-1") }
}

/// Tries with so much time.
fn within(shared: &Shared, name: &str, time: Duration) -> Result<Answer, AddError> {
    let mut add = asked(shared, &provided(name));
    add.deadline = shared.world().now + time;
    tried(shared, &start(shared, "node"), &add, &Pool(3))
}

fn only_call(shared: &Shared) -> Called {
    let mut calls = std::mem::take(&mut shared.world().calls);
    assert_eq!(calls.len(), 1, "{calls:?}");
    calls.remove(0)
}

const SHORT: &str = "parent budget insufficient: 47.9s remaining is less than provider worst-case 48s";

#[test]
fn with_less_than_the_worst_case_left_nothing_is_begun() {
    let shared = Shared::new();
    shared.world().replicas = 1;
    for name in ["a", "db-0"] {
        shared.pod(name, "uid", "node");
        let error = within(&shared, name, Duration::from_millis(47_900)).expect_err("too little");
        assert_eq!((error.to_string().as_str(), error.again()), (SHORT, false));
        let world = shared.world();
        assert!(world.calls.is_empty() && world.allocations.is_empty() && world.endpoints.is_empty());
    }
}

/// Time goes while the address is reserved: nothing is sent, and what is reserved is given back, or kept for a retained pod.
#[test]
fn time_that_goes_before_the_call_counts() {
    for (name, kept) in [("a", 0), ("db-0", 1)] {
        let shared = Shared::new();
        shared.world().replicas = 1;
        shared.pod(name, "uid", "node");
        for step in [Step::Reserve, Step::Swap] {
            shared.trouble(move |world, _, at| {
                if at == step {
                    world.now += Duration::from_millis(4_100);
                }
                crate::world::Trouble::None
            });
            let first = shared.addresses();
            let error = within(&shared, name, Duration::from_secs(52)).map(drop);
            if step == Step::Swap && kept == 0 {
                // There is nothing to swap: it reserves one more, and has the time.
                error.expect("time enough");
                continue;
            }
            assert_eq!(error.expect_err("too little").to_string(), SHORT, "{name} at {step:?}");
            let world = shared.world();
            assert!(world.calls.is_empty() && world.bound.is_empty(), "{name} at {step:?}");
            let held: Vec<_> = world.allocations.values().collect();
            assert_eq!(held.len(), kept, "{name} at {step:?}");
            assert!(held.iter().all(|one| one.value.held() && one.value.provider.is_none()), "{held:?}");
            drop(world);
            assert!(first.is_empty() || first == shared.addresses(), "the same one");
        }
    }
}

#[test]
fn a_call_ends_with_its_limit_or_with_the_add() {
    for (time, call) in [(48, 48), (49, 49), (50, 50), (51, 50), (100, 50)].map(|(time, call): (u64, u64)| {
        let seconds = Duration::from_secs;
        (seconds(time), seconds(call))
    }) {
        let shared = Shared::new();
        shared.pod("a", "uid", "node");
        let now = shared.world().now;
        within(&shared, "a", time).expect("enough");
        let called = only_call(&shared);
        let limit = (time >= LIMIT).then_some(LIMIT);
        assert_eq!((called.call.deadline.at, called.call.deadline.limit), (now + call, limit), "{time:?}");
        assert_eq!(called.settle, call + GRACE, "{time:?}: as long as that may take effect, others wait");
    }
}

/// However short the ADD's time was, and however long the release has waited for earlier calls: each call has a whole limit, under
/// a settle of its own.
#[test]
fn a_release_has_a_budget_of_its_own() {
    for unknown in [false, true] {
        let shared = Shared::new();
        shared.pod("a", "uid", "node");
        if unknown {
            shared.world().mood = Mood::Unknown;
        }
        assert_eq!(within(&shared, "a", Duration::from_secs(48)).is_err(), unknown);
        let bound = only_call(&shared);
        shared.world().mood = Mood::Works;
        shared.pod_goes("a");
        let agent = start(&shared, "node");
        alone(&shared, del(&agent, &provided("a"))).expect("it ends");
        let called = only_call(&shared);
        assert_eq!(called.call.deadline.at.saturating_sub(called.at), LIMIT, "after an unknown outcome: {unknown}");
        assert_eq!((called.call.deadline.limit, called.allocate), (Some(LIMIT), false));
        let settled = bound.call.deadline.at + GRACE;
        assert!(!unknown || called.at >= settled, "not before {settled:?}: {called:?}");
        assert!(shared.addresses().is_empty());
    }
}
