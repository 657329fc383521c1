//! A provider that gives one VLAN twice.

use crate::node::{Flow, Pool, Who, alone, asked, del, start, tried, who};
use crate::world::Shared;
use ipam_core::{Add, AddError, Answer, Releasing, State, Then};

const OTHER_NIC: &str = "02:00:00:00:00:02";

fn provided(name: &str) -> Who {
    Who { provided: true, ..who(name, &format!("{name}-uid"), &format!("{name}-1")) }
}

fn add(shared: &Shared, name: &str, node: &str) -> Add {
    shared.pod(name, &format!("{name}-uid"), node);
    asked(shared, &provided(name))
}

fn start_one(shared: &Shared, agent: &Flow, name: &str, node: &str) -> Result<Answer, AddError> {
    tried(shared, agent, &add(shared, name, node), &Pool(9))
}

#[test]
fn a_vlan_is_used_once_on_a_nic_also_after_a_restart_of_the_agent() {
    let shared = Shared::new();
    shared.world().vlan = Some(7);
    let agent = start(&shared, "node");
    let first = start_one(&shared, &agent, "first", "node").expect("nobody has it");
    assert_eq!(first.vlan, Some(7));
    let taken = first.addresses[0].address;

    let restarted = start(&shared, "node");
    for (agent, name) in [(&agent, "second"), (&restarted, "third")] {
        let error = start_one(&shared, agent, name, "node").expect_err("the kernel has one device for each");
        assert!(matches!(error, AddError::Provider { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("iaas response has the vlanId 7 for IP"), "{text}");
        assert!(text.ends_with(&format!("{taken} of pod default/first has it on the same NIC")), "{text}");
        let world = shared.world();
        assert!(world.allocations.keys().eq([&taken]) && world.bound.keys().eq([&taken]), "{name}: it is undone");
        assert!(world.shown(name).is_empty(), "{name}: it is undone");
    }
    assert_eq!(shared.world().calls.iter().filter(|one| !one.allocate).count(), 2, "released, each once");

    let mut on_other = add(&shared, "fourth", "node");
    on_other.parent.as_mut().expect("a NIC").mac = OTHER_NIC.to_owned();
    let fourth = tried(&shared, &restarted, &on_other, &Pool(9)).expect("another NIC");
    let elsewhere = start(&shared, "elsewhere");
    let fifth = start_one(&shared, &elsewhere, "fifth", "elsewhere").expect("another node");
    assert_eq!((fourth.vlan, fifth.vlan), (Some(7), Some(7)));

    // Its own again, and free once it is gone.
    let again = tried(&shared, &restarted, &asked(&shared, &provided("first")), &Pool(9)).expect("its own");
    assert_eq!(again, first);
    shared.pod_goes("first");
    alone(&shared, del(&restarted, &provided("first"))).expect("it ends");
    start_one(&shared, &restarted, "sixth", "node").expect("nobody has it any more");
}

/// What a provider leaves out stays as it was, for the same pod and for the next one of a StatefulSet; not for another pod that
/// happens to have the name, while the first one's sandbox may still run.
#[test]
fn a_mac_that_is_left_out_is_not_that_of_an_earlier_pod() {
    for (name, kept) in [("a", false), ("db-0", true)] {
        let shared = Shared::new();
        shared.world().replicas = 1;
        let agent = start(&shared, "node");
        start_one(&shared, &agent, name, "node").expect("given");
        let mac = Some("02:00:00:00:aa:aa".to_owned());
        {
            let mut world = shared.world();
            world.endpoints.get_mut(name).expect("shown").value.interfaces[0].mac.clone_from(&mac);
            if kept {
                // Unbound by a release that kept it for its pod.
                let held = world.allocations.values_mut().next().expect("one");
                held.value.provider = None;
                world.bound.clear();
                world.gone.insert(format!("{name}-1"));
            }
        }
        shared.pod(name, "later-uid", "node");
        let later = Who { provided: true, ..who(name, "later-uid", "later") };
        let given = tried(&shared, &agent, &asked(&shared, &later), &Pool(9)).expect("given");
        assert_eq!(given.mac, mac.filter(|_| kept), "{name}");
    }
}

/// aws/amazon-vpc-resource-controller-k8s#595: what is being released may have been freed by a provider that says it was not: its
/// VLAN is in nobody's way.
#[test]
fn a_vlan_whose_release_goes_on_can_be_given_again() {
    let shared = Shared::new();
    shared.world().vlan = Some(7);
    let agent = start(&shared, "node");
    start_one(&shared, &agent, "first", "node").expect("nobody has it");
    shared.pod_goes("first");
    for one in shared.world().allocations.values_mut() {
        one.value.state = State::Releasing(Releasing { releaser: "of another".to_owned(), then: Then::Delete });
    }
    assert_eq!(start_one(&shared, &agent, "second", "node").expect("it is the kernel's to refuse").vlan, Some(7));
}

/// A pod that had its address before its network had a provider.
#[test]
fn what_was_shown_without_a_provider_is_bound_once_there_is_one() {
    let shared = Shared::new();
    let agent = start(&shared, "node");
    let with = add(&shared, "a", "node");
    let without = Add { parent: None, ..with.clone() };
    let before = tried(&shared, &agent, &without, &Pool(9)).expect("given");
    assert_eq!((before.vlan, shared.world().calls.len()), (None, 0));
    let now = tried(&shared, &agent, &Add { container_id: "a-2".to_owned(), ..with }, &Pool(9)).expect("bound");
    assert_eq!((now.addresses.clone(), shared.world().bound.len()), (before.addresses, 1));
    assert!(now.vlan.is_some() && now.bind_id.is_some(), "{now:?}");
}
