//! What `helm uninstall` leaves behind: the definitions with their objects, and nothing else. It never holds up a pod.

use anyhow::ensure;
use kube::api::PostParams;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tests::cluster::{Cluster, MATCHING, SOON, SUB_ENI, in_node, networked, sleeping};
use tests::process::run;
use tests::wait;

#[tokio::test]
async fn install_and_uninstall_twice() {
    for _ in 0..2 {
        let cluster = Cluster::installed().await;
        cluster.until_allocatable(MATCHING, SUB_ENI, Some("256")).await;
        let stop = AtomicBool::new(false);
        let uninstalling = async {
            let uninstall =
                || run("helm", ["uninstall", "spiderpool", "--namespace=kube-system", "--wait", "--timeout=5m"]);
            tokio::task::spawn_blocking(uninstall).await.expect("it succeeds");
            stop.store(true, Ordering::Relaxed);
        };
        // WH-21: with a network or without, pods are created before, during and after.
        let creating = async {
            let dry = PostParams { dry_run: true, ..PostParams::default() };
            let mut created = 0;
            while !stop.load(Ordering::Relaxed) {
                for pod in [networked("with", "spiderpool/any"), sleeping("without")] {
                    let pod = serde_json::from_value(pod).expect("a pod");
                    cluster.pods().create(&dry, &pod).await.expect("a pod is created while the chart goes");
                    created += 1;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            created
        };
        let ((), created) = tokio::join!(uninstalling, creating);
        println!("uninstalled: {created} pods created meanwhile, none failed");
        cluster.until_allocatable(MATCHING, SUB_ENI, Some("0")).await;
        wait::until("the agent's sockets to be gone", SOON, async || {
            let files = in_node(MATCHING, "ls -A /var/lib/kubelet/device-plugins");
            ensure!(!files.contains("spiderpool"), "{files}");
            Ok(())
        })
        .await;
        wait::until("every object of ours to be gone", SOON, async || {
            let kinds = "clusterroles,clusterrolebindings,roles,rolebindings,all,configmaps,serviceaccounts,secrets,\
                         poddisruptionbudgets,networkpolicies,mutatingwebhookconfigurations";
            let left = run("kubectl", ["get", kinds, "-A", "-o", "name"]);
            ensure!(!left.contains("spiderpool"), "{left}");
            Ok(())
        })
        .await;
        let definitions = run("kubectl", ["get", "customresourcedefinitions", "-o", "name"]);
        assert_eq!(definitions.matches("spiderpool.spidernet.io").count(), 5, "{definitions}");
    }
}
