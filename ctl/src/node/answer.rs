//! What is said of a node.

use super::facts::Facts;
use crate::finding::{self, Finding, Verdict};
use crate::requests::{self, Counts};
use crate::table::table;
use k8s_api::names::DOMAIN;
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer {
    node: Node,
    resources: Vec<Resource>,
    /// Pods that ask for some of these.
    pods: Vec<Pod>,
    addresses: Vec<OfPool>,
    findings: Vec<Finding>,
    verdict: Verdict,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "facts, each of its own")]
struct Node {
    name: String,
    exists: bool,
    ready: bool,
    cordoned: bool,
    out_of_service: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    name: String,
    capacity: u64,
    allocatable: u64,
    requested: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Pod {
    namespace: String,
    name: String,
    requests: Counts,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct OfPool {
    pool: String,
    held: usize,
    releasing: usize,
    detached: usize,
}

impl Answer {
    pub(super) fn new(facts: &Facts, findings: Vec<Finding>) -> Self {
        let machine = facts.machine.as_ref().ok().and_then(Option::as_ref);
        let exists = machine.is_some();
        let mut machine = machine.cloned().unwrap_or_default();
        // What other device plugins offer is theirs.
        machine.capacity.retain(|name, _| name.starts_with(DOMAIN));
        let pods: Vec<_> = facts.pods.iter().flatten().filter_map(pod).collect();
        let mut requested = Counts::new();
        for pod in &pods {
            requests::add(&mut requested, &pod.requests);
        }
        let names = machine.capacity.keys().chain(requested.keys()).collect::<std::collections::BTreeSet<_>>();
        let of = |counts: &Counts, name: &str| counts.get(name).copied().unwrap_or_default();
        let resources = names.into_iter().map(|name| Resource {
            name: name.clone(),
            capacity: of(&machine.capacity, name),
            allocatable: of(&machine.allocatable, name),
            requested: of(&requested, name),
        });
        Self {
            resources: resources.collect(),
            node: Node {
                name: facts.name.clone(),
                exists,
                ready: machine.ready,
                cordoned: machine.cordoned,
                out_of_service: machine.out_of_service,
                agent: facts.agent.iter().flatten().map(|agent| agent.pod.clone()).next(),
            },
            pods,
            addresses: by_pool(facts),
            verdict: Verdict::of(&findings),
            findings,
        }
    }

    pub(super) fn is_ok(&self) -> bool {
        self.verdict.ok
    }

    pub(super) fn table(&self) -> String {
        let mut text = format!("node {}\n", self.node.name);
        let row = |one: &Resource| {
            [one.name.clone(), one.capacity.to_string(), one.allocatable.to_string(), one.requested.to_string()]
        };
        let rows: Vec<_> = self.resources.iter().map(row).collect();
        text += &part(["RESOURCE", "CAPACITY", "ALLOCATABLE", "REQUESTED"], &rows);
        let asks =
            |pod: &Pod| pod.requests.iter().map(|(name, n)| format!("{name}: {n}")).collect::<Vec<_>>().join(", ");
        let rows: Vec<_> = self.pods.iter().map(|pod| [pod.namespace.clone(), pod.name.clone(), asks(pod)]).collect();
        text += &part(["NAMESPACE", "POD", "ASKS FOR"], &rows);
        let row = |one: &OfPool| {
            [one.pool.clone(), one.held.to_string(), one.releasing.to_string(), one.detached.to_string()]
        };
        let rows: Vec<_> = self.addresses.iter().map(row).collect();
        text += &part(["POOL", "HELD", "RELEASING", "WITHOUT SANDBOX"], &rows);
        format!("{text}\n{}", finding::shown(&self.findings, &self.verdict))
    }
}

fn part<const N: usize>(headers: [&str; N], rows: &[[String; N]]) -> String {
    if rows.is_empty() { String::new() } else { format!("\n{}", table(headers, rows)) }
}

/// A pod that asks for resources of ours, and for which.
fn pod(pod: &k8s_openapi::api::core::v1::Pod) -> Option<Pod> {
    let mut requests = requests::of(pod);
    requests.retain(|name, count| name.starts_with(DOMAIN) && *count > 0);
    let (namespace, name) = (pod.metadata.namespace.clone()?, pod.metadata.name.clone()?);
    (!requests.is_empty()).then_some(Pod { namespace, name, requests })
}

fn by_pool(facts: &Facts) -> Vec<OfPool> {
    let mut pools = BTreeMap::<String, OfPool>::new();
    for one in facts.allocations.iter().flatten().filter_map(|held| held.what.as_ref().ok()) {
        let new = || OfPool { pool: one.pool.clone(), held: 0, releasing: 0, detached: 0 };
        let counts = pools.entry(one.pool.clone()).or_insert_with(new);
        if one.held() {
            counts.held += 1;
        } else {
            counts.releasing += 1;
        }
        counts.detached += usize::from(one.detached);
    }
    pools.into_values().collect()
}
