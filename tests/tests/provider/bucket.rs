//! A cloud that takes few calls.

use crate::stage::{POOL, Stage, all_started};
use provider_sim::{Outcome, Settings};
use serde_json::json;
use std::time::{Duration, Instant};
use tests::provider::Provider;

const PODS: usize = 100;
/// Calls a second, and as many at once.
const RATE: f64 = 5.0;
const BURST: u32 = 5;
/// As many as the bucket lets through, and some for the machine.
const SLOWEST: Duration = Duration::from_secs(40);

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_pods_get_through_a_narrow_bucket() {
    let settings = Settings { seed: Some(1), rate: Some((RATE, BURST)), ..Settings::default() };
    let stage = Stage::set(Provider::with(settings).await).await;
    let (node, agent) = stage.node("n", "50s").await;
    let mut pods = Vec::new();
    for n in 0..PODS {
        pods.push(stage.nodes.provided(&format!("pod-{n}"), "n", POOL, json!({})).await);
    }
    let began = Instant::now();
    let given = all_started(&node, &mut pods).await;
    let elapsed = began.elapsed();
    assert_eq!(given.len(), PODS);
    stage.agree(&given).await;
    let records = stage.provider.cloud.records(0);
    let (mut bound, mut longest) = (0, 0);
    for one in &records {
        let budget = one.budget_ms.expect("each says what time there is");
        assert!((1..=50_000).contains(&budget), "{budget}");
        bound += usize::from(one.outcome == Outcome::Bound);
        longest = longest.max(budget);
    }
    assert_eq!(bound, PODS, "each once");
    // The provider says no to what it could not do in time, and so nothing came after a budget.
    let refused = records.iter().filter(|one| one.status == Some(429)).count();
    println!("{PODS} pods at {RATE} calls a second: {elapsed:.1?}, {} calls, {refused} refused", records.len());
    assert!(elapsed < SLOWEST, "{elapsed:?}");
    assert!(!agent.logged().contains("panicked"), "{}", agent.logged());
}
