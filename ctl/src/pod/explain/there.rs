//! The pod and its namespace.

use super::super::facts::Facts;
use crate::finding::Finding;
use crate::held::age;
use k8s_api::ipam::namespace_pools;
use k8s_openapi::api::core::v1::{Namespace, Pod};

pub(super) fn pod(facts: &Facts) -> Finding {
    const STEP: &str = "pod";
    let Facts { namespace, name, .. } = facts;
    let Some(pod) = &facts.pod else {
        let held = facts.allocations.as_ref().is_ok_and(|all| !all.is_empty());
        let endpoint = matches!(facts.endpoint, Ok(Some(_)));
        return if held || endpoint {
            Finding::note(STEP, format!("there is no pod {namespace}/{name}; what its name still has is below"))
        } else {
            let todo = format!("look for it: kubectl get pods -n {namespace}, or in another namespace with -A");
            Finding::wrong(
                STEP,
                format!("there is no pod {namespace}/{name}, and nothing is held under its name"),
                todo,
            )
        };
    };
    let created = pod.metadata.creation_timestamp.as_ref();
    let old = created.map_or(0, |time| facts.now.as_second() - time.0.as_second());
    let place = facts.node().map_or_else(|| "on no node yet".to_owned(), |node| format!("on node {node}"));
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let text = format!("{} {place}, {} old, UID {uid}", facts.phase(), age(old));
    if facts.host_network() {
        return Finding::note(STEP, format!("{text}; it is on the host's network, so it gets no address"));
    }
    if pod.metadata.deletion_timestamp.is_some() {
        return Finding::note(STEP, format!("{text}; it is being deleted, and gets no address any more"));
    }
    if facts.phase() == "Failed" {
        return failed(STEP, pod, &text);
    }
    if facts.phase() == "Succeeded" {
        return Finding::note(STEP, format!("{text}; it has ended"));
    }
    if facts.runs() { Finding::ok(STEP, text) } else { Finding::note(STEP, text) }
}

fn failed(step: &'static str, pod: &Pod, text: &str) -> Finding {
    let status = pod.status.as_ref();
    let reason = status.and_then(|status| status.reason.as_deref()).unwrap_or_default();
    let message = status.and_then(|status| status.message.as_deref()).unwrap_or_default();
    let text = format!("{text}; it has failed: {reason} {message}").trim_end_matches([':', ' ']).to_owned();
    if reason == "UnexpectedAdmissionError" {
        let todo =
            "delete it: the agent was away when the kubelet asked for its devices, and its controller makes another";
        return Finding::wrong(step, text, todo);
    }
    Finding::note(step, text)
}

pub(super) fn namespace(facts: &Facts) -> Finding {
    const STEP: &str = "namespace";
    let name = &facts.namespace;
    let found: &Namespace = match &facts.of_namespace {
        Err(why) => return Finding::not_seen(STEP, why),
        Ok(None) => {
            return Finding::wrong(STEP, format!("there is no namespace {name}"), "its pods go; use another namespace");
        }
        Ok(Some(found)) => found,
    };
    if found.metadata.deletion_timestamp.is_some() {
        let todo = format!(
            "nothing starts in it any more; if it stays for long, see why: kubectl get namespace {name} -o jsonpath={{.status.conditions}}"
        );
        return Finding::wrong(STEP, format!("{name} is being deleted: its pods get no address"), todo);
    }
    match namespace_pools(&found.metadata.annotations.clone().unwrap_or_default()) {
        // Whether it matters is said with the pools.
        Err(error) => Finding::note(STEP, format!("{name}: {error}")),
        Ok(names) if names.is_empty() => Finding::ok(STEP, format!("{name} is there, and names no pools")),
        Ok(names) => {
            let all: Vec<_> = names.ipv4.iter().chain(&names.ipv6).map(ToString::to_string).collect();
            Finding::ok(STEP, format!("{name} is there; pods of it that name no pools use [{}]", all.join(", ")))
        }
    }
}
