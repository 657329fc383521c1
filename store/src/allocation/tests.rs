use super::*;
use ipam_core::Address;
use ipam_core::Family;
use proptest::option;
use proptest::prelude::*;

pub(crate) fn object(value: &Allocation, uid: &str, resource: u64) -> DynamicObject {
    let mut object = written(value, None);
    object["metadata"]["uid"] = json!(uid);
    object["metadata"]["resourceVersion"] = json!(resource.to_string());
    serde_json::from_value(object).expect("an object")
}

prop_compose! {
    fn part()(owner in option::of("[a-z]{1,4}"), netns in option::of((any::<u64>(), any::<u64>())),
              state in 0..3, provider in option::of(0..u64::MAX / 2), request in option::of(any::<bool>()), four: bool,
              number: u128, detached: bool, text in "[a-z0-9]{0,9}") -> Allocation {
        let releasing = |then| State::Releasing(Releasing { releaser: text.clone(), then });
        let family = if four { Family::V4 } else { Family::V6 };
        let number = if four { number & 0xffff_ffff } else { number };
        Allocation {
            pool: "p".to_owned(),
            address: Address::new(family, number).filter(|address| address.to_string().parse() == Ok(*address))
                .unwrap_or("fd00::1".parse().expect("an address")),
            node: Node { name: text.clone(), uid: "u".to_owned(), machine_id: "m".to_owned() },
            pod: Pod { namespace: "ns".to_owned(), name: text.clone(), uid: "pu".to_owned() },
            owner: owner.map(|kind| Owner { api_version: "v1".to_owned(), kind, name: "n".to_owned(), uid: "ou".to_owned() }),
            container_id: text.clone(),
            interface: "eth1".to_owned(),
            network: "ns/n".to_owned(),
            netns: netns.map(|(dev, inode)| Netns { path: "/p".to_owned(), dev, inode }),
            boot_id: "b".to_owned(),
            flow_id: text.clone(),
            state: match state { 0 => State::Held, 1 => releasing(Then::Delete), _ => releasing(Then::Keep) },
            provider: provider.map(|millis| Binding { server: "s".to_owned(), subnet: "10.0.0.0/8".to_owned(),
                parent_nic_mac: "m".to_owned(), bind_id: "b".to_owned(), settle: Duration::from_millis(millis / 2) }),
            detached,
            release_request: request.map(|abandon| ReleaseRequest { by: "me".to_owned(), at: "t".to_owned(), abandon }),
        }
    }
}

proptest! {
    #[test]
    fn is_read_as_it_was_written(value in part()) {
        let read = read(&object(&value, "uid", 7)).expect("a version");
        prop_assert_eq!(read.what, Ok(value));
        prop_assert_eq!(read.version, Numbered { uid: "uid".to_owned(), resource: 7 });
    }
}

fn valid() -> Value {
    json!({
        "metadata": {"name": "10.0.0.1", "uid": "u", "resourceVersion": "5"},
        "spec": {"pool": "p", "address": "10.0.0.1", "node": {"name": "n"}, "state": "Held",
                 "pod": {"namespace": "ns", "name": "p", "uid": "pu"}},
    })
}

fn after(change: impl FnOnce(&mut Value)) -> Result<Object, StoreError> {
    let mut object = valid();
    change(&mut object);
    read(&serde_json::from_value(object).expect("an object"))
}

#[test]
fn what_cannot_be_read_is_there_all_the_same() {
    assert!(after(|_| ()).expect("a version").what.is_ok(), "what has defaults may be left out");
    let faults: [(&str, Value, &str); 7] = [
        ("/spec", json!(null), "invalid type: null"),
        ("/spec/address", json!("10.0.0"), "spec.address: it is not an IP address"),
        ("/spec/address", json!("10.0.0.2"), "an allocation of 10.0.0.2 is named 10.0.0.2"),
        ("/spec/state", json!("Resting"), "unknown variant `Resting`"),
        ("/spec/state", json!("Releasing"), "state Releasing needs spec.releasing"),
        ("/metadata/name", json!("x"), "an allocation of 10.0.0.1 is named 10.0.0.1"),
        ("/spec/pod", json!({}), "missing field `namespace`"),
    ];
    for (at, value, why) in faults {
        let read = after(|object| *object.pointer_mut(at).expect("there") = value).expect("it has a version");
        let said = read.what.expect_err(at);
        assert!(said.contains(why), "{at}: {said}");
        assert_eq!(read.version.resource, 5);
    }
    let negative = json!({"server": "s", "subnet": "n", "bindId": "b", "settleMilliseconds": -1});
    let read = after(|object| object["spec"]["provider"] = negative).expect("a version");
    assert_eq!(read.what, Err("spec.provider.settleMilliseconds is negative".to_owned()));
    let read =
        after(|object| object["spec"]["releasing"] = json!({"releaser": "r", "then": "Keep"})).expect("a version");
    assert_eq!(read.what, Err("spec.releasing belongs to state Releasing alone".to_owned()));
    assert!(after(|object| object["metadata"]["resourceVersion"] = json!("x")).is_err());
}

#[test]
fn settling_is_rounded_up() {
    assert_eq!(milliseconds(Duration::from_nanos(1)), 1);
    assert_eq!(milliseconds(Duration::from_millis(2)), 2);
    assert_eq!(milliseconds(Duration::MAX), i64::MAX);
}
