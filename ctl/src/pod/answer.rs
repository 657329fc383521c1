//! What is said of a pod.

use super::facts::Facts;
use crate::finding::{self, Finding, Verdict};
use crate::held::Row;
use serde::Serialize;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer {
    pod: Pod,
    findings: Vec<Finding>,
    /// What is held under the pod's name.
    allocations: Vec<Row>,
    verdict: Verdict,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Pod {
    namespace: String,
    name: String,
    exists: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
}

impl Answer {
    pub(super) fn new(facts: &Facts, findings: Vec<Finding>) -> Self {
        let phase = Some(facts.phase().to_owned()).filter(|phase| !phase.is_empty());
        Self {
            pod: Pod {
                namespace: facts.namespace.clone(),
                name: facts.name.clone(),
                exists: facts.pod.is_some(),
                uid: facts.pod.as_ref().and_then(|pod| pod.metadata.uid.clone()),
                phase,
                node: facts.node().map(str::to_owned),
            },
            allocations: facts.allocations.iter().flatten().map(|held| Row::of(held, facts.now)).collect(),
            verdict: Verdict::of(&findings),
            findings,
        }
    }

    pub(super) fn is_ok(&self) -> bool {
        self.verdict.ok
    }

    pub(super) fn table(&self) -> String {
        format!("pod {}/{}\n\n{}", self.pod.namespace, self.pod.name, finding::shown(&self.findings, &self.verdict))
    }
}
