//! What `helm uninstall` leaves behind: nothing.

use anyhow::ensure;
use tests::cluster::{Cluster, MATCHING, SOON, SUB_ENI, in_node};
use tests::process::run;
use tests::wait;

#[tokio::test]
async fn install_and_uninstall_twice() {
    for _ in 0..2 {
        let cluster = Cluster::installed().await;
        cluster.until_allocatable(MATCHING, SUB_ENI, Some("256")).await;
        run("helm", ["uninstall", "spiderpool", "--namespace=kube-system", "--wait", "--timeout=2m"]);
        cluster.until_allocatable(MATCHING, SUB_ENI, Some("0")).await;
        wait::until("the agent's sockets to be gone", SOON, async || {
            let files = in_node(MATCHING, "ls -A /var/lib/kubelet/device-plugins");
            ensure!(!files.contains("spiderpool"), "{files}");
            Ok(())
        })
        .await;
        wait::until("every object of ours to be gone", SOON, async || {
            let kinds = "clusterroles,clusterrolebindings,roles,rolebindings,all,configmaps,serviceaccounts";
            let left = run("kubectl", ["get", kinds, "-A", "-o", "name"]);
            ensure!(!left.contains("spiderpool"), "{left}");
            Ok(())
        })
        .await;
    }
}
