//! Reserving, changing and removing; endpoints.

use crate::stage::{Stage, allocation, delete, merge, node, path, reserved, store};
use anyhow::ensure;
use futures::future::join_all;
use ipam_core::{Assigned, Endpoint, Interface, Pod, Reserved, Store, StoreError, Version};
use serde_json::json;
use std::time::Duration;
use store::Scope;
use tests::chart::create;
use tests::wait;

const SOON: Duration = crate::stage::SOON;

#[tokio::test]
async fn an_address_is_given_once_and_every_write_is_a_new_version() {
    let stage = Stage::set().await;
    let (a, b) = (store(stage.admin.clone(), node("a")).await, store(stage.admin.clone(), node("b")).await);

    // Two stores, one address, many times over.
    for n in 1..=20 {
        let address = format!("10.0.0.{n}");
        let (one, two) =
            tokio::join!(a.reserve(allocation(&address, "a", "one")), b.reserve(allocation(&address, "b", "two")),);
        let created = [one.expect("answers"), two.expect("answers")].map(|one| matches!(one, Reserved::Created(_)));
        assert!(created[0] != created[1], "{created:?}");
    }
    let held = |store: &store::KubeStore| store.all().len();
    assert_eq!(held(&a) + held(&b), 20, "an own write is known at once, and that of others is not ours");

    let six = reserved(&a, allocation("fd00::1", "a", "six")).await;
    stage.get(&path("fd00-0000-0000-0000-0000-0000-0000-0001")).await.accepted();
    let again = a.reserve(allocation("fd00::1", "a", "six")).await;
    assert_eq!(again, Ok(Reserved::Taken), "what is refused is another's: each is asked for once");
    assert_eq!(a.of_pod("six-uid"), std::slice::from_ref(&six));
    assert_eq!(a.of_container("six-sandbox"), std::slice::from_ref(&six));
    let mut other = allocation("fd00::1", "a", "six");
    other.flow_id = "another".to_owned();
    assert_eq!(a.reserve(other).await, Ok(Reserved::Taken));

    let address = six.value.address;
    let next = a.advance(address, &six.version, six.value.clone()).await.expect("advances");
    assert_ne!(next.version, six.version, "also a write that changes nothing fences older ones");
    assert_eq!(a.of_address(address), Some(next.clone()));
    let late = a.advance(address, &six.version, six.value.clone()).await;
    assert_eq!(late, Err(StoreError::Conflict));
    let foreign = Version { uid: "x".to_owned(), resource: next.version.resource.clone() };
    assert_eq!(a.advance(address, &foreign, six.value.clone()).await, Err(StoreError::Conflict));
    assert_eq!(a.remove(address, &six.version).await, Err(StoreError::Conflict));
    assert_eq!(a.remove(address, &foreign).await, Err(StoreError::Conflict));
    let mut invalid = next.value.clone();
    invalid.pool = "another".to_owned();
    let refused = a.advance(address, &next.version, invalid).await;
    assert!(matches!(&refused, Err(StoreError::Refused(why)) if why.contains("is not changeable")), "{refused:?}");

    a.remove(address, &next.version).await.expect("removes");
    assert_eq!(a.of_address(address), None);
    assert_eq!(a.remove(address, &next.version).await, Err(StoreError::Gone));
    assert_eq!(a.advance(address, &next.version, next.value).await, Err(StoreError::Gone));
    reserved(&b, allocation("fd00::1", "b", "next")).await;

    // Somebody's finalizer: it is not free.
    let kept = reserved(&a, allocation("10.0.1.1", "a", "kept")).await;
    let finalizer = json!({"metadata": {"finalizers": ["example.com/kept"]}});
    merge(&stage.admin, &path("10.0.1.1"), &finalizer).await.accepted();
    let kept = wait::until("the finalizer", SOON, async || {
        let now = a.of_address(kept.value.address).filter(|now| now.version != kept.version);
        now.ok_or("not yet")
    })
    .await;
    let refused = a.remove(kept.value.address, &kept.version).await;
    assert!(matches!(&refused, Err(StoreError::Refused(why)) if why.contains("example.com/kept")), "{refused:?}");
}

#[tokio::test]
async fn the_index_follows_others_and_survives_what_cannot_be_read() {
    let stage = Stage::set().await;
    reserved(&store(stage.admin.clone(), node("a")).await, allocation("10.0.0.1", "a", "one")).await;
    let (a, all) = (store(stage.admin.clone(), node("a")).await, store(stage.admin.clone(), Scope::All).await);
    let first = a.all();
    assert_eq!(first.len(), 1, "the first list");
    let address = first[0].value.address;

    let changed = a.changed(address, &first[0].version);
    let by_all = all.of_address(address).expect("known to the controller");
    let mut moved = by_all.value.clone();
    moved.node.name = "b".to_owned();
    let (moved, ()) = tokio::join!(all.advance(address, &by_all.version, moved), changed);
    let moved = moved.expect("moved");
    assert_eq!(a.all(), [], "it went to another node");
    let mut back = moved.value.clone();
    back.node.name = "a".to_owned();
    let back = all.advance(address, &moved.version, back).await.expect("moved back");
    wait::until("its return", SOON, async || {
        let found = a.of_address(address).map(|found| found.version);
        ensure!(found.as_ref() == Some(&back.version), "{found:?}");
        Ok(())
    })
    .await;

    // An object that an older or newer system wrote: one name for an IPv6 address too many.
    let odd = json!({
        "apiVersion": "spiderpool.spidernet.io/v2beta1", "kind": "SpiderIPAllocation", "metadata": {"name": "fd00--5"},
        "spec": {"pool": "pool-a", "address": "fd00::5", "node": {"name": "a"}, "state": "Held",
                 "pod": {"namespace": "default", "name": "odd", "uid": "odd-uid"}},
    });
    let definition =
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/spideripallocations.spiderpool.spidernet.io";
    let mut versions = stage.get(definition).await.accepted()["spec"]["versions"].clone();
    let rules = versions[0]["schema"]["openAPIV3Schema"]
        .as_object_mut()
        .map(|schema| schema.remove("x-kubernetes-validations"));
    assert!(rules.flatten().is_some(), "ours would not take it");
    stage.merge(definition, &json!({"spec": {"versions": versions}})).await.accepted();
    wait::until("the odd object", SOON, async || {
        let made = create(&stage.admin, crate::stage::ALLOCATIONS, &odd).await;
        ensure!(made.status == 201, "{made:?}");
        Ok(())
    })
    .await;
    wait::until("its report", SOON, async || {
        let said = a.unreadable();
        ensure!(said.len() == 1 && said[0].0 == "fd00--5", "{said:?}");
        Ok(())
    })
    .await;
    assert!(a.in_pool("pool-a").await.expect("lists").contains(&"fd00::5".parse().expect("one")), "it counts as taken");
    let named = a.named("default", "odd", None).await;
    assert!(matches!(&named, Err(StoreError::Refused(why)) if why.contains("fd00--5 cannot be read")), "{named:?}");
    assert_eq!(a.all().len(), 1, "others are known all the same");

    delete(&stage.admin, &path("10.0.0.1")).await.accepted();
    delete(&stage.admin, &path("fd00--5")).await.accepted();
    wait::until("an empty index", SOON, async || {
        ensure!(a.all().is_empty() && a.unreadable().is_empty() && all.all().is_empty(), "not yet");
        Ok(())
    })
    .await;
}

fn endpoint(goes_with: Option<&str>, address: Option<&str>) -> Endpoint {
    let assigned = |address: &str| Assigned {
        address: address.parse().expect("an address"),
        prefix: 24,
        pool: "pool-a".to_owned(),
        gateway: None,
    };
    let interface = |address: &str| Interface {
        name: "eth1".to_owned(),
        addresses: vec![assigned(address)],
        vlan: Some(100),
        mac: Some("02:00:00:00:00:01".to_owned()),
        clean_gateway: true,
        routes: Vec::new(),
        bind_id: Some("bind".to_owned()),
    };
    Endpoint {
        pod: Pod { namespace: "default".to_owned(), name: "one".to_owned(), uid: "one-uid".to_owned() },
        node: "a".to_owned(),
        owner: None,
        goes_with: goes_with.map(str::to_owned),
        interfaces: address.map(interface).into_iter().collect(),
    }
}

#[tokio::test]
async fn endpoints_are_published_at_one_version_and_keep_what_others_wrote() {
    let stage = Stage::set().await;
    let a = store(stage.admin.clone(), node("a")).await;
    let path = "/apis/spiderpool.spidernet.io/v2beta1/namespaces/default/spiderendpoints/one";
    assert_eq!(a.endpoint("default", "one").await, Ok(None));
    let none = Version { uid: "u".to_owned(), resource: "1".to_owned() };
    assert_eq!(a.publish(Some(&none), endpoint(None, None)).await, Err(StoreError::Gone));

    let shown = endpoint(Some("one-uid"), Some("10.0.0.1"));
    let first = a.publish(None, shown.clone()).await.expect("created");
    assert_eq!(a.publish(None, shown.clone()).await, Err(StoreError::Conflict));
    let found = a.endpoint("default", "one").await.expect("answers").expect("there");
    assert_eq!((found.value, found.version), (shown.clone(), first.clone()));

    let second = a.publish(Some(&first), shown.clone()).await.expect("published");
    assert_ne!(second, first, "also a write that changes nothing fences older ones");
    assert_eq!(a.publish(Some(&first), shown).await, Err(StoreError::Conflict));

    let others = json!({"metadata": {"labels": {"l": "1"}, "annotations": {"a": "2"}, "finalizers": ["x.example/f"]}});
    stage.merge(path, &others).await.accepted();
    let now = a.endpoint("default", "one").await.expect("answers").expect("there");
    let withdrawn = endpoint(None, None);
    a.publish(Some(&now.version), withdrawn.clone()).await.expect("published");
    let now = a.endpoint("default", "one").await.expect("answers").expect("there");
    assert_eq!(now.value, withdrawn, "entry and owner are gone");
    let object = stage.get(path).await.accepted().clone();
    assert_eq!(object["metadata"]["labels"]["l"], "1");
    assert_eq!(object["metadata"]["annotations"]["a"], "2");
    assert_eq!(object["metadata"]["finalizers"], json!(["x.example/f"]));
}

#[tokio::test]
async fn in_a_namespace_that_goes_nothing_is_published_anew_and_what_is_there_can_be_withdrawn() {
    let stage = Stage::set().await;
    let a = store(stage.admin.clone(), node("a")).await;
    stage.create("/api/v1/namespaces", &json!({"metadata": {"name": "going"}})).await.accepted();
    let named = |pod: &str| {
        let mut one = endpoint(None, None);
        (one.pod.namespace, one.pod.name) = ("going".to_owned(), pod.to_owned());
        one
    };
    let there = a.publish(None, named("there")).await.expect("published");
    // Nobody ends it: what would is part of the controller-manager.
    delete(&stage.admin, "/api/v1/namespaces/going").await.accepted();
    let mut last = 0;
    wait::until("the end of creations", SOON, async || {
        last += 1;
        let done = a.publish(None, named(&format!("late-{last}"))).await;
        ensure!(done.is_err(), "{done:?}");
        ensure!(done == Err(StoreError::Gone), "not as if it were gone: {done:?}");
        Ok(())
    })
    .await;
    a.publish(Some(&there), named("there")).await.expect("withdrawn");
}

#[tokio::test]
async fn a_pool_is_listed_whole_in_pages_and_once_for_all_who_ask() {
    let stage = Stage::set().await;
    let a = store(stage.admin.clone(), node("a")).await;
    for start in (0..1100).step_by(20) {
        let some = (start..start + 20).map(|n| {
            let address = format!("10.1.{}.{}", n / 250, n % 250);
            async { a.reserve(allocation(&{ address }, "a", "many")).await.expect("reserves") }
        });
        join_all(some).await;
    }
    let lists = join_all((0..10).map(|_| a.in_pool("pool-a"))).await;
    assert!(lists.iter().all(|list| list.as_ref().is_ok_and(|list| list.len() == 1100)));
    assert_eq!(a.in_pool("pool-b").await, Ok(vec![]));
    assert_eq!(store(stage.admin.clone(), node("a")).await.all().len(), 1100, "the first list has pages, too");
}
