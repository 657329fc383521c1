use super::*;
use crate::ask::Pod;
use ipam_core::Subnet;

const PARENT: &str = "fa:16:3e:00:00:01";

fn chance() -> impl FnMut() -> u64 {
    let mut drawn = fastrand::Rng::with_seed(7);
    move || drawn.u64(..)
}

fn pod(uid: &str) -> Pod {
    Pod { namespace: "default".to_owned(), name: "a".to_owned(), uid: uid.to_owned() }
}

fn wanted(address: &str) -> Wanted {
    let subnet: Subnet = "10.0.0.0/8".parse().expect("a subnet");
    Wanted { address: address.parse().expect("an address"), subnet, parent: PARENT.parse().expect("a MAC address") }
}

fn allocate(uid: &str, node: &str, addresses: &[&str]) -> Allocate {
    let addresses = addresses.iter().map(|address| wanted(address)).collect();
    Allocate { pod: pod(uid), node: node.to_owned(), addresses }
}

fn release(uid: &str, address: &str) -> Release {
    let Wanted { address, subnet, .. } = wanted(address);
    Release { pod: pod(uid), node: "n".to_owned(), parent: None, subnet, address }
}

#[test]
fn asked_again_it_answers_as_before() {
    let mut cloud = Cloud::default();
    let mut chance = chance();
    let first = cloud.allocate(&allocate("u", "n", &["10.0.0.1"]), &mut chance).expect("free");
    let again = cloud.allocate(&allocate("u", "n", &["10.0.0.1", "10.0.0.2"]), &mut chance).expect("the same pod");
    assert_eq!(first[0], again[0]);
    assert_eq!(cloud.bindings().count(), 2);
}

#[test]
fn nothing_moves_to_another_pod_node_or_nic_and_nothing_is_half_done() {
    let mut cloud = Cloud::default();
    let mut chance = chance();
    cloud.allocate(&allocate("u", "n", &["10.0.0.1"]), &mut chance).expect("free");
    let mut other_nic = allocate("u", "n", &["10.0.0.1"]);
    other_nic.addresses[0].parent = Mac::local(9);
    for asked in [allocate("v", "n", &["10.0.0.2", "10.0.0.1"]), allocate("u", "m", &["10.0.0.1"]), other_nic] {
        let refused = cloud.allocate(&asked, &mut chance).expect_err("it is taken");
        assert!(matches!(refused, Refusal::Taken { .. }), "{refused}");
        assert_eq!(cloud.bindings().count(), 1);
    }
}

#[test]
fn a_release_is_believed_and_says_whether_it_came_for_another_pod() {
    let mut cloud = Cloud::default();
    let mut chance = chance();
    for (sender, foreign) in [("u", false), ("", false), ("v", true)] {
        cloud.allocate(&allocate("u", "n", &["10.0.0.1"]), &mut chance).expect("free");
        assert_eq!(cloud.release(&release(sender, "10.0.0.1")), Released::Unbound { foreign });
        assert_eq!(cloud.release(&release(sender, "10.0.0.1")), Released::NotBound);
    }
}

#[test]
fn a_node_carries_its_capacity_and_a_nic_its_vlan_ids() {
    let mut cloud = Cloud::new(NonZeroUsize::new(2));
    let mut chance = chance();
    cloud.allocate(&allocate("u", "n", &["10.0.0.1"]), &mut chance).expect("free");
    let refused = cloud.allocate(&allocate("u", "n", &["10.0.0.1", "10.0.0.2", "10.0.0.3"]), &mut chance);
    assert_eq!(refused, Err(Refusal::Full { node: "n".to_owned(), capacity: 2 }));
    cloud.allocate(&allocate("v", "m", &["10.0.0.2", "10.0.0.3"]), &mut chance).expect("another node");

    let mut cloud = Cloud::default();
    let address = |number: u16| format!("10.0.{}.{}", number >> 8, number & 255);
    let all: Vec<String> = (0..LAST_VLAN).map(address).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let bound = cloud.allocate(&allocate("u", "n", &all), &mut chance).expect("an id for each");
    let ids: BTreeSet<u16> = bound.iter().map(|bound| bound.vlan).collect();
    assert_eq!((ids.len(), ids.first(), ids.last()), (4094, Some(&1), Some(&4094)));
    let refused = cloud.allocate(&allocate("w", "n", &["10.1.0.1"]), &mut chance);
    assert!(matches!(refused, Err(Refusal::NoVlan { .. })), "{refused:?}");
    cloud.release(&release("u", "10.0.0.7"));
    cloud.allocate(&allocate("w", "n", &["10.1.0.1"]), &mut chance).expect("the id of the released one");
    let refused = cloud.allocate(&allocate("w", "m", &["10.2.0.1"]), &mut chance);
    assert!(refused.is_ok(), "another node has ids of its own");
}

#[test]
fn what_is_shown_is_read_back_alike() {
    let mut cloud = Cloud::default();
    cloud.allocate(&allocate("u", "n", &["10.0.0.1", "10.0.0.2"]), &mut chance()).expect("free");
    let kept: Vec<Binding> =
        cloud.bindings().map(|binding| binding.view().try_into().expect("as it was shown")).collect();
    let mut restored = Cloud::default();
    restored.restore(kept.clone()).expect("each is there once");
    assert!(restored.bindings().eq(cloud.bindings()));
    assert!(restored.restore(kept).is_err(), "each was there already");
}
