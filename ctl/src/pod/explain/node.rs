//! The node that the pod is on; or why it is on none.

use super::super::facts::Facts;
use crate::finding::Finding;
use crate::machines::Machine;
use crate::requests::{self, Counts};
use k8s_api::names::DOMAIN;

const STEP: &str = "node";

pub(super) fn node(facts: &Facts) -> Vec<Finding> {
    let Some(pod) = &facts.pod else { return Vec::new() };
    let mut asked = requests::of(pod);
    asked.retain(|name, _| name.starts_with(DOMAIN));
    match facts.node() {
        Some(name) => vec![placed(facts, name, &asked)],
        None => waits(facts, &asked),
    }
}

fn placed(facts: &Facts, name: &str, asked: &Counts) -> Finding {
    let machine = match &facts.nodes {
        Err(why) => return Finding::not_seen(STEP, why),
        Ok(all) => all.iter().find(|machine| machine.name == name),
    };
    let Some(machine) = machine else {
        let todo = "its pods are deleted by Kubernetes within minutes; addresses are freed after ipam.gc.nodeGoneAfter";
        return Finding::wrong(STEP, format!("there is no Node {name}"), todo);
    };
    if machine.out_of_service {
        let todo = format!("take the taint off when the machine is back: kubectl describe node {name}");
        return Finding::wrong(STEP, format!("{name} is tainted out-of-service: somebody says that it is off"), todo);
    }
    if !machine.ready {
        let todo = format!("see why: kubectl describe node {name}; its pods neither start nor end until then");
        return Finding::wrong(STEP, format!("{name} is not ready"), todo);
    }
    let agent = match &facts.agents {
        Err(why) => format!("its agent was not looked at: {}", why.0),
        Ok(all) => match all.get(name) {
            None => {
                let todo =
                    "see whether the DaemonSet of the agent may run there: its nodeSelector, affinity and tolerations";
                return Finding::wrong(STEP, format!("{name} runs no agent, so its pods get no address"), todo);
            }
            Some(agent) if !agent.ready => {
                let text = format!("the agent of {name}, {}, is not ready, so its pods get no address", agent.pod);
                return Finding::wrong(
                    STEP,
                    text,
                    format!("see why: kubectl logs -n {}", agent.pod.replacen('/', " ", 1)),
                );
            }
            Some(agent) => format!("its agent {} is ready", agent.pod),
        },
    };
    let shares: Vec<_> = asked.keys().map(|resource| share(facts, machine, resource)).collect();
    let shares = if shares.is_empty() { String::new() } else { format!("; {}", shares.join("; ")) };
    Finding::ok(STEP, format!("{name} is ready, {agent}{shares}"))
}

/// `spidernet.io/sub-eni: 3 of 256 asked for`.
fn share(facts: &Facts, machine: &Machine, resource: &str) -> String {
    let offered = machine.allocatable.get(resource).copied().unwrap_or_default();
    match facts.requested.get(&machine.name) {
        Some(Ok(all)) => {
            format!("{resource}: pods ask for {} of {offered}", all.get(resource).copied().unwrap_or_default())
        }
        Some(Err(why)) => format!("{resource}: {offered}, how much is asked for was not looked at: {}", why.0),
        None => format!("{resource}: {offered}"),
    }
}

fn waits(facts: &Facts, asked: &Counts) -> Vec<Finding> {
    let conditions = facts.pod.iter().filter_map(|pod| pod.status.as_ref()?.conditions.as_ref()).flatten();
    let mut conditions =
        conditions.filter(|condition| condition.type_ == "PodScheduled" && condition.status == "False");
    let message = conditions.next().map(|condition| {
        let reason = condition.reason.clone().unwrap_or_default();
        format!("{reason}: {}", condition.message.clone().unwrap_or_default())
    });
    let mut findings = Vec::new();
    let todo = match &facts.nodes {
        Err(why) => {
            findings.push(Finding::not_seen(STEP, why));
            "see the message".to_owned()
        }
        Ok(all) => {
            findings.extend(all.iter().map(|machine| offer(facts, machine, asked)));
            if facts.more_nodes > 0 {
                findings.push(Finding::note(STEP, format!("and {} nodes more offer some of it", facts.more_nodes)));
            }
            what_to_do(facts, all, asked)
        }
    };
    let finding = match message {
        Some(message) => Finding::wrong(STEP, format!("it is on no node: {message}"), todo),
        None => Finding::note(STEP, "the scheduler has not looked at it yet"),
    };
    findings.insert(0, finding);
    findings
}

fn left(facts: &Facts, machine: &Machine, resource: &str) -> Option<u64> {
    let offered = machine.allocatable.get(resource).copied().unwrap_or_default();
    let asked = facts.requested.get(&machine.name)?.as_ref().ok()?.get(resource).copied().unwrap_or_default();
    Some(offered.saturating_sub(asked))
}

fn offer(facts: &Facts, machine: &Machine, asked: &Counts) -> Finding {
    let states =
        [(!machine.ready, "not ready"), (machine.cordoned, "cordoned"), (machine.out_of_service, "out of service")];
    let states: Vec<_> = states.iter().filter(|(is, _)| *is).map(|(_, word)| *word).collect();
    let states = if states.is_empty() { String::new() } else { format!(" ({})", states.join(", ")) };
    let free = asked.iter().map(|(resource, count)| {
        let offered = machine.allocatable.get(resource).copied().unwrap_or_default();
        match left(facts, machine, resource) {
            Some(left) => format!("{resource}: {left} of {offered} free, {count} needed"),
            None => format!("{resource}: {offered} in all, {count} needed"),
        }
    });
    Finding::note(STEP, format!("{}{states}: {}", machine.name, free.collect::<Vec<_>>().join("; ")))
}

fn what_to_do(facts: &Facts, all: &[Machine], asked: &Counts) -> String {
    let usable = |machine: &&Machine| machine.ready && !machine.cordoned && !machine.out_of_service;
    let usable: Vec<_> = all.iter().filter(usable).collect();
    for (resource, count) in asked {
        let offers = |machine: &&&Machine| machine.allocatable.get(resource).copied().unwrap_or_default() > 0;
        if !usable.iter().any(|machine| offers(&machine)) {
            return format!(
                "no node that can be used offers {resource}: see the rules of networkResourcePlugin, the nodes' labels, and \
                 http://127.0.0.1:5710/registrations on a node (docs/network-resources.md)"
            );
        }
        let fits = |machine: &&&Machine| left(facts, machine, resource).is_none_or(|left| left >= *count);
        if facts.more_nodes == 0 && !usable.iter().any(|machine| fits(&machine)) {
            return format!(
                "every node is full of {resource}: add a node, or let other pods go (spiderpoolctl node NAME)"
            );
        }
    }
    "what is needed of ours is there: something else keeps it from these nodes, as the message says".to_owned()
}
