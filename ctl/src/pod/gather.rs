//! Reads what there is to know.

use super::facts::{Facts, Occurred};
use super::mentions::{Mention, mentions};
use super::network::{Config, Definition, Network};
use super::wanted::wanted;
use crate::api::Server;
use crate::args::System;
use crate::fault::{Fault, Seen};
use crate::looker::{self, looker};
use crate::machines::{self, Machine};
use crate::{agents, conf, held, pools, requests};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_api::conf::{Conf, Multus};
use k8s_api::crd::endpoint::SpiderEndpoint;
use k8s_api::crd::multus_config::SpiderMultusConfig;
use k8s_api::names::DOMAIN;
use k8s_openapi::api::core::v1::{Event, Namespace, Pod};
use k8s_openapi::jiff::Timestamp;
use kube::Resource;
use kube::api::DynamicObject;
use std::collections::{BTreeMap, BTreeSet};
use store::{Ranges, Store, StoreError};

/// Nodes whose pods are counted, of those that offer what a pod waits for: each costs a list.
const NODES: usize = 16;
/// Requests at a time.
const AT_ONCE: usize = 8;
const EVENTS: usize = 50;

pub(super) async fn gather(server: &Server, system: &System, namespace: &str, name: &str) -> Result<Facts, Fault> {
    let pod_path = format!("/api/v1/namespaces/{namespace}/pods");
    let pod = server.get::<Pod>(&pod_path, name).await?;
    let pod = server.needed("get pods", pod)?;
    let of_name = format!("spec.pod.name={name}");
    let endpoint_path = SpiderEndpoint::url_path(&(), Some(namespace));
    let (of_namespace, conf, endpoint, allocations, events, known) = futures::try_join!(
        server.get::<Namespace>("/api/v1/namespaces", namespace),
        conf::read(server, system),
        server.get::<DynamicObject>(&endpoint_path, name),
        held::list(server, &of_name),
        events(server, namespace, name),
        pools::list(server),
    )?;
    let of_this = |held: &held::Held| held.what.as_ref().map_or(true, |one| one.pod.namespace == namespace);
    let allocations = allocations.map(|all| all.into_iter().filter(of_this).collect::<Vec<_>>());
    let default = Conf::default();
    let multus = &conf.as_ref().unwrap_or(&default).multus;
    let networks = networks(server, pod.as_ref(), namespace, multus).await?;
    let uid = pod.as_ref().and_then(|pod| pod.metadata.uid.clone());
    let mut facts = Facts {
        now: Timestamp::now(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        pod,
        of_namespace,
        system_namespace: system.namespace.clone(),
        conf,
        networks,
        pools: known,
        free: BTreeMap::new(),
        nodes: Ok(Vec::new()),
        more_nodes: 0,
        requested: BTreeMap::new(),
        agents: Ok(BTreeMap::new()),
        retained: BTreeSet::new(),
        allocations,
        endpoint: endpoint.map(|found| found.as_ref().map(store::endpoint_of)),
        events: events.map(|all| of_uid(all, uid.as_deref())),
    };
    facts.free = free(server, &facts).await?;
    facts.retained = retained(server, &facts).await?;
    nodes(server, &mut facts).await?;
    Ok(facts)
}

async fn networks(server: &Server, pod: Option<&Pod>, namespace: &str, multus: &Multus) -> Result<Vec<Network>, Fault> {
    let all: Vec<Mention> = pod.map(|pod| mentions(pod, namespace, multus).all).unwrap_or_default();
    let possible = all.iter().filter(|mention| mention.reference.is_possible());
    let namespaces: BTreeSet<String> = possible.map(|mention| mention.reference.namespace.clone()).collect();
    let configs = namespaces.into_iter().map(|namespace| async move {
        let path = SpiderMultusConfig::url_path(&(), Some(&namespace));
        let found = server.list::<DynamicObject>(&path, "", "").await?;
        let read = |all: Vec<DynamicObject>| all.iter().map(Config::read).collect::<BTreeMap<_, _>>();
        Ok::<_, Fault>((namespace, found.map(read)))
    });
    let configs: BTreeMap<String, Seen<BTreeMap<String, Config>>> =
        stream::iter(configs).buffered(AT_ONCE).try_collect().await?;
    let found = all.into_iter().map(|mention| {
        let config = match configs.get(&mention.reference.namespace) {
            Some(Ok(all)) => Ok(all.get(&mention.reference.name).cloned()),
            Some(Err(why)) => Err(why.clone()),
            None => Ok(None),
        };
        async move {
            let definition = if mention.reference.is_possible() {
                let (namespace, name) = (&mention.reference.namespace, &mention.reference.name);
                let path = format!("/apis/k8s.cni.cncf.io/v1/namespaces/{namespace}/network-attachment-definitions");
                let found = server.get::<DynamicObject>(&path, name).await?;
                found.map(|found| found.as_ref().map(Definition::read))
            } else {
                Ok(None)
            };
            Ok::<_, Fault>(Network { mention, config, definition })
        }
    });
    stream::iter(found).buffered(AT_ONCE).try_collect().await
}

async fn events(server: &Server, namespace: &str, name: &str) -> Result<Seen<Vec<Event>>, Fault> {
    let path = format!("/api/v1/namespaces/{namespace}/events");
    server.list::<Event>(&path, &format!("involvedObject.kind=Pod,involvedObject.name={name}"), "").await
}

fn of_uid(all: Vec<Event>, uid: Option<&str>) -> Vec<Occurred> {
    let mine = all.into_iter().filter(|event| uid.is_none() || event.involved_object.uid.as_deref() == uid);
    let read = |event: Event| {
        let series = event.series.and_then(|series| series.last_observed_time).map(|time| time.0);
        let at = series.or(event.last_timestamp.map(|time| time.0)).or(event.event_time.map(|time| time.0));
        Occurred {
            warning: event.type_.as_deref() == Some("Warning"),
            reason: event.reason.unwrap_or_default(),
            message: event.message.unwrap_or_default(),
            at,
        }
    };
    let mut all: Vec<_> = mine.map(read).collect();
    all.sort_by_key(|event| std::cmp::Reverse(event.at));
    all.truncate(EVENTS);
    all
}

/// How much is left in the pools that the pod may use.
async fn free(server: &Server, facts: &Facts) -> Result<BTreeMap<String, Seen<u128>>, Fault> {
    let names: BTreeSet<String> =
        wanted(facts).into_iter().flat_map(|one| one.families).flat_map(|one| one.pools).collect();
    if names.is_empty() {
        return Ok(BTreeMap::new());
    }
    let reserved = pools::reserved(server).await?.unwrap_or_default();
    let known = facts.pools.as_ref().map(Vec::as_slice).unwrap_or_default();
    let wanted = known.iter().filter(|pool| names.contains(&pool.name));
    let counts = wanted.map(|pool| {
        let reserved: &Ranges = &reserved;
        async move {
            let mut taken = Vec::new();
            let take = |object: DynamicObject| {
                taken.extend(object.metadata.name.as_deref().and_then(store::address_of));
            };
            let seen = server.each_metadata(&held::path(), &format!("spec.pool={}", pool.name), take).await?;
            Ok::<_, Fault>((pool.name.clone(), seen.map(|()| pool.free(reserved, &taken))))
        }
    });
    stream::iter(counts).buffered(AT_ONCE).try_collect().await
}

/// Which allocations are kept for the pod's name, whoever has it now.
async fn retained(server: &Server, facts: &Facts) -> Result<BTreeSet<String>, Fault> {
    let mut retained = BTreeSet::new();
    let store = looker(server, looker::retained(facts.conf.as_ref().ok()));
    for held in facts.allocations.iter().flatten() {
        let Ok(one) = &held.what else { continue };
        let Some(owner) = one.owner.as_ref().filter(|owner| owner.retains()) else { continue };
        // Who may not ask is told that the pod is gone, and no more.
        match store.retained(&one.pod.namespace, owner, &one.pod.name).await {
            Ok(true) => {
                retained.insert(held.name.clone());
            }
            Ok(false) | Err(StoreError::Refused(_) | StoreError::Gone) => {}
            Err(error) => return Err(server.failed("look at the pod's controller", error)),
        }
    }
    Ok(retained)
}

/// The pod's node; or, where it waits for one, those that offer what it asks for.
async fn nodes(server: &Server, facts: &mut Facts) -> Result<(), Fault> {
    let Some(pod) = facts.pod.as_ref() else { return Ok(()) };
    let asked: Vec<String> = requests::of(pod).into_keys().filter(|name| name.starts_with(DOMAIN)).collect();
    if let Some(node) = facts.node().map(str::to_owned) {
        let (found, agents) = futures::try_join!(machines::one(server, &node), agents::list(server, Some(&node)))?;
        facts.nodes = found.map(|found| found.into_iter().collect());
        facts.agents = agents;
    } else if !asked.is_empty() && !facts.has_ended() {
        let offers = |machine: &Machine| asked.iter().any(|name| machine.allocatable.get(name).is_some_and(|n| *n > 0));
        let found: Seen<Vec<Machine>> =
            machines::all(server).await?.map(|all| all.into_iter().filter(offers).collect());
        facts.more_nodes = found.as_ref().map_or(0, |all| all.len().saturating_sub(NODES));
        facts.nodes = found.map(|all| all.into_iter().take(NODES).collect());
    }
    if asked.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = facts.nodes.iter().flatten().map(|machine| machine.name.clone()).collect();
    let counts = names.into_iter().map(|node| async move {
        let counted = machines::requested(server, &node).await?;
        Ok::<_, Fault>((node, counted))
    });
    facts.requested = stream::iter(counts).buffered(AT_ONCE).try_collect().await?;
    Ok(())
}
