//! Pods that have finished and are still there, as those of Jobs.

use crate::stage::{POOL, Stage, all_started};
use serde_json::json;
use std::collections::BTreeMap;
use tests::answer::send;
use tests::provider::Provider;

/// amazon-vpc-resource-controller-k8s#33: the scheduler counts a finished pod's device as free, so its binding goes too, whether
/// or not the runtime says that the sandbox is gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_finished_pod_holds_no_binding() {
    let stage = Stage::set(Provider::start().await).await;
    let (node, _agent) = stage.node("n", "2s").await;
    let mut pods = Vec::new();
    for n in 0..20 {
        pods.push(stage.nodes.provided(&format!("job-{n}"), "n", POOL, json!({})).await);
    }

    let given = all_started(&node, &mut pods).await;
    stage.agree(&given).await;
    for pod in &pods {
        let done = json!({"status": {"phase": "Succeeded"}}).to_string().into_bytes();
        let path = format!("/api/v1/namespaces/default/pods/{}/status", pod.pod);
        send(&stage.nodes.admin, "PATCH", &path, "application/merge-patch+json", done)
            .await
            .expect("answers")
            .accepted();
    }
    let began = std::time::Instant::now();
    stage.agree(&BTreeMap::new()).await;
    println!("{} pods had finished, and {:.1?} later nothing was bound", pods.len(), began.elapsed());
}
