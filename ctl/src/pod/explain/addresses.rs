//! What is held under the pod's name.

use super::super::facts::Facts;
use super::super::wanted::wanted;
use crate::finding::Finding;
use crate::held::{self, Held};
use crate::providers::{self, Providers};
use store::Allocation;

const STEP: &str = "addresses";

pub(super) fn addresses(facts: &Facts) -> Vec<Finding> {
    let all = match &facts.allocations {
        Err(why) => return vec![Finding::not_seen(STEP, why)],
        Ok(all) => all,
    };
    let mut findings: Vec<_> = all.iter().map(|held| one(facts, held)).collect();
    findings.extend(lacking(facts, all));
    if findings.is_empty() && facts.pod.is_some() {
        findings.push(Finding::note(STEP, "it has none"));
    }
    findings
}

/// Interfaces of a running pod that should have one.
fn lacking(facts: &Facts, all: &[Held]) -> Vec<Finding> {
    if !facts.runs() || facts.host_network() {
        return Vec::new();
    }
    let has =
        |interface: &str| all.iter().filter_map(|held| held.what.as_ref().ok()).any(|one| one.interface == interface);
    let lacking = wanted(facts).into_iter().filter(|wanted| {
        // Whether the runtime's own network asks us nobody can see: it may be another's.
        !wanted.network.is_empty() && !wanted.families.is_empty() && !has(&wanted.interface)
    });
    let finding = |interface: String| {
        let todo = "delete the pod so that its sandbox is made again; if that does not help, see kubectl logs of the node's agent";
        Finding::wrong(STEP, format!("{interface} has no address, and yet the pod runs"), todo)
    };
    lacking.map(|wanted| finding(wanted.interface)).collect()
}

fn one(facts: &Facts, held: &Held) -> Finding {
    let one = match &held.what {
        Err(why) => {
            let text = format!("SpiderIPAllocation {} cannot be read: {why}; its address counts as taken", held.name);
            return Finding::wrong(STEP, text, format!("see what is in it: kubectl get sia {} -o yaml", held.name));
        }
        Ok(one) => one,
    };
    let text = shown(one);
    if let Some(server) = Providers::of(facts.conf.as_ref().ok()).unserved(one) {
        return unserved(facts, one, &text, server);
    }
    if facts.uids().contains(&one.pod.uid.as_str()) {
        return own(facts, held, one, text);
    }
    earlier(facts, held, one, &text)
}

fn shown(one: &Allocation) -> String {
    let bound = match &one.provider {
        Some(binding) => format!(", bound at {} as {}", binding.server, binding.bind_id),
        None => String::new(),
    };
    let sandbox: String = one.container_id.chars().take(12).collect();
    format!(
        "{} of {} for {}: {} on node {}, sandbox {}{bound}",
        one.address,
        one.pool,
        one.interface,
        held::state(one),
        if one.node.name.is_empty() { "(none)" } else { &one.node.name },
        if sandbox.is_empty() { "(none)" } else { &sandbox },
    )
}

/// Bound where nobody may ask.
fn unserved(facts: &Facts, one: &Allocation, text: &str, server: &str) -> Finding {
    let text = format!("{text}; {}", providers::nobody_asks(server));
    let todo = providers::remedy(server, one);
    if facts.uids().contains(&one.pod.uid.as_str()) && !facts.has_ended() && is_shown(facts, one) {
        return Finding::note(STEP, format!("{text}: it stays when the pod goes. Before that, {todo}"));
    }
    Finding::wrong(STEP, text, todo)
}

fn is_shown(facts: &Facts, one: &Allocation) -> bool {
    let endpoint = facts.endpoint.as_ref().ok().and_then(|found| found.as_ref()?.as_ref().ok());
    endpoint.is_some_and(|endpoint| endpoint.entry(one).is_some())
}

fn own(facts: &Facts, held: &Held, one: &Allocation, text: String) -> Finding {
    if facts.has_ended() {
        return Finding::note(STEP, format!("{text}; the pod has ended, and the agent of its node frees it"));
    }
    if facts.node().is_some_and(|node| node != one.node.name) {
        let todo = "nothing, if it goes within a minute; else spiderpoolctl leaks says who frees it";
        return Finding::wrong(STEP, format!("{text}; the pod is on another node"), todo);
    }
    if !one.held() {
        let who = providers::releasing(held, one, facts.now).map(|who| format!(" by {who}")).unwrap_or_default();
        return Finding::note(STEP, format!("{text}; the pod waits until that is done{who}"));
    }
    if one.release_request.is_some() {
        return Finding::note(STEP, format!("{text}; the controller carries that out when the pod does not live"));
    }
    if one.provider.is_some() && facts.endpoint.is_ok() && !is_shown(facts, one) {
        let settles = providers::settles(held, one, facts.now).map(|left| format!(" within {left}s"));
        let settles = settles.unwrap_or_default();
        let text = format!("{text}; whether the provider has bound it is not known, which settles{settles}");
        return Finding::note(STEP, text);
    }
    if one.detached { Finding::note(STEP, text) } else { Finding::ok(STEP, text) }
}

/// Of an earlier pod of the name.
fn earlier(facts: &Facts, held: &Held, one: &Allocation, text: &str) -> Finding {
    let retained = facts.retained.contains(&held.name);
    let before = format!("{text}; it is of an earlier pod of this name, UID {}", one.pod.uid);
    match (facts.node(), retained) {
        (_, true) if facts.pod.is_none() => {
            Finding::note(STEP, format!("{before}; kept, since its controller still has a place for the name"))
        }
        (Some(node), true) if node != one.node.name => {
            let todo = format!(
                "nothing while the node {0} works: it follows when the old sandbox is taken down. If that machine is off for \
                 good, delete its Node or taint it: kubectl taint node {0} node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
                one.node.name
            );
            Finding::wrong(STEP, format!("{before}; the pod waits for it on node {node}"), todo)
        }
        (_, true) => Finding::note(STEP, format!("{before}; the pod takes it over")),
        (_, false) if facts.pod.is_none() => {
            let todo =
                "nothing for the first minutes: the agent of its node frees it; spiderpoolctl leaks says who does";
            let who =
                providers::releasing(held, one, facts.now).map(|who| format!(", and it is being released by {who}"));
            Finding::wrong(STEP, format!("{text}; its pod is gone{}", who.unwrap_or_default()), todo)
        }
        (_, false) => {
            Finding::note(STEP, format!("{before}; the agent of its node frees it, spiderpoolctl leaks says more"))
        }
    }
}
