use super::super::ledger::tests::allocation;
use super::*;
use k8s_api::names::POOL_FINALIZER;
use serde_json::{Value, json};

fn pool(metadata: &Value, status: &Value) -> Shown {
    let mut all = json!({"name": "p", "finalizers": [POOL_FINALIZER]});
    all.as_object_mut().expect("a map").extend(metadata.as_object().expect("a map").clone());
    Shown::of(&serde_json::from_value(json!({"metadata": all, "spec": {}, "status": status})).expect("an object"))
}

fn deleting() -> Value {
    json!({"deletionTimestamp": "2026-01-01T00:00:00Z"})
}

fn counts(allocated: i64, total: i64) -> Value {
    json!({"allocatedIPCount": allocated, "totalIPCount": total})
}

fn said(allocated: i64, total: i64) -> Said {
    Said { allocated, total, waits: None }
}

/// So many addresses are in use, of pods `ns/a0` and on; none is published.
fn ledger(count: usize) -> Ledger {
    let mut ledger = Ledger::default();
    for n in 0..count {
        ledger.put(allocation(&format!("10.0.0.{n}"), "p", &format!("a{n}"), &json!({})));
    }
    ledger
}

#[test]
fn a_pool_is_guarded_first_and_then_told() {
    let (now, memory) = (Instant::now(), &mut Memory::default());
    let bare = pool(&json!({"finalizers": ["x/y"]}), &Value::Null);
    assert_eq!(plan("p", &bare, 5, &ledger(0), memory, now), Next::Now(Step::Guard));
    let guarded = pool(&json!({}), &Value::Null);
    assert_eq!(plan("p", &guarded, 5, &ledger(0), memory, now), Next::Now(Step::Tell(said(0, 5))));
    assert_eq!(plan("p", &pool(&json!({}), &counts(0, 5)), 5, &ledger(0), memory, now), Next::Nothing);
    memory.not_before = Some(now + EVERY);
    assert_eq!(plan("p", &guarded, 5, &ledger(0), memory, now), Next::At(now + EVERY));
}

#[test]
fn news_comes_at_once_after_quiet_and_then_at_intervals() {
    let now = Instant::now();
    let shown = pool(&json!({}), &counts(3, 5));
    let none = ledger(0);
    // (What was said, and how long ago) against nothing published.
    let next = |memory: &mut Memory, total| plan("p", &shown, total, &none, memory, now);
    assert_eq!(next(&mut Memory::default(), 5), Next::Now(Step::Tell(said(0, 5))), "after quiet");
    let told = |ago: u64, allocated, total| Memory {
        told: Some((now.checked_sub(Duration::from_secs(ago)).expect("a clock"), said(allocated, total))),
        ..Memory::default()
    };
    assert_eq!(next(&mut told(1, 0, 5), 5), Next::Nothing, "the watch has not shown it yet");
    assert_eq!(next(&mut told(1, 3, 5), 5), Next::Now(Step::Tell(said(0, 5))), "empty");
    assert_eq!(next(&mut told(1, 0, 5), 6), Next::Now(Step::Tell(said(0, 6))), "other addresses");
    assert_eq!(next(&mut told(11, 0, 5), 5), Next::Now(Step::Tell(said(0, 5))), "somebody else wrote it");
    assert!(is_edge(&said(4, 5), &said(5, 5)) && is_edge(&said(5, 5), &said(4, 5)));
    assert!(!is_edge(&said(3, 5), &said(4, 5)));
    assert!(is_edge(&said(3, 5), &Said { waits: Some(String::new()), ..said(3, 5) }));
}

#[test]
fn what_is_no_edge_waits() {
    let now = Instant::now();
    let mut ledger = Ledger::default();
    for n in 1..=2 {
        let (pod, address) = (format!("a{n}"), format!("10.0.0.{n}"));
        ledger.put(allocation(&address, "p", &pod, &json!({})));
        let ips = json!([{"interface": "eth0", "ipv4": format!("{address}/24")}]);
        let object = json!({"metadata": {"name": pod}, "status": {"current": {"uid": format!("u-{pod}"), "ips": ips}}});
        let object = serde_json::from_value(object).expect("an object");
        ledger.show(("ns".to_owned(), pod), Some(super::super::facts::Endpoint::of(&object)));
    }
    let mut memory = Memory { told: Some((now, said(1, 5))), ..Memory::default() };
    let shown = pool(&json!({}), &counts(1, 5));
    assert_eq!(plan("p", &shown, 5, &ledger, &mut memory, now), Next::At(now + EVERY));
    let later = now + EVERY;
    assert_eq!(plan("p", &shown, 5, &ledger, &mut memory, later), Next::Now(Step::Tell(said(2, 5))));
    assert_eq!(plan("p", &shown, 2, &ledger, &mut memory, now), Next::Now(Step::Tell(said(2, 2))), "full");
}

#[test]
fn a_deletion_that_waits_says_for_whom() {
    let now = Instant::now();
    let waits = |shown: &Shown, count| match plan("p", shown, 5, &ledger(count), &mut Memory::default(), now) {
        Next::Now(Step::Tell(Said { waits: Some(text), .. })) => text,
        other => panic!("{other:?}"),
    };
    let held = pool(&deleting(), &counts(0, 5));
    assert!(waits(&held, 1).starts_with("1 address is still held, by pods ns/a0: delete these pods, or wait"));
    assert!(waits(&held, 2).starts_with("2 addresses are still held, by pods ns/a0, ns/a1: delete"));
    assert!(waits(&held, 9).contains("ns/a4 and others: delete"));
    let records = |text: &str| pool(&deleting(), &json!({ "allocatedIPs": text }));
    assert_eq!(
        waits(&records(r#"{"10.0.0.1":{"pod":"a/b"}}"#), 0),
        "1 records of an earlier system in status.allocatedIPs are not taken over yet"
    );
    assert!(waits(&records("{"), 1).contains("; status.allocatedIPs cannot be read"));
}

#[test]
fn an_empty_pool_goes_after_a_quiet_moment() {
    let now = Instant::now();
    let memory = &mut Memory::default();
    let held = pool(&deleting(), &counts(0, 5));
    assert_eq!(plan("p", &held, 5, &ledger(0), memory, now), Next::At(now + QUIET));
    assert_eq!(plan("p", &held, 5, &ledger(0), memory, now + QUIET), Next::Now(Step::LetGo));
    plan("p", &held, 5, &ledger(1), memory, now + QUIET);
    assert_eq!(plan("p", &held, 5, &ledger(0), memory, now + QUIET), Next::At(now + QUIET * 2), "counted anew");
    let others = pool(&json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x/y"]}), &counts(0, 5));
    assert_eq!(plan("p", &others, 5, &ledger(0), &mut Memory::default(), now), Next::Nothing, "held by others");
}
