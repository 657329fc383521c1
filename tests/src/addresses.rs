//! Addresses on a cluster: who has which by the API, by the pods, and in the kernels' namespaces.

use crate::cluster::{CHANGING, Cluster, MATCHING, OTHER, SOON, in_node, sleeping};
use crate::process::run;
use crate::wait;
use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// Namespace, pod and address.
pub type Held = BTreeSet<(String, String, String)>;

/// Applies manifests.
pub fn apply(manifest: &str) {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), manifest).expect("writes");
    run("kubectl", ["apply", "-f", &file.path().display().to_string()]);
}

/// A pool; `more` are further fields of its spec.
pub fn pool(name: &str, subnet: &str, ips: &str, more: Value) {
    let mut spec = json!({"subnet": subnet, "ips": [ips]});
    if let (Some(spec), Value::Object(more)) = (spec.as_object_mut(), more) {
        spec.extend(more);
    }
    let pool = json!({
        "apiVersion": "spiderpool.spidernet.io/v2beta1", "kind": "SpiderIPPool", "metadata": {"name": name}, "spec": spec,
    });
    apply(&pool.to_string());
}

/// An attachment in the namespace `default`, of a plugin that makes links and asks the IPAM plugin `ipam`.
pub fn attachment(name: &str, mut plugin: Value, ipam: Value) {
    plugin["ipam"] = ipam;
    plugin["name"] = name.into();
    plugin["cniVersion"] = "1.0.0".into();
    let definition = json!({
        "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
        "metadata": {"name": name, "namespace": "default"}, "spec": {"config": plugin.to_string()},
    });
    apply(&definition.to_string());
}

/// Before the nodes' own.
const CONF: &str = "/etc/cni/net.d/05-tests.conflist";

/// Makes this the network of all pods that start on these nodes, without Multus, and waits until a pod there gets an address
/// that begins so.
pub async fn node_network(cluster: &Cluster, nodes: &[&str], mut plugin: Value, ipam: Value, prefix: &str) {
    plugin["ipam"] = ipam;
    let conf = json!({"cniVersion": "1.0.0", "name": "tests", "plugins": [plugin]});
    for node in nodes {
        in_node(node, &format!("echo '{conf}' >{CONF}.new && mv {CONF}.new {CONF}"));
        wait::until(format!("the runtime of {node} to use its new network"), SOON, async || {
            cluster.delete_pods(&["probe"]).await;
            cluster.create(on(node, sleeping("probe"))).await?;
            let found = addresses(cluster, "probe").await;
            ensure!(found.iter().any(|ip| ip.starts_with(prefix)), "{found:?}");
            Ok::<_, anyhow::Error>(())
        })
        .await;
        cluster.delete_pods(&["probe"]).await;
    }
}

/// The nodes' own networks again.
pub fn remove_node_network(nodes: &[&str]) {
    for node in nodes {
        in_node(node, &format!("rm {CONF}"));
    }
}

/// Binds a pod to a node.
pub fn on(node: &str, mut pod: Value) -> Value {
    pod["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": node});
    pod
}

/// Addresses of a pod once it runs.
pub async fn addresses(cluster: &Cluster, pod: &str) -> Vec<String> {
    cluster.until_phase(pod, "Running").await;
    let found = cluster.pods().get(pod).await.expect("there").status.and_then(|status| status.pod_ips);
    found.into_iter().flatten().map(|ip| ip.ip).collect()
}

/// A plugin that joins pods of a node by a bridge of this name.
pub fn bridge(name: &str) -> Value {
    json!({"type": "bridge", "bridge": name})
}

/// The IPAM plugin with these pools of IPv4.
pub fn of_pools(pools: &[&str]) -> Value {
    json!({"type": "spiderpool", "default_ipv4_ippool": pools})
}

fn objects(kind: &str) -> Vec<Value> {
    let all: Value =
        serde_json::from_str(&run("kubectl", ["get", kind, "--all-namespaces", "-o", "json"])).expect("JSON");
    all["items"].as_array().cloned().unwrap_or_default()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// By the allocations.
pub fn allocated() -> Held {
    let held = |object: Value| {
        let spec = &object["spec"];
        (text(&spec["pod"]["namespace"]), text(&spec["pod"]["name"]), text(&spec["address"]))
    };
    objects("spideripallocations").into_iter().map(held).collect()
}

/// By the endpoints.
pub fn published() -> Held {
    let held = |object: Value| -> Held {
        let pod = (text(&object["metadata"]["namespace"]), text(&object["metadata"]["name"]));
        let interfaces = object["status"]["current"]["ips"].as_array().cloned().unwrap_or_default();
        let addresses = interfaces.iter().flat_map(|ip| [text(&ip["ipv4"]), text(&ip["ipv6"])]);
        let addresses = addresses.filter(|cidr| !cidr.is_empty());
        addresses.map(|cidr| (pod.0.clone(), pod.1.clone(), bare(&cidr).to_owned())).collect()
    };
    objects("spiderendpoints").into_iter().flat_map(held).collect()
}

fn bare(cidr: &str) -> &str {
    cidr.split('/').next().unwrap_or_default()
}

/// By the status of live pods, and what Multus has written on them.
pub async fn of_pods(cluster: &Cluster) -> anyhow::Result<Held> {
    let pods = Api::<Pod>::all(cluster.client()).list(&ListParams::default()).await?;
    let mut held = Held::new();
    for pod in pods.items.iter().filter(|pod| is_live(pod)) {
        let of_multus =
            pod.annotations().get("k8s.v1.cni.cncf.io/network-status").map(|text| serde_json::from_str(text));
        let of_multus: Vec<Value> = of_multus.transpose().context("Multus writes a list")?.unwrap_or_default();
        let of_multus = of_multus.iter().filter_map(|one| one["ips"].as_array()).flatten().map(text);
        let own = pod.status.iter().flat_map(|status| status.pod_ips.iter().flatten()).map(|ip| ip.ip.clone());
        let pod = (pod.namespace().unwrap_or_default(), pod.name_any());
        held.extend(of_multus.chain(own).map(|ip| (pod.0.clone(), pod.1.clone(), ip)));
    }
    Ok(held)
}

fn is_live(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    !matches!(phase, Some("Succeeded" | "Failed"))
}

/// Addresses that begin so, in all network namespaces of pods on all nodes; twice if twice there.
pub fn inside(prefixes: &[&str]) -> Vec<String> {
    let look = "for ns in /var/run/netns/*; do [ -e \"$ns\" ] || continue; \
                nsenter --net=\"$ns\" ip -o addr show scope global 2>/dev/null; done; true";
    let all = [MATCHING, CHANGING, OTHER].map(|node| in_node(node, look)).join("\n");
    let addresses = all.lines().filter_map(|line| line.split_whitespace().nth(3)).map(bare);
    let mut found: Vec<String> = addresses.filter(|ip| begins(ip, prefixes)).map(str::to_owned).collect();
    found.sort();
    found
}

/// Waits until allocations, endpoints, live pods and the kernels' namespaces say the same of addresses that begin so.
pub async fn until_consistent(cluster: &Cluster, prefixes: &[&str], limit: Duration) -> Held {
    wait::until("the same addresses in the API, in pods and in namespaces", limit, async || {
        let ours = |held: Held| -> Held { held.into_iter().filter(|(.., ip)| begins(ip, prefixes)).collect() };
        let allocated = ours(allocated());
        let pods = ours(of_pods(cluster).await?);
        ensure!(
            allocated == pods,
            "allocated but not in pods {:?}, in pods but not allocated {:?}",
            allocated.difference(&pods).collect::<Vec<_>>(),
            pods.difference(&allocated).collect::<Vec<_>>()
        );
        let published = ours(published());
        ensure!(allocated == published, "allocated {allocated:?}, published {published:?}");
        let mut addresses: Vec<_> = allocated.iter().map(|(.., ip)| ip.clone()).collect();
        addresses.sort();
        let inside = inside(prefixes);
        ensure!(inside == addresses, "in namespaces {inside:?}, allocated {addresses:?}");
        Ok(allocated)
    })
    .await
}

fn begins(ip: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| ip.starts_with(prefix))
}

/// Waits until no address that begins so is allocated.
pub async fn until_free(prefixes: &[&str], limit: Duration) {
    wait::until("all addresses to be free", limit, async || {
        let left: Held = allocated().into_iter().filter(|(.., ip)| begins(ip, prefixes)).collect();
        ensure!(left.is_empty(), "{left:?}");
        Ok(())
    })
    .await;
}
