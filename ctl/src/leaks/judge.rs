//! What is left behind, and who frees it: facts in, leaks out.

use super::bound::bound;
use super::facts::{Facts, Key, Shown, key};
use crate::held::Held;
use crate::machines::Machine;
use crate::providers;
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use store::{Allocation, Endpoint};

/// An endpoint is made a moment after its allocation, and goes a moment after its pod.
const LONELY_SECONDS: i64 = 60;

/// Something that nobody needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Leak {
    /// An address, or namespace and name of an endpoint.
    pub(super) what: String,
    pub(super) kind: Kind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pool: Option<String>,
    pub(super) pod: String,
    pub(super) node: String,
    pub(super) reason: String,
    pub(super) freed_by: By,
    /// When, or what is needed first.
    pub(super) when: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Kind {
    Address,
    Endpoint,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum By {
    Agent,
    Controller,
    Kubernetes,
    /// It stays until somebody does something.
    Nobody,
}

/// The node of an allocation.
pub(super) enum Place<'f> {
    Here(&'f Machine),
    /// Stated to be off.
    Off,
    /// No Node, or one of another machine.
    Gone,
    /// It names none: an earlier system's, on its way to us.
    Nowhere,
    /// Nodes could not be seen.
    Unknown,
}

pub(super) fn judge(facts: &Facts) -> Vec<Leak> {
    let shown: HashMap<&Key, &Endpoint> =
        facts.endpoints.iter().flatten().filter_map(|shown| Some((&shown.key, shown.what.as_ref().ok()?))).collect();
    let held: HashSet<Key> = facts.allocations.iter().filter_map(|held| held.what.as_ref().ok()).map(key).collect();
    let of_addresses = facts.allocations.iter().filter_map(|held| allocation(facts, &shown, held));
    let of_endpoints = facts.endpoints.iter().flatten().filter_map(|shown| endpoint(facts, &held, shown));
    of_addresses.chain(of_endpoints).collect()
}

fn allocation(facts: &Facts, shown: &HashMap<&Key, &Endpoint>, held: &Held) -> Option<Leak> {
    let one = match &held.what {
        Ok(one) => one,
        Err(why) => return Some(unreadable(Kind::Address, &held.name, why)),
    };
    let place = place(facts, one);
    let leak = |reason: String, (freed_by, when): (By, String)| Leak {
        what: one.address.to_string(),
        kind: Kind::Address,
        pool: Some(one.pool.clone()),
        pod: format!("{}/{}", one.pod.namespace, one.pod.name),
        node: one.node.name.clone(),
        reason,
        freed_by,
        when,
    };
    let entry = shown.get(&key(one)).and_then(|endpoint| endpoint.entry(one));
    let unserved = facts.providers.unserved(one);
    if facts.lives(one) {
        if matches!(place, Place::Off | Place::Gone) {
            let when =
                "Kubernetes deletes the pods of a node that is gone; the controller frees the address after that";
            return Some(leak("its node is gone, its pod not yet".to_owned(), (By::Kubernetes, when.to_owned())));
        }
        let lonely = entry.is_none() && held.age(facts.now) > LONELY_SECONDS && facts.endpoints.is_ok();
        if let Some(server) = unserved.filter(|_| lonely) {
            let reason = format!("its pod waits for it: {}", providers::nobody_asks(server));
            return Some(leak(reason, (By::Nobody, providers::remedy(server, one))));
        }
        // A restart of its sandbox takes it up again; who releases it for its pod goes on by himself.
        let lonely = lonely && one.held() && !one.detached;
        let freed =
            || if one.provider.is_some() { bound(facts, held, one, &place, false) } else { agent(facts, one, &place) };
        return lonely.then(|| leak("no endpoint shows it".to_owned(), freed()));
    }
    if facts.retained.contains(&held.name) {
        return None;
    }
    let mut reason = match facts.uids(&key(one)) {
        [] => "its pod is gone or has ended".to_owned(),
        _ => "another pod has the name".to_owned(),
    };
    let releasing = providers::releasing(held, one, facts.now).map(|who| format!("being released by {who}"));
    for more in releasing.into_iter().chain(unserved.map(providers::nobody_asks)) {
        reason = format!("{reason}; {more}");
    }
    Some(leak(reason, who(facts, held, one, &place, entry.is_some())))
}

fn unreadable(kind: Kind, name: &str, why: &str) -> Leak {
    Leak {
        what: name.to_owned(),
        kind,
        pool: None,
        pod: String::new(),
        node: String::new(),
        reason: format!("cannot be read: {why}"),
        freed_by: By::Nobody,
        when: "when the object is mended; its address counts as taken until then".to_owned(),
    }
}

fn place<'f>(facts: &'f Facts, one: &Allocation) -> Place<'f> {
    if one.node.name.is_empty() {
        return Place::Nowhere;
    }
    let Ok(machines) = &facts.machines else { return Place::Unknown };
    match machines.get(&one.node.name).filter(|machine| machine.is(&one.node.uid, &one.node.machine_id)) {
        None => Place::Gone,
        Some(machine) if machine.out_of_service => Place::Off,
        Some(machine) => Place::Here(machine),
    }
}

fn who(facts: &Facts, held: &Held, one: &Allocation, place: &Place<'_>, shown: bool) -> (By, String) {
    let free = |abandon: bool| abandon || facts.providers.unserved(one).is_none();
    if let Some(request) = one.release_request.as_ref().filter(|request| free(request.abandon)) {
        let asks = match &one.provider {
            Some(binding) if !request.abandon => format!("; it asks {} first", binding.server),
            _ => String::new(),
        };
        return (By::Controller, format!("within seconds, if one leads: {} asked for its release{asks}", request.by));
    }
    if one.provider.is_some() {
        return bound(facts, held, one, place, shown);
    }
    match place {
        Place::Here(_) | Place::Unknown => agent(facts, one, place),
        Place::Nowhere if !facts.gc.enabled || facts.gc.dry_run => (
            By::Nobody,
            format!("ipam.gc.enabled is false, or ipam.gc.dryRun true: spiderpoolctl release {}", one.address),
        ),
        Place::Nowhere => (
            By::Controller,
            "when its pool has been taken over from the earlier system, for as long as ipam.gc.nodeGoneAfter says"
                .to_owned(),
        ),
        Place::Off | Place::Gone => {
            let needs = |why: &str| (By::Nobody, format!("{why}: spiderpoolctl release {}", one.address));
            if !one.held() {
                return needs("the agent that was releasing it is gone");
            }
            if !facts.gc.enabled || facts.gc.dry_run {
                return needs("ipam.gc.enabled is false, or ipam.gc.dryRun true");
            }
            if matches!(place, Place::Off) {
                return (By::Controller, "within a minute: the node is tainted out-of-service".to_owned());
            }
            let minutes = facts.gc.node_gone_after.as_secs() / 60;
            (By::Controller, format!("{minutes} minutes after the node went (ipam.gc.nodeGoneAfter)"))
        }
    }
}

pub(super) fn agent(facts: &Facts, one: &Allocation, place: &Place<'_>) -> (By, String) {
    let node = &one.node.name;
    let when = match (place, facts.agents.as_ref().map(|agents| agents.get(node))) {
        (Place::Here(machine), _) if !machine.ready => {
            format!("when node {node} is back: it is not ready; if it is off for good, delete its Node")
        }
        (_, Ok(Some(agent))) if agent.ready => "within five minutes".to_owned(),
        (_, Ok(Some(agent))) => format!("when the agent {} is ready", agent.pod),
        (_, Ok(None)) => format!("when an agent runs on node {node}; none does now"),
        (_, Err(_)) => "within five minutes, if the agent of its node works".to_owned(),
    };
    (By::Agent, when)
}

fn endpoint(facts: &Facts, held: &HashSet<Key>, shown: &Shown) -> Option<Leak> {
    let name = format!("{}/{}", shown.key.0, shown.key.1);
    let found = match &shown.what {
        Ok(found) => found,
        Err(why) => return Some(unreadable(Kind::Endpoint, &name, why)),
    };
    let old = shown.created.is_some_and(|created| facts.now.as_second() - created.as_second() > LONELY_SECONDS);
    if held.contains(&shown.key) || !old {
        return None;
    }
    let lives = facts.uids(&shown.key).contains(&found.pod.uid);
    if lives && found.interfaces.is_empty() {
        return None;
    }
    let (reason, (freed_by, when)) = if lives {
        let of: Vec<_> = found.interfaces.iter().flat_map(|entry| &entry.addresses).collect();
        let of: Vec<_> = of.iter().map(|shown| shown.address.to_string()).collect();
        let reason = format!("its pod lives and is shown with {}, which nobody holds", of.join(", "));
        let stays = (By::Nobody, "delete the pod, so that it gets an address of its own".to_owned());
        (reason, if facts.records { after_records() } else { stays })
    } else {
        ("its pod is gone, and nothing is held under its name".to_owned(), of_endpoint(facts, shown))
    };
    Some(Leak {
        what: name.clone(),
        kind: Kind::Endpoint,
        pool: None,
        pod: name,
        node: found.node.clone(),
        reason,
        freed_by,
        when,
    })
}

fn after_records() -> (By, String) {
    (By::Controller, "when the pools of the earlier system are taken over".to_owned())
}

fn of_endpoint(facts: &Facts, shown: &Shown) -> (By, String) {
    if let [first, ..] = shown.finalizers.as_slice() {
        return (By::Nobody, format!("somebody has to take finalizer {first} off"));
    }
    if shown.owned {
        return (By::Kubernetes, "its garbage collector deletes it with the pod".to_owned());
    }
    if facts.records {
        return after_records();
    }
    if !facts.gc.enabled || facts.gc.dry_run {
        return (By::Nobody, "set ipam.gc.enabled, and ipam.gc.dryRun to false".to_owned());
    }
    (By::Controller, "within two minutes".to_owned())
}
