//! Without Multus: the runtime's own network asks for addresses.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use std::time::Duration;
use tests::addresses::{addresses, allocated, bridge, node_network, on, pool, remove_node_network, until_free};
use tests::cluster::{Cluster, OTHER, SOON, dev_cluster, in_node, sleeping};
use tests::process::run;
use tests::wait;

fn both() -> Value {
    json!({"type": "spiderpool", "default_ipv4_ippool": ["alone-v4"], "default_ipv6_ippool": ["alone-v6"]})
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
    node_network(&cluster, &[OTHER], bridge("br-alone"), both(), "10.78.").await;

    // Both families; neighbours reach each other.
    for name in ["left", "right"] {
        cluster.create(on(OTHER, sleeping(name))).await.expect("created");
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
    let macvlan = json!({"type": "macvlan", "master": "eth1", "mode": "bridge"});
    node_network(&cluster, &[OTHER], macvlan, both(), "10.78.").await;
    cluster.create(on(OTHER, sleeping("alone"))).await.expect("created");
    let of_macvlan = addresses(&cluster, "alone").await;
    assert_eq!(of_macvlan.len(), 2, "{of_macvlan:?}");
    cluster.delete_pods(&["alone"]).await;
    remove_node_network(&[OTHER]);
    until_free(&["10.78.", "fd00:78:"], Duration::from_mins(2)).await;
    let pools = ["alone-v4", "alone-v6"];
    run("kubectl", ["delete", "spiderippool", pools[0], pools[1], "--timeout=60s"]);
}
