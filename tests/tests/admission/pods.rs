//! Every kind of pod.

use super::{ETH1, JSON, SUB_ENI, staged, vlan};
use anyhow::ensure;
use serde_json::{Value, json};
use tests::answer::{annotated, pod_with, send};
use tests::controller::SOON;
use tests::wait;

#[tokio::test]
async fn pods_get_what_their_networks_need() {
    let (stage, controller) = staged(&[]).await;
    let pods = "/api/v1/namespaces/team-a/pods";

    // The quick start's pod, and its audit entry.
    let quick = stage.pod("team-a", &annotated("spiderpool/vlan")).await;
    assert_eq!((quick.requested(0, SUB_ENI), quick.requested(0, ETH1)), (Some("1"), Some("1")));
    let added = "spidernet.io/eth1-nic=1 for spiderpool/vlan; spidernet.io/sub-eni=1 for spiderpool/vlan";
    let said = |entry: &Value| entry["multus-pods.spiderpool.spidernet.io/injected"] == added;
    // It is written after the answer.
    wait::until("the audit entry", SOON, async || {
        let audit = stage.server.audit_annotations(pods);
        ensure!(audit.iter().any(said), "{audit:#?}");
        Ok(())
    })
    .await;
    // No controller waits for the nodes: they are for warnings alone.
    wait::until("a warning that no node offers it", SOON, async || {
        let quick = stage.create(&format!("{pods}?dryRun=All"), &annotated("spiderpool/vlan")).await;
        ensure!(quick.warnings.iter().any(|text| text.contains("no node offers")), "no node does here: {quick:?}");
        Ok(())
    })
    .await;

    // A bare name is looked up where the pod is (WH-04), which the object of a controller does not say itself.
    stage.attachment("team-a", "own", vlan("eth1")).await;
    for kind in ["ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController", "VirtualMachineInstance"] {
        let mut pod = annotated("own");
        let version = match kind {
            "Job" => "batch/v1",
            "ReplicationController" => "v1",
            "VirtualMachineInstance" => "kubevirt.io/v1",
            _ => "apps/v1",
        };
        pod["metadata"]["ownerReferences"] =
            json!([{"apiVersion": version, "kind": kind, "name": "owner", "uid": "u", "controller": true}]);
        let owned = stage.pod("team-a", &pod).await;
        assert_eq!(owned.requested(0, SUB_ENI), Some("1"), "{kind}");
    }

    // Dry run.
    let dry = stage.create(&format!("{pods}?dryRun=All"), &annotated("own")).await;
    assert_eq!(dry.requested(0, SUB_ENI), Some("1"));

    // 50 attachments.
    let many = stage.pod("team-a", &annotated(&vec!["own"; 50].join(","))).await;
    assert_eq!((many.requested(0, SUB_ENI), many.requested(0, ETH1)), (Some("50"), Some("1")));

    // Init and sidecar containers, several containers.
    let mut several = annotated("own");
    several["spec"]["initContainers"] =
        json!([{"name": "i", "image": "x"}, {"name": "s", "image": "x", "restartPolicy": "Always"}]);
    several["spec"]["containers"] = json!([
        {"name": "a", "image": "x", "resources": {"requests": {"cpu": "1"}}}, {"name": "b", "image": "x"},
    ]);
    let several = stage.pod("team-a", &several).await;
    assert_eq!((several.requested(0, SUB_ENI), several.requested(1, SUB_ENI)), (Some("1"), None));
    assert_eq!(several.accepted()["spec"]["containers"][0]["resources"]["requests"]["cpu"], "1");

    // What the user wrote stays, also on a sidecar.
    let mut written = annotated("own,own");
    written["spec"]["containers"][0]["resources"] = json!({"limits": {SUB_ENI: "1"}});
    let written = stage.pod("team-a", &written).await;
    assert_eq!((written.requested(0, SUB_ENI), written.requested(0, ETH1)), (Some("1"), Some("1")));
    assert!(written.warnings.iter().any(|text| text.contains("need spidernet.io/sub-eni: 2")), "{written:?}");

    // No containers: refused, in the API server's words.
    let mut none = annotated("own");
    none["spec"]["containers"] = json!([]);
    let none = stage.pod("team-a", &none).await;
    assert!(none.refused().contains("spec.containers: Required value"), "{none:?}");

    // On the host's network, and mirror pods: left alone.
    let mut host = annotated("own");
    host["spec"]["hostNetwork"] = true.into();
    assert_eq!(stage.pod("team-a", &host).await.requested(0, SUB_ENI), None);
    let mirror = json!({"kubernetes.io/config.mirror": "x", "k8s.v1.cni.cncf.io/networks": "own"});
    let mut mirror = pod_with(&mirror);
    mirror["spec"]["nodeName"] = "node1".into();
    let mirror = stage.pod("team-a", &mirror).await;
    assert_eq!(mirror.requested(0, SUB_ENI), None);

    // Annotated, with nothing of ours.
    let foreign = stage.pod("team-a", &pod_with(&json!({"ipam.spidernet.io/ippool": "{}"}))).await;
    assert_eq!(foreign.requested(0, SUB_ENI), None);
    assert_eq!(foreign.warnings, Vec::<String>::new());

    // The way out for one pod.
    let mut out = annotated("own");
    out["metadata"]["labels"] = json!({"cni.spidernet.io/inject": "false"});
    assert_eq!(stage.pod("team-a", &out).await.requested(0, SUB_ENI), None);

    // Excluded namespaces.
    assert_eq!(stage.pod("kube-system", &annotated("spiderpool/vlan")).await.requested(0, SUB_ENI), None);

    // Changes of a pod do not reach us, nor do ephemeral containers (WH-09, WH-11), twice.
    let name = quick.accepted()["metadata"]["name"].as_str().expect("a name").to_owned();
    let networks =
        json!({"metadata": {"annotations": {"k8s.v1.cni.cncf.io/networks": "own,own"}, "labels": {"a": "b"}}});
    let updated = stage.merge(&format!("{pods}/{name}"), &networks).await;
    assert_eq!(updated.requested(0, SUB_ENI), Some("1"));
    let asked = async || {
        let metrics = controller.page("/metrics").await.expect("answers").1;
        metrics
            .lines()
            .filter(|line| line.starts_with("spiderpool_controller_admissions_total"))
            .map(ToOwned::to_owned)
            .collect::<Vec<_>>()
    };
    let before = asked().await;
    for n in 0..2 {
        let debug = json!({"spec": {"ephemeralContainers": [{"name": format!("debug{n}"), "image": "x"}]}});
        let path = format!("{pods}/{name}/ephemeralcontainers");
        let kind = "application/strategic-merge-patch+json";
        let answer = send(&stage.admin, "PATCH", &path, kind, debug.to_string().into_bytes()).await.expect("answers");
        assert_eq!(answer.accepted()["spec"]["ephemeralContainers"][n]["resources"], json!({}), "{answer:?}");
    }
    assert_eq!(asked().await, before, "nobody asked us");
    send(&stage.admin, "DELETE", &format!("{pods}/{name}"), JSON, Vec::new()).await.expect("answers");
}

/// LimitRange and ResourceQuota see what was injected.
#[tokio::test]
async fn quotas_count_what_was_injected() {
    let (stage, _controller) = staged(&[]).await;
    let in_team = |kind: &str| format!("/api/v1/namespaces/team-a/{kind}");
    let range = json!({"metadata": {"name": "r"}, "spec": {"limits": [{
        "type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "100m", "memory": "10Mi"},
    }]}});
    stage.create(&in_team("limitranges"), &range).await.accepted();
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"requests.spidernet.io/sub-eni": "2"}}});
    stage.create(&in_team("resourcequotas"), &quota).await.accepted();
    // Without its controller the quota's status is ours to set.
    let status = json!({"status": {"hard": {"requests.spidernet.io/sub-eni": "2"}, "used": {"requests.spidernet.io/sub-eni": "0"}}});
    stage.merge(&in_team("resourcequotas/q/status"), &status).await.accepted();
    wait::until("the quota to be in force", SOON, async || {
        let three = stage
            .create(
                &format!("{}?dryRun=All", in_team("pods")),
                &annotated("spiderpool/vlan,spiderpool/vlan,spiderpool/vlan"),
            )
            .await;
        ensure!(three.status == 403, "{three:?}");
        Ok(())
    })
    .await;
    let two = stage.pod("team-a", &annotated("spiderpool/vlan,spiderpool/vlan")).await;
    assert_eq!(two.requested(0, SUB_ENI), Some("2"));
    let resources = &two.accepted()["spec"]["containers"][0]["resources"];
    assert_eq!((&resources["requests"]["cpu"], &resources["requests"]["memory"]), (&json!("100m"), &json!("10Mi")));
    let more = stage.pod("team-a", &annotated("spiderpool/vlan")).await;
    assert!(
        more.refused().contains("exceeded quota") && more.refused().contains("requests.spidernet.io/sub-eni=1"),
        "{more:?}"
    );
}
