//! What the pod asks of its node, and what its networks need.

use super::super::facts::Facts;
use crate::finding::Finding;
use crate::requests::{self, Counts};
use k8s_api::attachment::Needs;
use k8s_api::conf::Conf;
use k8s_api::names::{DOMAIN, INJECT_LABEL, NIC_SUFFIX};
use std::collections::BTreeSet;

const STEP: &str = "resources";

pub(super) fn resources(facts: &Facts) -> Vec<Finding> {
    let Some(pod) = &facts.pod else { return Vec::new() };
    let asked = requests::of(pod);
    let ours: Vec<_> = asked.iter().filter(|(name, _)| name.starts_with(DOMAIN)).collect();
    let Ok(conf) = &facts.conf else {
        let all: Vec<_> = ours.iter().map(|(name, count)| format!("{name}: {count}")).collect();
        let all = if all.is_empty() { "nothing of ours".to_owned() } else { all.join(", ") };
        return vec![Finding::note(
            STEP,
            format!("it asks for {all}; what its networks need is not known without configuration"),
        )];
    };
    let (needed, unmet) = needed(facts, conf);
    let mut findings: Vec<_> =
        unmet.map(|why| Finding::wrong(STEP, why, "set what it says in the chart's values")).into_iter().collect();
    for (name, count) in &needed {
        let has = asked.get(name).copied().unwrap_or_default();
        findings.push(judge(facts, conf, name, *count, has));
    }
    let more = ours.iter().filter(|(name, _)| !needed.contains_key(*name));
    findings.extend(more.map(|(name, count)| {
        Finding::note(STEP, format!("it asks for {name}: {count}, which none of its networks needs"))
    }));
    if findings.is_empty() && !facts.networks.is_empty() {
        findings.push(Finding::ok(STEP, "its networks need nothing of a node that is counted"));
    }
    findings
}

/// What the networks need together, and what no node can give as this installation is configured.
fn needed(facts: &Facts, conf: &Conf) -> (Counts, Option<String>) {
    let (mut sub_eni, mut masters) = (0_u64, BTreeSet::new());
    for network in &facts.networks {
        let Ok(Some(config)) = &network.config else { continue };
        let Ok(spec) = &config.spec else { continue };
        let needs = Needs::of(spec);
        sub_eni += u64::from(needs.sub_eni);
        masters.extend(needs.masters);
    }
    let mut counts = Counts::new();
    if conf.plugin.enabled && !conf.plugin.master_nic.is_empty() {
        counts.extend(masters.into_iter().map(|master| (format!("{DOMAIN}/{master}{NIC_SUFFIX}"), 1)));
    }
    if sub_eni == 0 {
        return (counts, None);
    }
    if conf.provider.is_none() {
        let why = "a network takes its VLAN from the provider, and iaasNetworkProvider.serverUrl is empty";
        return (counts, Some(why.to_owned()));
    }
    if let Some(rule) = conf.plugin.sub_eni.first().filter(|_| conf.plugin.enabled) {
        counts.insert(rule.devices.name().to_string(), sub_eni);
    }
    (counts, None)
}

fn judge(facts: &Facts, conf: &Conf, name: &str, needed: u64, has: u64) -> Finding {
    if has >= needed {
        return Finding::ok(STEP, format!("it asks for {name}: {has}, and its networks need {needed}"));
    }
    if has > 0 {
        let text = format!(
            "it asks for {name}: {has}, and its networks need {needed}; what its author wrote is left as it is"
        );
        return Finding::note(STEP, text);
    }
    let text =
        format!("it does not ask for {name}: {needed}, which its networks need: nothing limits where it is scheduled");
    let labels = |labels: Option<&std::collections::BTreeMap<String, String>>| {
        labels.and_then(|labels| labels.get(INJECT_LABEL)).is_some_and(|value| value == "false")
    };
    let of_pod = facts.pod.as_ref().and_then(|pod| pod.metadata.labels.as_ref());
    let of_namespace = facts.of_namespace.as_ref().ok().and_then(|found| found.as_ref()?.metadata.labels.as_ref());
    if !conf.inject {
        return Finding::note(STEP, format!("{text}; podResourceInject is off"));
    }
    if labels(of_pod) || labels(of_namespace) {
        return Finding::note(STEP, format!("{text}; label {INJECT_LABEL}: \"false\" keeps it from being given"));
    }
    let todo = "it was made while no controller answered, or in an excluded namespace: see kubectl get \
                mutatingwebhookconfigurations, then delete the pod so that it is made again";
    Finding::wrong(STEP, text, todo)
}
