//! What people ask to be released.

use crate::node::{Flow, Pool, Who, add_and_undo, alone, del, start, who};
use crate::world::Shared;
use ipam_core::{Address, Allocation, Answered, Asked, ReleaseRequest, Releasing, State, Then};
use std::time::Duration;

/// A pod of the StatefulSet that has an address, and the agent and controller that look after it.
fn placed(shared: &Shared, provided: bool) -> (Flow, Flow, Who, Address) {
    shared.world().replicas = 1;
    shared.pod("db-0", "uid", "node");
    let (agent, controller) = (start(shared, "node"), start(shared, ""));
    let asked = Who { provided, ..who("db-0", "uid", "c-1") };
    let given = alone(shared, add_and_undo(&agent, shared, &asked, &Pool(3))).expect("ends").expect("given");
    (agent, controller, asked, given)
}

fn ask(shared: &Shared, address: Address, abandon: bool) {
    let text = str::to_owned;
    let asked = ReleaseRequest { by: text("ann"), at: text("now"), abandon };
    write(shared, address, |one| one.release_request = Some(asked));
}

fn write(shared: &Shared, address: Address, change: impl FnOnce(&mut Allocation)) {
    let mut world = shared.world();
    let mut stored = world.allocations.remove(&address).expect("there");
    change(&mut stored.value);
    let uid = Some(stored.version.uid.clone());
    let stored = world.store(stored.value, uid);
    world.allocations.insert(address, stored);
}

fn carry_out(shared: &Shared, controller: &Flow, address: Address) -> Asked {
    alone(shared, controller.carry_out(address)).expect("ends").expect("no fault")
}

#[test]
fn what_a_set_keeps_is_given_up_when_somebody_asks() {
    for provided in [false, true] {
        let shared = Shared::new();
        let (_, controller, _, address) = placed(&shared, provided);
        shared.world().pods.remove("db-0");
        shared.pass(Duration::from_mins(5));
        ask(&shared, address, false);
        assert_eq!(carry_out(&shared, &controller, address), Asked::Answered(Answered::Released));
        let world = shared.world();
        assert!(world.allocations.is_empty() && world.bound.is_empty(), "{provided}");
        drop(world);
        assert!(shared.world().shown("db-0").is_empty(), "invariant 3");
    }
}

#[test]
fn a_pod_that_is_there_keeps_its_address_and_the_request_does_not_wait_for_its_end() {
    for (terminating, abandon) in [(false, false), (true, false), (false, true)] {
        let shared = Shared::new();
        let (_, controller, _, address) = placed(&shared, true);
        shared.world().pods.get_mut("db-0").expect("there").terminating = terminating;
        ask(&shared, address, abandon);
        assert_eq!(carry_out(&shared, &controller, address), Asked::Answered(Answered::Declined));
        assert_eq!(shared.world().shown("db-0"), [address]);
        shared.world().pods.remove("db-0");
        assert_eq!(carry_out(&shared, &controller, address), Asked::Nothing, "it was taken off");
        assert_eq!(shared.addresses(), [address]);
    }
}

#[test]
fn a_release_that_was_cut_off_is_taken_up_once_its_call_has_settled() {
    for then in [Then::Delete, Then::Keep] {
        let shared = Shared::new();
        let (_, controller, _, address) = placed(&shared, true);
        shared.world().pods.remove("db-0");
        write(&shared, address, |one| {
            one.state = State::Releasing(Releasing { releaser: "of before".to_owned(), then });
        });
        ask(&shared, address, false);
        assert_eq!(carry_out(&shared, &controller, address), Asked::Waits, "its call may be on its way");
        shared.pass(Duration::from_mins(5));
        // What a set keeps is unbound first, and given up then.
        let mut done = carry_out(&shared, &controller, address);
        if then == Then::Keep {
            assert_eq!((done, shared.world().bound.len()), (Asked::Waits, 0));
            done = carry_out(&shared, &controller, address);
        }
        assert_eq!(done, Asked::Answered(Answered::Released), "{then:?}");
        let world = shared.world();
        assert!(world.allocations.is_empty() && world.bound.is_empty(), "{then:?}");
    }
}

#[test]
fn a_request_is_about_the_pod_that_had_the_address_then() {
    let shared = Shared::new();
    let (agent, controller, asked, address) = placed(&shared, false);
    alone(&shared, del(&agent, &asked));
    shared.world().gone.insert("c-1".to_owned());
    shared.pod("db-0", "uid-2", "node");
    ask(&shared, address, false);
    let again = Who { provided: false, ..who("db-0", "uid-2", "c-2") };
    let given = alone(&shared, add_and_undo(&agent, &shared, &again, &Pool(3))).expect("ends").expect("given");
    assert_eq!(given, address);
    shared.world().pods.remove("db-0");
    assert_eq!(carry_out(&shared, &controller, address), Asked::Nothing);
}

#[test]
fn what_is_abandoned_is_free_here_whatever_the_provider_thinks() {
    let shared = Shared::new();
    let (_, controller, _, address) = placed(&shared, true);
    shared.world().pods.remove("db-0");
    ask(&shared, address, true);
    assert_eq!(carry_out(&shared, &controller, address), Asked::Answered(Answered::Abandoned));
    assert!(shared.addresses().is_empty() && shared.world().shown("db-0").is_empty());
    assert_eq!(shared.world().bound.len(), 1, "nobody asked");
}

/// Whoever gets the address next must not meet a call of before.
#[test]
fn what_is_abandoned_is_free_once_no_call_can_take_effect() {
    for releasing in [false, true] {
        let shared = Shared::new();
        let (_, controller, _, address) = placed(&shared, true);
        shared.world().pods.remove("db-0");
        shared.world().endpoints.clear();
        if releasing {
            let state = State::Releasing(Releasing { releaser: "of another".to_owned(), then: Then::Delete });
            write(&shared, address, |one| one.state = state);
        }
        ask(&shared, address, true);
        let began = shared.world().now;
        assert_eq!(carry_out(&shared, &controller, address), Asked::Answered(Answered::Abandoned));
        let took = shared.world().now.saturating_sub(began);
        assert!(took >= Duration::from_secs(50), "releasing {releasing}: {took:?}");
        assert!(shared.addresses().is_empty());
    }
}
