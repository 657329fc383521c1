//! The provider for trials of the chart, on the cluster of a scenario, asked through the API server.

use crate::cluster::{Cluster, SOON, in_node};
use crate::multus;
use crate::process::run;
use crate::wait;
use anyhow::{Context, ensure};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use provider_sim::{Record, View};
use serde_json::Value;
use std::collections::BTreeSet;

/// Whose VLAN and MAC an address has, by whomever is asked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Link {
    /// Name of the pod.
    pub pod: String,
    /// Without prefix.
    pub address: String,
    /// Lower case.
    pub mac: String,
    /// Its id.
    pub vlan: i64,
}

const PATH: &str = "/api/v1/namespaces/kube-system/services/spiderpool-provider-sim:http/proxy";
const NAME: &str = "deployment/spiderpool-provider-sim";

/// Installs or upgrades the release with Multus and this provider, and puts the stand-in for the plugin `vlan` on all nodes.
pub fn install() {
    install_chart();
    run("dev/cluster.d/install-vlan", [""; 0]);
}

/// The same with the plugin `vlan` as it is, for nodes that make VLANs.
pub fn install_chart() {
    // Nodes of dev/cluster have no DNS. The annotations replace agents and controllers, which else follow within minutes.
    multus::install(&[
        "--set=providerSim.enabled=true,providerSim.image.registry=localhost,providerSim.clusterIP=10.96.0.80",
        "--set=iaasNetworkProvider.serverUrl=http://10.96.0.80:80,iaasNetworkProvider.httpRequestTimeout=10s",
        "--set-string=spiderpoolAgent.podAnnotations.tests=trial,spiderpoolController.podAnnotations.tests=trial",
    ]);
}

async fn list(cluster: &Cluster, of: &str) -> anyhow::Result<Value> {
    let request = http::Request::get(format!("{PATH}/{of}")).body(Vec::new())?;
    let text = cluster.client().request_text(request).await?;
    let mut answer: Value = serde_json::from_str(&text).context(text)?;
    Ok(answer[of].take())
}

/// What it has bound.
pub async fn bound(cluster: &Cluster) -> anyhow::Result<BTreeSet<Link>> {
    let link = |View { pod_name: pod, ip_address: address, mac_address: mac, vlan_id, .. }| {
        let (mac, vlan) = (mac.to_lowercase(), i64::from(vlan_id));
        Link { pod, address, mac, vlan }
    };
    let views: Vec<View> = serde_json::from_value(list(cluster, "bindings").await?)?;
    Ok(views.into_iter().map(link).collect())
}

/// Addresses that it was asked to release, and when, in milliseconds since 1970.
pub async fn releases(cluster: &Cluster) -> anyhow::Result<Vec<(String, u64)>> {
    let records: Vec<Record> = serde_json::from_value(list(cluster, "records").await?)?;
    let releases = records.iter().filter(|record| record.path.ends_with("/release-ip"));
    Ok(releases.filter_map(|record| Some((record.body["ipAddress"].as_str()?.to_owned(), record.at))).collect())
}

/// From now on these calls go wrong, as `POST /faults` takes it.
pub async fn faults(cluster: &Cluster, rules: &Value) {
    let request =
        http::Request::post(format!("{PATH}/faults")).body(rules.to_string().into_bytes()).expect("a request");
    cluster.client().request_text(request).await.expect("it takes the rules");
}

/// It dies, and what it has bound with it.
pub async fn kill(nodes: &[&str]) {
    run("kubectl", ["scale", NAME, "--namespace=kube-system", "--replicas=0"]);
    let selector = "--selector=app.kubernetes.io/component=spiderpool-provider-sim";
    run("kubectl", ["delete", "pod", "--namespace=kube-system", selector, "--force", "--grace-period=0"]);
    // The API server would ask the dead over a connection that it keeps.
    wait::until("the end of its process", SOON, async || {
        let left: String =
            nodes.iter().map(|node| in_node(node, "pgrep -f '^/usr/bin/provider-sim ' || true")).collect();
        ensure!(left.is_empty(), "pid {left}");
        Ok(())
    })
    .await;
}

/// It is there again; nothing is bound.
pub fn revive() {
    run("kubectl", ["scale", NAME, "--namespace=kube-system", "--replicas=1"]);
    run("kubectl", ["rollout", "status", NAME, "--namespace=kube-system", "--timeout=3m"]);
}

/// When the API server was last asked to delete the allocation of this address, in milliseconds since 1970.
pub fn freed(address: &str) -> Option<u64> {
    let folder = std::env::var("SPIDERPOOL_CLUSTER_DIR").expect("run this under `dev/cluster exec -- …`");
    let log = std::fs::read_to_string(format!("{folder}/audit.log")).expect("an audit log");
    let of_address = format!("/spideripallocations/{address}?");
    // Of a request line `?` ends the path, with parameters or without.
    let found = log.lines().rev().find(|line| line.contains("\"verb\":\"delete\"") && line.contains(&of_address))?;
    let entry: Value = serde_json::from_str(found).expect("JSON");
    let at: MicroTime = serde_json::from_value(entry["requestReceivedTimestamp"].clone()).expect("a time");
    u64::try_from(at.0.as_millisecond()).ok()
}
