use crate::stage::{Stage, allocate};
use provider_sim::wire::ALLOCATE;
use provider_sim::{Outcome, Settings};
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

#[tokio::test]
async fn addresses_are_bound_answered_and_released() {
    let stage = Stage::plain().await;
    let (status, answer) = stage.allocate("u", &["10.0.0.10", "10.0.0.11"]).await;
    assert_eq!(status, 200);
    let bound = answer["iaasIPsAllocationResponse"].as_array().expect("a list");
    assert_eq!(bound.len(), 2);
    for (bound, address) in bound.iter().zip(["10.0.0.10", "10.0.0.11"]) {
        assert_eq!(bound["ipAddress"], address);
        assert_eq!((&bound["subnet"], &bound["parentNicMac"]), (&json!("10.0.0.0/24"), &json!(crate::stage::PARENT)));
        assert!(bound["macAddress"].as_str().expect("a text").starts_with("02:"));
        assert!((1..=4094).contains(&bound["vlanId"].as_i64().expect("a number")));
    }
    assert_ne!(bound[0]["vlanId"], bound[1]["vlanId"]);
    assert_eq!(stage.allocate("u", &["10.0.0.10", "10.0.0.11"]).await, (200, answer.clone()), "as before");

    let (status, refused) = stage.allocate("v", &["10.0.0.10"]).await;
    assert_eq!(status, 409);
    assert!(refused["error"].as_str().expect("a text").contains("default/a (UID u)"), "{refused}");

    assert_eq!(stage.release("u", "10.0.0.10").await.0, 200);
    assert_eq!(stage.release("u", "10.0.0.10").await.0, 200, "again");
    assert_eq!(stage.release("u", "10.0.0.99").await.0, 200, "never bound");
    assert_eq!(stage.allocate("v", &["10.0.0.10"]).await.0, 200);
    assert_eq!(stage.bound(), ["10.0.0.10", "10.0.0.11"]);
    assert_eq!(stage.cloud.foreign_releases(), 0);
    assert_eq!(stage.release("u", "10.0.0.10").await.0, 200, "a simple cloud believes it");
    assert_eq!(stage.cloud.foreign_releases(), 1, "but says so");
    let last = stage.cloud.records(0).pop().expect("a record");
    assert_eq!(last.outcome, Outcome::ForeignUnbound);
    stage.end().await;
}

#[tokio::test]
async fn a_full_node_is_refused() {
    let settings = Settings { capacity: NonZeroUsize::new(1), ..Settings::default() };
    let stage = Stage::new(settings).await;
    assert_eq!(stage.allocate("u", &["10.0.0.10"]).await.0, 200);
    let (status, refused) = stage.allocate("u", &["10.0.0.11"]).await;
    assert_eq!(status, 507);
    assert!(refused["error"].as_str().expect("a text").starts_with("nodeName: "), "{refused}");
}

/// The wait for a token ends with the budget, never later, and then nothing was done.
#[tokio::test]
async fn calls_wait_for_the_cloud_but_not_longer_than_their_budget() {
    let stage = Stage::new(Settings { rate: Some((2.0, 1)), ..Settings::default() }).await;
    let started = Instant::now();
    assert_eq!(stage.allocate("u", &["10.0.0.10"]).await.0, 200);
    assert_eq!(stage.allocate("u", &["10.0.0.11"]).await.0, 200);
    assert!(started.elapsed() >= Duration::from_millis(450), "the second waited half a second");

    let started = Instant::now();
    let (status, refused) = stage.post(ALLOCATE, 100, &allocate("u", &["10.0.0.12"])).await;
    assert_eq!(status, 429, "{refused}");
    assert!(started.elapsed() >= Duration::from_millis(75), "it did wait");
    let record = stage.cloud.records(0).pop().expect("a record");
    assert_eq!((record.budget_ms, record.outcome, record.status), (Some(100), Outcome::Refused, Some(429)));
    assert_eq!(stage.bound().len(), 2);
}

#[tokio::test]
async fn what_does_not_fit_the_budget_is_not_begun() {
    let stage = Stage::new(Settings { latency: Duration::from_millis(60), ..Settings::default() }).await;
    let (status, refused) = stage.post(ALLOCATE, 50, &allocate("u", &["10.0.0.10"])).await;
    assert_eq!(status, 429);
    assert!(refused["error"].as_str().expect("a text").starts_with("X-Request-Timeout-Ms: "), "{refused}");
    assert!(stage.bound().is_empty());
    let (status, _) = stage.post(ALLOCATE, 5_000, &allocate("u", &["10.0.0.10"])).await;
    assert_eq!(status, 200);
}

/// A client that hangs up does not stop a cloud.
#[tokio::test]
async fn work_goes_on_when_the_caller_is_gone() {
    let stage = Stage::new(Settings { latency: Duration::from_millis(200), ..Settings::default() }).await;
    let gone = stage.raw(ALLOCATE, &allocate("u", &["10.0.0.10"]), Duration::from_millis(50)).await;
    assert!(gone.is_none(), "nothing was answered yet");
    crate::stage::until("the binding", || !stage.bound().is_empty()).await;
}

#[tokio::test]
async fn fields_that_nobody_knows_are_allowed() {
    let stage = Stage::plain().await;
    let mut body = allocate("u", &["10.0.0.10"]);
    body["later"] = json!({"x": [1]});
    body["iaasIPsAllocationRequest"][0]["later"] = Value::Null;
    assert_eq!(stage.post(ALLOCATE, 50_000, &body).await.0, 200);
}
