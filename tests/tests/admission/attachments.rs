//! Attachments that come, change, go, or never were; and the objects of existing systems.

use super::{ETH1, SUB_ENI, staged, vlan};
use anyhow::ensure;
use serde_json::json;
use std::time::{Duration, Instant};
use tests::answer::{annotated, send};
use tests::api_server::{CONTROLLER, Request};
use tests::controller::{SOON, Stage};
use tests::wait;

const SMC: &str = "/apis/spiderpool.spidernet.io/v2beta1/namespaces/spiderpool/spidermultusconfigs";

/// An attachment that is created in the same second as its pod counts; how soon is printed.
#[tokio::test]
async fn a_new_attachment_is_used_at_once() {
    let (stage, _controller) = staged(&[]).await;
    let mut spans = Vec::new();
    for n in 0..20 {
        let name = format!("new-{n}");
        stage.attachment("spiderpool", &name, vlan("eth1")).await;
        let started = Instant::now();
        let pod = stage.pod("team-a", &annotated(&format!("spiderpool/{name}"))).await;
        assert_eq!((pod.requested(0, SUB_ENI), pod.requested(0, ETH1)), (Some("1"), Some("1")));
        spans.push(started.elapsed());
    }
    spans.sort();
    let median = spans[spans.len() / 2];
    println!(
        "attachment created -> pod created with its requests: median {median:?}, at most {:?} of 20 (pod creation included)",
        spans[spans.len() - 1]
    );
    // The slowest may have waited for what else runs on the machine.
    assert!(median < Duration::from_millis(500), "{spans:?}");
}

/// What is known costs no request; what is not, few.
#[tokio::test]
async fn the_api_server_is_asked_for_nothing_that_is_known() {
    let (stage, controller) = staged(&[]).await;
    stage.attachment("spiderpool", "other", vlan("eth2")).await;
    assert_eq!(stage.pod("team-a", &annotated("spiderpool/other")).await.requested(0, SUB_ENI), Some("1"));
    // Until the watch has it, it is asked for.
    wait::until("both attachments", SOON, async || {
        let metrics = controller.page("/metrics").await?.1;
        ensure!(metrics.contains("spiderpool_controller_multus_configs 2"), "{metrics}");
        Ok(())
    })
    .await;
    let gets = async || {
        let requests = stage.server.requests_until_now(CONTROLLER).await;
        // The lease is read from time to time.
        let attachment = |request: &Request| request.verb == "get" && request.uri.contains("/spidermultusconfigs/");
        requests.into_iter().filter(attachment).count()
    };
    let before = gets().await;
    for _ in 0..50 {
        stage.pod("team-a", &annotated("spiderpool/vlan,spiderpool/other")).await.accepted();
    }
    assert_eq!(gets().await, before, "{:#?}", stage.server.requests_of(CONTROLLER));

    // One that is nowhere: a warning, and one request for all who ask within a second.
    let started = Instant::now();
    let nowhere = annotated("spiderpool/nowhere");
    let all = futures::future::join_all((0..20).map(|_| stage.pod("team-a", &nowhere))).await;
    for pod in &all {
        assert_eq!(pod.requested(0, SUB_ENI), None);
        assert!(pod.warnings.iter().any(|text| text.contains("there is no attachment spiderpool/nowhere")), "{pod:?}");
    }
    let span = started.elapsed();
    let asked = gets().await - before;
    let seconds = usize::try_from(span.as_secs()).expect("short");
    assert!((1..=2 + seconds).contains(&asked), "{asked} requests in {span:?}");

    // More of them than may be asked for: warnings, and the pod is created.
    let many: Vec<String> = (0..30).map(|n| format!("spiderpool/nowhere-{n}")).collect();
    let many = stage.pod("team-a", &annotated(&many.join(","))).await;
    assert!(many.accepted()["spec"].is_object() && !many.warnings.is_empty(), "{many:?}");
    let asked = gets().await - before;

    // One that no object can be called: no request at all (MA-03).
    let odd = stage.pod("team-a", &annotated(r#"[{"name":"other/vlan1"}]"#)).await;
    assert!(odd.warnings.iter().any(|text| text.contains("team-a/other/vlan1")), "{odd:?}");
    assert_eq!(gets().await, before + asked);
}

/// Changes, other names, and deletion.
#[tokio::test]
async fn attachments_change_and_go() {
    let (stage, _controller) = staged(&[]).await;
    let until = async |networks: &str, wanted: Option<&str>| {
        wait::until(format!("{networks} to count {wanted:?}"), SOON, async || {
            let pod = stage.create("/api/v1/namespaces/team-a/pods?dryRun=All", &annotated(networks)).await;
            ensure!(pod.status < 300 && pod.requested(0, SUB_ENI) == wanted, "{pod:?}");
            Ok(())
        })
        .await;
    };
    until("spiderpool/vlan", Some("1")).await;
    let path = format!("{SMC}/vlan");
    stage.merge(&path, &json!({"spec": {"vlan": {"vlanID": 7}}})).await.accepted();
    until("spiderpool/vlan", None).await;
    stage.merge(&path, &json!({"spec": {"vlan": {"vlanID": null}}})).await.accepted();
    until("spiderpool/vlan", Some("1")).await;
    // A network keeps its name for as long as the attachment is there.
    send(&stage.admin, "DELETE", &path, super::JSON, Vec::new()).await.expect("answers");
    let named = json!({"apiVersion": "spiderpool.spidernet.io/v2beta1", "kind": "SpiderMultusConfig", "metadata": {"name": "vlan", "annotations": {"multus.spidernet.io/cr-name": "net1"}}, "spec": vlan("eth1")});
    stage.create(SMC, &named).await.accepted();
    until("spiderpool/net1", Some("1")).await;
    let old = stage.pod("team-a", &annotated("spiderpool/vlan")).await;
    assert!(old.warnings.iter().any(|text| text.contains("called net1")), "{old:?}");
    send(&stage.admin, "DELETE", &path, super::JSON, Vec::new()).await.expect("answers");
    until("spiderpool/net1", None).await;
}

/// WH-23: before everything is known nobody is told a pod needs nothing.
#[tokio::test]
async fn a_controller_that_knows_nothing_yet_does_not_guess() {
    let stage = Stage::set().await;
    stage.namespace("spiderpool").await;
    stage.attachment("spiderpool", "vlan", vlan("eth1")).await;
    // Without rights it cannot list anything.
    let controller = stage.controller(&Stage::conf());
    wait::until("a controller that lives", SOON, async || {
        ensure!(controller.page("/live").await?.0 == 200, "not yet");
        Ok(())
    })
    .await;
    stage.webhooks(&controller.url, &stage.authority(), &[]).await;
    wait::until("a refusal", SOON, async || {
        let pod = stage.create("/api/v1/namespaces/default/pods?dryRun=All", &annotated("spiderpool/vlan")).await;
        ensure!(pod.status >= 500 && pod.refused().contains("are not known yet"), "{pod:?}");
        Ok(())
    })
    .await;
    assert_ne!(controller.page("/ready").await.expect("answers").0, 200);
    stage.grant().await;
    controller.until_ready().await;
    let pod = stage.pod("default", &annotated("spiderpool/vlan")).await;
    assert_eq!(pod.requested(0, SUB_ENI), Some("1"));
}

/// WH-21: an uninstall takes the rights a moment before the API server stops asking. What is known counts, and nobody is held
/// up for the rest.
#[tokio::test]
async fn a_controller_that_lost_its_rights_holds_nobody_up() {
    let (stage, controller) = staged(&[]).await;
    let binding = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/spiderpool-controller";
    send(&stage.admin, "DELETE", binding, super::JSON, Vec::new()).await.expect("answers").accepted();
    let mut asked = 0;
    wait::until("a question that the API server refuses", SOON, async || {
        asked += 1;
        let pod = stage.pod("team-a", &annotated(&format!("spiderpool/nowhere-{asked}"))).await;
        assert!(pod.warnings.iter().any(|text| text.contains("there is no attachment")), "{pod:?}");
        ensure!(controller.logged().contains("may not look attachments up"), "not yet");
        Ok(())
    })
    .await;
    assert_eq!(stage.pod("team-a", &annotated("spiderpool/vlan")).await.requested(0, SUB_ENI), Some("1"));
}
