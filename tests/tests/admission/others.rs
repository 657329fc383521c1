//! Other webhooks before and after ours.

use super::{ETH1, SUB_ENI, staged};
use anyhow::ensure;
use serde_json::{Value, json};
use tests::answer::pod_with;
use tests::controller::{SOON, Stage};
use tests::other_webhook::OtherWebhook;
use tests::wait;

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";

/// Installs another webhook and waits until it is asked.
async fn with(stage: &Stage, name: &str, mut operations: Value) -> OtherWebhook {
    operations
        .as_array_mut()
        .expect("a list")
        .push(json!({"op": "add", "path": "/metadata/labels", "value": {"mutated": "yes"}}));
    let other = OtherWebhook::started(operations).await;
    stage.create(CONFIGURATIONS, &other.configuration(name)).await.accepted();
    wait::until("the other webhook to be asked", SOON, async || {
        let answer = stage.create("/api/v1/namespaces/team-a/pods?dryRun=All", &pod_with(&json!({"a": "b"}))).await;
        ensure!(answer.accepted()["metadata"]["labels"]["mutated"] == "yes", "{answer:?}");
        Ok(())
    })
    .await;
    other
}

fn network() -> Value {
    json!([{"op": "add", "path": "/metadata/annotations/k8s.v1.cni.cncf.io~1networks", "value": "spiderpool/vlan"}])
}

#[tokio::test]
async fn a_network_that_a_webhook_before_ours_adds_is_seen() {
    let (stage, _controller) = staged(&[]).await;
    let _other = with(&stage, "a-before", network()).await;
    let pod = stage.pod("team-a", &pod_with(&json!({"a": "b"}))).await;
    assert_eq!((pod.requested(0, SUB_ENI), pod.requested(0, ETH1)), (Some("1"), Some("1")));
}

/// `reinvocationPolicy: IfNeeded`.
#[tokio::test]
async fn a_network_that_a_webhook_after_ours_adds_is_seen() {
    let (stage, _controller) = staged(&[]).await;
    let _other = with(&stage, "z-after", network()).await;
    // Ours is asked a first time because of another annotation of ours, and again because of what came after.
    let pod = stage.pod("team-a", &pod_with(&json!({"k8s.v1.cni.cncf.io/networks": ""}))).await;
    assert_eq!((pod.requested(0, SUB_ENI), pod.requested(0, ETH1)), (Some("1"), Some("1")));
}

/// What Kubernetes does not offer: a webhook that was not asked in the first round is not asked in a second. Documented.
#[tokio::test]
async fn a_pod_that_was_not_ours_at_first_stays_unseen() {
    let (stage, controller) = staged(&[]).await;
    let _other = with(&stage, "z-after", network()).await;
    let pod = stage.pod("team-a", &pod_with(&json!({"a": "b"}))).await;
    assert_eq!(pod.requested(0, SUB_ENI), None, "if this changed, the documentation can promise more");
    stage.webhooks(&controller.url, &stage.authority(), &["--set=spiderpoolController.name=zz-spiderpool"]).await;
    wait::until("the webhook under its later name to be asked", SOON, async || {
        let pod = stage.create("/api/v1/namespaces/team-a/pods?dryRun=All", &pod_with(&json!({"a": "b"}))).await;
        ensure!(pod.requested(0, SUB_ENI) == Some("1"), "{pod:?}");
        Ok(())
    })
    .await;
}

/// A sidecar that comes to stand in the first place, before or after us.
#[tokio::test]
async fn a_container_that_another_webhook_adds_changes_nothing() {
    for name in ["a-before", "z-after"] {
        let (stage, _controller) = staged(&[]).await;
        let first = json!([{"op": "add", "path": "/spec/containers/0", "value": {"name": "sidecar", "image": "x"}}]);
        let _other = with(&stage, name, first).await;
        let pod = stage.pod("team-a", &pod_with(&json!({"k8s.v1.cni.cncf.io/networks": "spiderpool/vlan"}))).await;
        let counts = (0..2).filter(|n| pod.requested(*n, SUB_ENI) == Some("1")).count();
        assert_eq!(counts, 1, "{name}: once in all: {pod:?}");
    }
}
