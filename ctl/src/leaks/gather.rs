//! Reads everything, page by page.

use super::facts::{Facts, Key, Shown};
use crate::api::Server;
use crate::args::System;
use crate::fault::{Fault, NotSeen, Seen};
use crate::held::{self, Held};
use crate::looker::{self, looker};
use crate::progress::Progress;
use crate::providers::Providers;
use crate::{agents, conf, machines};
use futures::{StreamExt, stream};
use k8s_api::crd::endpoint::SpiderEndpoint;
use k8s_api::crd::ip_pool::{SpiderIPPool, has_records};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::Resource;
use kube::api::DynamicObject;
use kube::core::PartialObjectMeta;
use std::collections::{BTreeSet, HashMap};
use store::{Retained, Store, StoreError};

/// Requests at a time.
const AT_ONCE: usize = 16;
const HASH: &str = "kubernetes.io/config.hash";

pub(super) async fn gather(server: &Server, system: &System) -> Result<Facts, Fault> {
    let allocations = server.needed("list SpiderIPAllocations", held::list(server, "").await?)?;
    let (endpoints, conf, agents, machines, records) = futures::try_join!(
        endpoints(server),
        conf::read(server, system),
        agents::list(server, None),
        machines::all(server),
        records(server),
    )?;
    // The last: what was held for a pod before is judged by the pods of now.
    let pods = server.needed("list pods", pods(server).await?)?;
    let mut not_seen = Vec::new();
    let mut blind = |what: &str, why: Option<&NotSeen>| {
        not_seen.extend(why.map(|NotSeen(why)| format!("{what}: {why}")));
    };
    blind("configuration", conf.as_ref().err());
    blind("agents", agents.as_ref().err());
    blind("Nodes", machines.as_ref().err());
    blind("pools", records.as_ref().err());
    blind("endpoints", endpoints.as_ref().err());
    let kept = looker::retained(conf.as_ref().ok());
    let mut facts = Facts {
        now: Timestamp::now(),
        providers: Providers::of(conf.as_ref().ok()),
        gc: conf.map(|conf| conf.gc).unwrap_or_default(),
        allocations,
        pods,
        endpoints,
        machines: machines.map(|all| all.into_iter().map(|one| (one.name.clone(), one)).collect()),
        agents,
        retained: BTreeSet::new(),
        records: records.unwrap_or_default(),
        not_seen,
    };
    retained(server, kept, &mut facts).await?;
    Ok(facts)
}

/// Metadata of what has not ended: phases stand in the status, which a selector reads for us.
async fn pods(server: &Server) -> Result<Seen<HashMap<Key, Vec<String>>>, Fault> {
    let mut pods = HashMap::new();
    let take = |PartialObjectMeta { metadata, .. }: PartialObjectMeta<Pod>| {
        let hash = metadata.annotations.and_then(|mut all| all.remove(HASH));
        let uids = metadata.uid.into_iter().chain(hash).collect();
        pods.insert((metadata.namespace.unwrap_or_default(), metadata.name.unwrap_or_default()), uids);
    };
    let seen = server.each_metadata("/api/v1/pods", "status.phase!=Succeeded,status.phase!=Failed", take).await?;
    Ok(seen.map(|()| pods))
}

async fn endpoints(server: &Server) -> Result<Seen<Vec<Shown>>, Fault> {
    let mut all = Vec::new();
    let take = |object: DynamicObject| {
        let what = store::endpoint_of(&object);
        let metadata = object.metadata;
        all.push(Shown {
            key: (metadata.namespace.unwrap_or_default(), metadata.name.unwrap_or_default()),
            created: metadata.creation_timestamp.map(|time| time.0),
            owned: metadata.owner_references.iter().flatten().any(|owner| owner.kind == "Pod"),
            finalizers: metadata.finalizers.unwrap_or_default(),
            what,
        });
    };
    let seen = server.each(&SpiderEndpoint::url_path(&(), None), "", "", take).await?;
    Ok(seen.map(|()| all))
}

/// Whether a pool has records of an earlier system.
async fn records(server: &Server) -> Result<Seen<bool>, Fault> {
    let mut records = false;
    let take = |object: DynamicObject| {
        let text = object.data.pointer("/status/allocatedIPs").and_then(|text| text.as_str());
        records |= text.is_some_and(has_records);
    };
    let seen = server.each(&SpiderIPPool::url_path(&(), None), "", "", take).await?;
    Ok(seen.map(|()| records))
}

/// Of those whose pod is gone, which are kept for the pod's name.
async fn retained(server: &Server, kept: Retained, facts: &mut Facts) -> Result<(), Fault> {
    let store = looker(server, kept);
    let suspects = facts.allocations.iter().filter(|held: &&Held| {
        held.what.as_ref().is_ok_and(|one| !facts.lives(one) && one.owner.as_ref().is_some_and(store::Owner::retains))
    });
    let asks: Vec<_> = suspects.cloned().collect();
    let looks = asks.into_iter().filter_map(|held| {
        let (one, store) = (held.what.ok()?, store.clone());
        Some(async move {
            let owner = one.owner.unwrap_or_default();
            (held.name, store.retained(&one.pod.namespace, &owner, &one.pod.name).await)
        })
    });
    let mut looks = stream::iter(looks).buffer_unordered(AT_ONCE);
    let (mut progress, mut count) = (Progress::new("looking at StatefulSets"), 0_usize);
    let mut refused = None;
    while let Some((name, found)) = looks.next().await {
        match found {
            Ok(true) => {
                facts.retained.insert(name);
            }
            Ok(false) | Err(StoreError::Gone) => {}
            Err(StoreError::Refused(why)) => {
                // Nobody knows, so it is not said that it is left behind.
                facts.retained.insert(name);
                refused = Some(why);
            }
            Err(error) => return Err(server.failed("look at the controllers of pods", error)),
        }
        count += 1;
        progress.at(&format!("{count} so far"));
    }
    facts.not_seen.extend(refused.map(|why| format!("StatefulSets and virtual machines: {why}")));
    Ok(())
}
