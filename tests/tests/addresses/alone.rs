//! Without Multus: the runtime's own network asks for addresses.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use std::time::Duration;
use tests::addresses::{allocated, pool, until_free};
use tests::cluster::{Cluster, OTHER, SOON, dev_cluster, in_node, sleeping};
use tests::process::run;
use tests::wait;

/// Before the node's own.
const CONF: &str = "/etc/cni/net.d/05-tests.conflist";

/// Makes this the network of all pods that start on [`OTHER`].
fn network(mut plugin: Value) {
    plugin["ipam"] = json!({
        "type": "spiderpool", "default_ipv4_ippool": ["alone-v4"], "default_ipv6_ippool": ["alone-v6"],
    });
    let conf = json!({"cniVersion": "1.0.0", "name": "alone", "plugins": [plugin]});
    in_node(OTHER, &format!("echo '{conf}' >{CONF}.new && mv {CONF}.new {CONF}"));
}

fn on_other(name: &str) -> Value {
    let mut pod = sleeping(name);
    pod["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": OTHER});
    pod
}

/// Addresses of a pod once it runs on ours. The runtime may take a moment to see a new configuration.
async fn addresses(cluster: &Cluster, pod: &str) -> Vec<String> {
    cluster.until_phase(pod, "Running").await;
    let found = cluster.pods().get(pod).await.expect("there").status.and_then(|status| status.pod_ips);
    found.into_iter().flatten().map(|ip| ip.ip).collect()
}

async fn until_used(cluster: &Cluster, prefix: &str) {
    wait::until("the runtime to use the node's new network", SOON, async || {
        cluster.delete_pods(&["probe"]).await;
        cluster.create(on_other("probe")).await?;
        let found = addresses(cluster, "probe").await;
        ensure!(found.iter().any(|ip| ip.starts_with(prefix)), "{found:?}");
        Ok::<_, anyhow::Error>(())
    })
    .await;
    cluster.delete_pods(&["probe"]).await;
}

fn container_of(pod: &str) -> anyhow::Result<String> {
    let found = run("kubectl", ["get", "sia", &format!("--field-selector=spec.pod.name={pod}"), "-o", "json"]);
    let found: Value = serde_json::from_str(&found)?;
    found["items"][0]["spec"]["containerId"].as_str().map(str::to_owned).context("no allocation")
}

#[tokio::test]
async fn a_nodes_own_network_is_of_pools() {
    let cluster = Cluster::installed().await;
    pool("alone-v4", "10.78.0.0/16", "10.78.0.10-10.78.0.40", json!({"gateway": "10.78.0.1"}));
    pool("alone-v6", "fd00:78::/64", "fd00:78::10-fd00:78::40", json!({"gateway": "fd00:78::1"}));
    network(json!({"type": "bridge", "bridge": "br-alone", "isGateway": false}));
    until_used(&cluster, "10.78.").await;

    // Both families; neighbours reach each other.
    for name in ["left", "right"] {
        cluster.create(on_other(name)).await.expect("created");
    }
    let (left, right) = (addresses(&cluster, "left").await, addresses(&cluster, "right").await);
    for found in [&left, &right] {
        assert!(found.len() == 2 && found[0].starts_with("10.78.") && found[1].starts_with("fd00:78:"), "{found:?}");
    }
    for ip in &right {
        run("kubectl", ["exec", "left", "--", "ping", "-c", "1", "-W", "5", ip]);
    }
    let routes = run("kubectl", ["exec", "left", "--", "ip", "route"]);
    assert!(routes.contains("default via 10.78.0.1"), "{routes}");

    // The sandbox dies: the pod gets another one, with the same addresses, whatever the order of DEL and ADD.
    let before = container_of("left").expect("allocated");
    in_node(OTHER, &format!("ctr -n k8s.io task kill -s SIGKILL {before}"));
    wait::until("another sandbox of the pod", SOON, async || {
        let now = container_of("left")?;
        ensure!(now != before, "still {now}");
        Ok::<_, anyhow::Error>(())
    })
    .await;
    assert_eq!(addresses(&cluster, "left").await, left, "kept over sandboxes");
    let held = |pod: &str| allocated().into_iter().filter(|(_, name, _)| name == pod).count();
    assert_eq!(held("left"), 2, "and no further ones");

    // A static pod, which the API server knows by another UID than the kubelet.
    let mut fixed = sleeping("fixed");
    (fixed["apiVersion"], fixed["kind"]) = ("v1".into(), "Pod".into());
    in_node(OTHER, &format!("echo '{fixed}' >/etc/kubernetes/manifests/fixed.json"));
    let name = format!("fixed-{OTHER}");
    wait::until("the static pod's mirror", SOON, async || cluster.pods().get(&name).await).await;
    let of_fixed = addresses(&cluster, &name).await;
    assert_eq!(of_fixed.len(), 2, "{of_fixed:?}");
    dev_cluster(&["restart-kubelet", "--kill", OTHER]);
    run("kubectl", ["rollout", "restart", "daemonset/spiderpool-agent", "--namespace=kube-system"]);
    run("kubectl", ["rollout", "status", "daemonset/spiderpool-agent", "--namespace=kube-system", "--timeout=5m"]);
    assert_eq!(held(&name), 2, "kept while its kubelet and agent start anew");
    in_node(OTHER, "rm /etc/kubernetes/manifests/fixed.json");
    wait::until("the static pod's addresses to be free", SOON, async || {
        ensure!(held(&name) == 0, "still held");
        Ok(())
    })
    .await;

    cluster.delete_pods(&["left", "right"]).await;
    network(json!({"type": "macvlan", "master": "eth1", "mode": "bridge"}));
    until_used(&cluster, "10.78.").await;
    cluster.create(on_other("alone")).await.expect("created");
    let of_macvlan = addresses(&cluster, "alone").await;
    assert_eq!(of_macvlan.len(), 2, "{of_macvlan:?}");
    cluster.delete_pods(&["alone"]).await;
    in_node(OTHER, &format!("rm {CONF}"));
    until_free(&["10.78.", "fd00:78:"], Duration::from_mins(2)).await;
    let pools = ["alone-v4", "alone-v6"];
    run("kubectl", ["delete", "spiderippool", pools[0], pools[1], "--timeout=60s"]);
}
