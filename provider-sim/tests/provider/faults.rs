use crate::stage::{LONG, Stage, allocate, release, until};
use provider_sim::Outcome;
use provider_sim::wire::{ALLOCATE, RELEASE};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const SHORT: Duration = Duration::from_millis(150);

async fn with(fault: Value) -> Stage {
    Stage::faulty(json!([{ "operation": "allocate", "fault": fault }])).await
}

/// All bytes that come back of an allocate.
async fn bytes(stage: &Stage) -> String {
    let read = stage.raw(ALLOCATE, &allocate("u", &["10.0.0.10"]), LONG).await;
    read.expect("the connection ends").expect("in order")
}

#[tokio::test]
async fn a_cut_gives_no_byte_and_the_work_is_done_or_not() {
    for (fault, bound) in [("cut-before", 0), ("cut-after", 1)] {
        let stage = with(json!({ "kind": fault })).await;
        assert_eq!(bytes(&stage).await, "", "{fault}");
        assert_eq!(stage.bound().len(), bound, "{fault}");
        let record = stage.cloud.records(0).pop().expect("a record");
        assert_eq!((record.status, record.fault.as_deref()), (None, Some(fault)));
    }
}

#[tokio::test]
async fn a_cut_can_be_a_reset() {
    for kind in ["cut-after", "cut-mid-answer", "partial-status-line"] {
        let stage = with(json!({ "kind": kind, "reset": true })).await;
        let read = stage.raw(ALLOCATE, &allocate("u", &["10.0.0.10"]), LONG).await.expect("the connection ends");
        let error = read.expect_err(kind);
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{kind}");
        assert_eq!(stage.bound().len(), 1, "{kind}");
    }
}

#[tokio::test]
async fn a_client_sees_no_complete_answer() {
    for kind in ["cut-before", "cut-after", "cut-mid-answer", "partial-status-line"] {
        let stage = with(json!({ "kind": kind })).await;
        let request = stage.client.post(format!("{}{ALLOCATE}", stage.url)).header("x-request-timeout-ms", 50_000);
        let answer = match request.json(&allocate("u", &["10.0.0.10"])).send().await {
            Ok(begun) => begun.bytes().await.map(|_| ()),
            Err(error) => Err(error),
        };
        assert!(answer.is_err(), "{kind}");
    }
}

#[tokio::test]
async fn an_answer_ends_in_the_middle() {
    let stage = with(json!({ "kind": "cut-mid-answer" })).await;
    let answer = bytes(&stage).await;
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
    assert_eq!(body.len(), length.parse::<usize>().expect("a number") / 2);
    assert_eq!(stage.bound().len(), 1);

    let stage = with(json!({ "kind": "partial-status-line" })).await;
    assert_eq!(bytes(&stage).await, "HTTP/1.");
    assert_eq!(stage.bound().len(), 1);
}

#[tokio::test]
async fn work_comes_late_but_within_the_budget() {
    for kind in ["late", "proxy-504"] {
        let stage = with(json!({ "kind": kind, "ms": 200 })).await;
        let started = Instant::now();
        let answer = bytes(&stage).await;
        assert_eq!(answer.starts_with("HTTP/1.1 504 "), kind == "proxy-504", "{answer}");
        assert!(started.elapsed() < Duration::from_millis(200) && stage.bound().is_empty(), "{kind}: at once");
        until("the binding", || stage.bound() == ["10.0.0.10"]).await;
        assert!(started.elapsed() >= Duration::from_millis(200));
    }
}

#[tokio::test]
async fn work_that_is_later_than_the_budget_is_not_done_unless_that_is_the_fault() {
    for beyond in [false, true] {
        let stage = with(json!({ "kind": "proxy-504", "ms": 60, "beyondBudget": beyond })).await;
        let (status, _) = stage.post(ALLOCATE, 50, &allocate("u", &["10.0.0.10"])).await;
        assert_eq!(status, 504);
        let outcome = || stage.cloud.records(0).pop().expect("a record").outcome;
        until("the end of it", || outcome() != Outcome::Pending).await;
        assert_eq!(outcome(), if beyond { Outcome::Bound } else { Outcome::Refused });
        assert_eq!(stage.bound().len(), usize::from(beyond));
    }
}

#[tokio::test]
async fn silence_lasts_and_ends_with_the_server() {
    for (kind, bound) in [("hang", 0), ("hang-after", 1)] {
        let stage = with(json!({ "kind": kind })).await;
        let body = allocate("u", &["10.0.0.10"]);
        assert!(stage.raw(ALLOCATE, &body, SHORT).await.is_none(), "{kind}");
        assert_eq!(stage.bound().len(), bound, "{kind}");
        let seen = stage.cloud.records(0).len();
        let hanging = stage.raw(ALLOCATE, &body, LONG);
        let ending = async {
            until("the call", || stage.cloud.records(0).len() > seen).await;
            stage.stop();
        };
        let (read, ()) = tokio::join!(hanging, ending);
        assert_eq!(read.expect("the connection ends").expect("in order"), "");
        stage.end().await;
    }
}

#[tokio::test]
async fn statuses_are_answered_with_and_without_the_work() {
    for (kind, bound) in [("status", 0), ("status-after", 1)] {
        let stage = with(json!({"kind": kind, "code": 503, "body": {"x": 1}, "headers": {"retry-after": "7"}})).await;
        let answer = bytes(&stage).await.to_lowercase();
        assert!(answer.starts_with("http/1.1 503 ") && answer.ends_with(r#"{"x":1}"#), "{answer}");
        assert!(answer.contains("retry-after: 7\r\n"), "{answer}");
        assert_eq!(stage.bound().len(), bound, "{kind}");
    }
    let stage = with(json!({"kind": "redirect", "code": 308, "location": "http://127.0.0.1:1/"})).await;
    let answer = bytes(&stage).await.to_lowercase();
    assert!(answer.starts_with("http/1.1 308 ") && answer.contains("location: http://127.0.0.1:1/\r\n"), "{answer}");
}

#[tokio::test]
async fn answers_are_slow_large_and_without_an_end() {
    let stage = with(json!({"kind": "slow", "ms": 200})).await;
    let started = Instant::now();
    assert!(bytes(&stage).await.starts_with("HTTP/1.1 200 "));
    assert!(started.elapsed() >= Duration::from_millis(200));

    let stage = with(json!({"kind": "slow-body", "ms": 1})).await;
    let started = Instant::now();
    let (status, answer) = stage.allocate("u", &["10.0.0.10"]).await;
    assert_eq!((status, &answer["nodeName"]), (200, &json!("worker-1")));
    assert!(started.elapsed() >= Duration::from_millis(200), "a byte a millisecond");

    let stage = with(json!({"kind": "endless-body"})).await;
    assert!(stage.raw(ALLOCATE, &allocate("u", &["10.0.0.10"]), SHORT).await.is_none());
    assert_eq!(stage.bound().len(), 1);

    let stage = with(json!({"kind": "huge-body", "bytes": 3_000_000})).await;
    let answer = bytes(&stage).await;
    let (_, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert_eq!(body.len(), 3_000_000);
    let read: Value = serde_json::from_str(body).expect("JSON for those who read all of it");
    assert_eq!(read["nodeName"], "worker-1");
}

/// What is wrong with each of them, as a client would see it.
#[tokio::test]
async fn bad_answers_are_bad_and_the_work_is_done_unless_told_otherwise() {
    type Wrong = fn(&Value) -> bool;
    let cases: [(Value, Wrong); 14] = [
        (json!({"kind": "missing"}), |all| all.as_array().is_some_and(|all| all.len() == 1)),
        (json!({"kind": "extra"}), |all| {
            all.as_array().is_some_and(|all| all.len() == 3) && all[2]["ipAddress"] == "10.0.0.13"
        }),
        (json!({"kind": "duplicate"}), |all| all[2] == all[0]),
        (json!({"kind": "wrong-subnet"}), |all| all[0]["subnet"] == "192.0.2.0/24"),
        (json!({"kind": "wrong-address-spelling"}), |all| all[0]["ipAddress"] == "10.0.0.011"),
        (json!({"kind": "bad-mac"}), |all| all[0]["macAddress"] == "02:00:00:00:00"),
        (json!({"kind": "vlan-out-of-range", "vlan": 0}), |all| all[0]["vlanId"] == 0),
        (json!({"kind": "vlan-out-of-range", "vlan": 4095}), |all| all[0]["vlanId"] == 4095),
        (json!({"kind": "vlan-out-of-range", "vlan": -1}), |all| all[0]["vlanId"] == -1),
        (json!({"kind": "no-vlan"}), |all| all[0].get("vlanId").is_none() && all[0].get("macAddress").is_some()),
        (json!({"kind": "no-mac"}), |all| all[0].get("macAddress").is_none() && all[0].get("vlanId").is_some()),
        (json!({"kind": "garbage"}), Value::is_null),
        (json!({"kind": "empty"}), Value::is_null),
        (json!({"kind": "same-vlan"}), |all| all[0]["vlanId"] == all[1]["vlanId"]),
    ];
    for (fault, is_wrong) in cases {
        for work in [true, false] {
            let mut fault = fault.clone();
            if !work {
                fault["work"] = json!(false);
            }
            let stage = Stage::faulty(json!([{"match": {"podName": "a"}, "fault": fault}])).await;
            // One that is bound already has a VLAN id to repeat.
            let mut other = allocate("v", &["10.0.0.1"]);
            other["podName"] = json!("b");
            stage.post(ALLOCATE, 50_000, &other).await;
            let (status, answer) = stage.allocate("u", &["10.0.0.11", "10.0.0.12"]).await;
            assert!((200..300).contains(&status), "{fault}: {status}");
            let all = answer.get("iaasIPsAllocationResponse").unwrap_or(&Value::Null);
            assert!(is_wrong(all), "{fault}: {answer}");
            assert_eq!(stage.bound().len(), if work { 3 } else { 1 }, "{fault}");
        }
    }
}

#[tokio::test]
async fn releases_have_faults_as_well() {
    let stage = Stage::faulty(json!([{"operation": "release", "times": 1, "fault": {"kind": "cut-after"}}])).await;
    stage.allocate("u", &["10.0.0.10"]).await;
    let read = stage.raw(RELEASE, &release("u", "10.0.0.10"), LONG).await.expect("it ends").expect("in order");
    assert_eq!((read.as_str(), stage.bound().len()), ("", 0));
    let records = stage.cloud.records(0);
    assert_eq!(records.last().map(|record| record.outcome), Some(Outcome::Unbound));
}

#[tokio::test]
async fn chance_can_be_repeated() {
    let run = async || {
        let stage = Stage::faulty(json!([{"probability": 0.5, "fault": {"kind": "status", "code": 500}}])).await;
        let mut statuses = Vec::new();
        for _ in 0..24 {
            statuses.push(stage.release("u", "10.0.0.10").await.0);
        }
        statuses
    };
    let first = run().await;
    assert_eq!(first, run().await);
    assert!(first.contains(&200) && first.contains(&500));
}
