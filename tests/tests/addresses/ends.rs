//! Pods that end, and pools that change, while addresses are in use.

use anyhow::ensure;
use serde_json::json;
use std::process::Command;
use std::time::{Duration, Instant};
use tests::addresses::{allocated, apply, attachment, bridge, of_pools, pool, until_consistent, until_free};
use tests::cluster::{Cluster, SOON, networked, sleeping};
use tests::multus;
use tests::process::{attempt, run};
use tests::wait;

fn holds(pod: &str) -> bool {
    allocated().iter().any(|(_, name, _)| name.starts_with(pod))
}

fn controllers(replicas: u32) {
    let count = format!("--replicas={replicas}");
    run("kubectl", ["scale", "deployment/spiderpool-controller", "--namespace=kube-system", &count]);
    run(
        "kubectl",
        ["rollout", "status", "deployment/spiderpool-controller", "--namespace=kube-system", "--timeout=3m"],
    );
}

#[tokio::test]
async fn a_jobs_address_is_free_at_its_end_without_a_controller() {
    const LIMIT: Duration = Duration::from_secs(5);
    let cluster = Cluster::installed().await;
    multus::install(&[]);
    pool("job", "10.81.0.0/24", "10.81.0.10", json!({}));
    attachment("job", bridge("br-job"), of_pools(&["job"]));
    let mut template = sleeping("");
    template["metadata"] = json!({"annotations": {"k8s.v1.cni.cncf.io/networks": "default/job"}});
    template["spec"]["restartPolicy"] = "Never".into();
    template["spec"]["containers"][0]["command"] = json!(["sh", "-c", "until [ -e /tmp/end ]; do sleep 0.1; done"]);
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}, "spec": {"template": template},
    });
    apply(&job.to_string());
    run("kubectl", ["wait", "--for=condition=Ready", "pod", "--selector=job-name=job", "--timeout=3m"]);
    assert!(holds("job-"));
    controllers(0);
    run("kubectl", ["exec", "job/job", "--", "touch", "/tmp/end"]);
    wait::until("the job to be complete", SOON, async || {
        let phases = cluster.phases("job-").await?;
        ensure!(phases == ["Succeeded"], "{phases:?}");
        Ok(())
    })
    .await;
    let begin = Instant::now();
    wait::until("its address to be free", SOON, async || {
        ensure!(!holds("job-"), "still held");
        Ok(())
    })
    .await;
    let took = begin.elapsed();
    println!("a job's address is free {took:.1?} after it was seen complete, with no controller");
    assert!(took < LIMIT, "{took:?}");
    controllers(2);
    run("kubectl", ["delete", "job", "job"]);
    run("kubectl", ["delete", "spiderippool", "job", "--timeout=60s"]);
}

#[tokio::test]
async fn a_pool_is_edited_while_it_is_used() {
    let cluster = Cluster::installed().await;
    multus::install(&[]);
    pool("edited", "10.82.0.0/24", "10.82.0.10", json!({}));
    attachment("edited", bridge("br-edited"), of_pools(&["edited"]));
    cluster.create(networked("edited-0", "default/edited")).await.expect("created");
    cluster.until_phase("edited-0", "Running").await;
    let edit = |patch: serde_json::Value| {
        let patch = json!({"spec": patch}).to_string();
        attempt(Command::new("kubectl").args(["patch", "spiderippool", "edited", "--type=merge", "-p", &patch]))
    };
    // What a pod has cannot be taken out of its pool.
    let refused = edit(json!({"ips": ["10.82.0.20"]}));
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && why.contains("10.82.0.10"), "{why}");
    // The pod that found nothing runs once the pool has grown.
    cluster.create(networked("edited-1", "default/edited")).await.expect("created");
    wait::until("the pod's events to say why", SOON, async || {
        let events = run("kubectl", ["describe", "pod", "edited-1"]);
        ensure!(events.contains("are used out"), "{events}");
        Ok(())
    })
    .await;
    assert!(edit(json!({"ips": ["10.82.0.10-10.82.0.11"]})).status.success());
    cluster.until_phase("edited-1", "Running").await;
    // A disabled one gives nothing, and takes nothing away.
    assert!(edit(json!({"ips": ["10.82.0.10-10.82.0.30"], "disable": true})).status.success());
    wait::until("the pod's events to say that the pool is off", SOON, async || {
        cluster.delete_pods(&["edited-2"]).await;
        cluster.create(networked("edited-2", "default/edited")).await?;
        wait::until("an event", SOON, async || {
            let events = run("kubectl", ["describe", "pod", "edited-2"]);
            ensure!(events.contains("disable"), "{events}");
            Ok(())
        })
        .await;
        Ok::<_, anyhow::Error>(())
    })
    .await;
    assert!(edit(json!({"disable": false})).status.success());
    cluster.until_phase("edited-2", "Running").await;
    assert_eq!(until_consistent(&cluster, &["10.82."], SOON).await.len(), 3);
    // A pool that is deleted stays as long as it is used, says for whom, and gives nothing more.
    run("kubectl", ["delete", "spiderippool", "edited", "--wait=false"]);
    wait::until("the pool to say what it waits for", SOON, async || {
        let pool = run("kubectl", ["describe", "spiderippool", "edited"]);
        ensure!(pool.contains("edited-0"), "{pool}");
        Ok(())
    })
    .await;
    cluster.delete_pods(&["edited-0", "edited-1", "edited-2"]).await;
    until_free(&["10.82."], Duration::from_mins(2)).await;
    run("kubectl", ["wait", "--for=delete", "spiderippool/edited", "--timeout=60s"]);
}
