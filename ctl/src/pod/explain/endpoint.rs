//! What the pod's SpiderEndpoint shows, and whether the addresses say the same.

use super::super::facts::Facts;
use crate::finding::Finding;
use store::{Allocation, Endpoint, Interface};

const STEP: &str = "endpoint";

pub(super) fn endpoint(facts: &Facts) -> Vec<Finding> {
    let found = match &facts.endpoint {
        Err(why) => return vec![Finding::not_seen(STEP, why)],
        Ok(None) => return none(facts).into_iter().collect(),
        Ok(Some(Err(why))) => {
            let todo = format!("see what is in it: kubectl get se -n {} {} -o yaml", facts.namespace, facts.name);
            return vec![Finding::wrong(STEP, format!("it cannot be read: {why}"), todo)];
        }
        Ok(Some(Ok(found))) => found,
    };
    if facts.pod.is_none() {
        let text = format!("it is there still, of the pod with UID {} on node {}", found.pod.uid, found.node);
        return vec![Finding::note(STEP, text)];
    }
    if !facts.uids().contains(&found.pod.uid.as_str()) {
        let todo = "nothing, if it goes within a minute: the controller removes it, or moves it, once nobody has an address \
                    under it; see its log";
        let text = format!("it is of an earlier pod of this name, UID {} on node {}", found.pod.uid, found.node);
        return vec![Finding::wrong(STEP, text, todo)];
    }
    let held: Vec<_> = own(facts).collect();
    let mut findings: Vec<_> = held.iter().map(|one| shows(found, one)).collect();
    findings.extend(found.interfaces.iter().filter(|entry| !known(entry, &held)).map(|entry| stray(facts, entry)));
    if findings.is_empty() {
        findings.push(Finding::ok(STEP, "it shows no address"));
    }
    findings
}

fn own(facts: &Facts) -> impl Iterator<Item = &Allocation> {
    let uids: Vec<_> = facts.uids();
    let all = facts.allocations.iter().flatten().filter_map(|held| held.what.as_ref().ok());
    all.filter(move |one| one.held() && uids.contains(&one.pod.uid.as_str()))
}

fn none(facts: &Facts) -> Option<Finding> {
    own(facts).next()?;
    Some(if facts.runs() {
        let todo = "delete the pod so that its sandbox is made again; see kubectl logs of the node's agent for why";
        Finding::wrong(STEP, "there is none, and yet the pod runs and has addresses", todo)
    } else {
        Finding::note(
            STEP,
            "there is none yet: the addresses are not published, the pod's ADD is on its way or has failed",
        )
    })
}

fn shows(found: &Endpoint, one: &Allocation) -> Finding {
    if let Some(entry) = found.entry(one) {
        let vlan = entry.vlan.map(|vlan| format!(", VLAN {vlan}")).unwrap_or_default();
        let mac = entry.mac.as_ref().map(|mac| format!(", MAC {mac}")).unwrap_or_default();
        let shown = entry.addresses.iter().find(|assigned| assigned.address == one.address);
        let gateway = shown.and_then(|shown| shown.gateway).map(|gateway| format!(", gateway {gateway}"));
        let text = format!("{}: {}{vlan}{mac}{}", one.interface, one.address, gateway.unwrap_or_default());
        return Finding::ok(STEP, text);
    }
    let stale = found.interfaces.iter().find(|entry| entry.addresses.iter().any(|shown| shown.address == one.address));
    let todo = "nothing, if it changes within a minute: the pod's ADD is on its way, or the agent frees the address; else \
                delete the pod so that its sandbox is made again";
    let text = match stale {
        Some(entry) => format!(
            "it shows {} as {} of binding {}, and the address is for {} of binding {}",
            one.address,
            entry.name,
            entry.bind_id.as_deref().unwrap_or("(none)"),
            one.interface,
            one.bind_id().unwrap_or("(none)")
        ),
        None => format!("it does not show {} of {}", one.address, one.interface),
    };
    Finding::wrong(STEP, text, todo)
}

fn known(entry: &Interface, held: &[&Allocation]) -> bool {
    entry.addresses.iter().all(|shown| held.iter().any(|one| one.address == shown.address))
}

fn stray(facts: &Facts, entry: &Interface) -> Finding {
    let all: Vec<_> = entry.addresses.iter().map(|shown| shown.address.to_string()).collect();
    let text = format!("{}: it shows {}, which the pod does not hold", entry.name, all.join(", "));
    if facts.allocations.is_err() {
        return Finding::note(STEP, text);
    }
    let todo =
        "see whether another pod has it: kubectl get sia; an earlier system's addresses are taken over with their pool";
    Finding::wrong(STEP, text, todo)
}
