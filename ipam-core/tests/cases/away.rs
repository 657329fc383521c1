//! A provider that is away.

use crate::node::{Going, PROVIDER, Pool, Who, add_and_undo, alone, asked, del, spend, start, tried, who};
use crate::world::{Called, Mood, Shared, Trouble};
use ipam_core::{AddError, NotYet, Step, StoreError};
use std::time::Duration;

fn provided(name: &str, uid: &str, container: &str) -> Who {
    Who { provided: true, ..who(name, uid, container) }
}

fn releases(shared: &Shared) -> Vec<Called> {
    shared.world().calls.iter().filter(|one| !one.allocate).cloned().collect()
}

/// A request that never left leaves nothing to take back: the provider is not told of an address that it never heard of.
#[test]
fn what_never_left_is_not_released() {
    let shared = Shared::new();
    shared.world().mood = Mood::Unsent;
    shared.world().replicas = 1;
    for (name, kept) in [("a", false), ("db-0", true)] {
        shared.pod(name, "uid", "node");
        let agent = start(&shared, "node");
        let tell = |container: &str| {
            tried(&shared, &agent, &asked(&shared, &provided(name, "uid", container)), &Pool(3)).map(drop)
        };
        let error = tell("c-1").expect_err("nobody listens");
        assert!(matches!(error, AddError::NotYet(NotYet::Unreached { .. })) && error.again(), "{error}");
        let held: Vec<_> = shared.world().allocations.values().cloned().collect();
        assert_eq!(held.len(), usize::from(kept), "{name}: a retained pod keeps its address");
        assert!(held.iter().all(|one| one.value.held() && one.value.provider.is_none()), "unbound: {held:?}");
        let first = shared.addresses();
        tell("c-2").expect_err("nobody listens yet");
        assert!(!kept || shared.addresses() == first, "the same one");
        assert!(releases(&shared).is_empty(), "{:?}", releases(&shared));
        shared.world().mood = Mood::Works;
        tell("c-3").expect("it listens");
        assert!(!kept || shared.addresses() == first, "the same one");
        assert!(releases(&shared).is_empty(), "{:?}", releases(&shared));
        alone(&shared, del(&agent, &provided(name, "uid", "c-3"))).expect("it ends");
        shared.world().mood = Mood::Unsent;
        shared.world().allocations.clear();
        shared.world().endpoints.clear();
        shared.world().bound.clear();
    }
    assert_eq!(shared.world().calls[0].call.server, PROVIDER);
}

/// A pod whose binding has to be had anew says in its events what is in the way, try after try.
#[test]
fn who_waits_for_a_release_is_told_why_it_lasts() {
    let shared = Shared::new();
    shared.pod("a", "uid", "node");
    let agent = start(&shared, "node");
    let ask = |container: &str| tried(&shared, &agent, &asked(&shared, &provided("a", "uid", container)), &Pool(3));
    ask("c-1").expect("it works");
    // Nothing says any more what was bound.
    shared.world().endpoints.clear();
    shared.world().kept.clear();
    shared.world().mood = Mood::Unsent;
    let heard = std::sync::Mutex::new(None);
    let (second, hear) = (provided("a", "uid", "c-2"), &heard);
    let (agent, shared) = (&agent, &shared);
    let mut going: Vec<Going<'_, ()>> = vec![Box::pin(async move {
        drop(add_and_undo(agent, shared, &second, &Pool(3)).await);
    })];
    spend(shared, &mut going, Duration::from_secs(20));
    let third = provided("a", "uid", "c-3");
    going.push(Box::pin(async move {
        *hear.lock().expect("whole") = add_and_undo(agent, shared, &third, &Pool(3)).await.err();
    }));
    spend(shared, &mut going, Duration::from_secs(101));
    let told = hear.lock().expect("whole").take().expect("an error within its time");
    assert!(told.contains("is being released") && told.contains("connection refused"), "{told}");
    shared.world().mood = Mood::Works;
    spend(shared, &mut going, Duration::from_mins(2));
    assert!(going.is_empty() && shared.world().bound.is_empty());
    assert_eq!(ask("c-4").expect("it works").addresses.len(), 1);
}

/// A result that cannot be read does not become readable: what is bound is let go of, and had anew.
#[test]
fn a_binding_whose_result_cannot_be_read_is_had_anew() {
    for name in ["a", "db-0"] {
        let shared = Shared::new();
        shared.world().replicas = 1;
        shared.pod(name, "uid", "node");
        let agent = start(&shared, "node");
        let ask =
            |container: &str| tried(&shared, &agent, &asked(&shared, &provided(name, "uid", container)), &Pool(3));
        ask("c-1").expect("it works");
        let first = shared.addresses();
        shared.world().endpoints.clear();
        shared.trouble(|_, _, step| match step {
            Step::ReadKept => Trouble::Refuse(StoreError::Refused("the disk".to_owned())),
            _ => Trouble::None,
        });
        let error = ask("c-2").expect_err("it has to be bound anew");
        assert!(matches!(error, AddError::NotYet(NotYet::BoundAnew(_))), "{error}");
        ask("c-3").expect("it works");
        assert_eq!(shared.addresses(), first, "its pod keeps it");
        assert_eq!(releases(&shared).len(), 1);
    }
}

/// A process that is to end has no time for a call; the pod's next ADD makes it.
#[test]
fn no_call_begins_in_a_process_that_ends() {
    for (name, kept) in [("a", false), ("db-0", true)] {
        let shared = Shared::new();
        shared.world().replicas = 1;
        shared.pod(name, "uid", "node");
        let agent = start(&shared, "node");
        shared.world().stopping = true;
        let ask = || tried(&shared, &agent, &asked(&shared, &provided(name, "uid", "c-1")), &Pool(3));
        let error = ask().expect_err("it ends");
        assert!(matches!(error, AddError::NotYet(NotYet::Stopping(Step::Bind))) && error.again(), "{error}");
        assert!(shared.world().calls.is_empty(), "nobody was asked");
        assert_eq!(shared.addresses().len(), usize::from(kept), "and nothing is left");
        shared.world().stopping = false;
        ask().expect("it works");
    }
}
