//! Keeps the index of pools: their subnets and addresses; what earlier systems keep in the status is dropped at once.

use super::{Index, Known, Recent};
use crate::objects::ip_pool::Pool;
use crate::resilient::{RENEW_SECONDS, resilient};
use crate::usage::Shown;
use futures::StreamExt;
use k8s_api::crd::ip_pool::SpiderIPPool;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::DynamicObject;
use kube::core::ApiResource;
use kube::runtime::watcher::{self, Config, Event};
use kube::{Api, Client, ResourceExt};
use std::collections::BTreeSet;
use std::convert::Infallible;
use tokio::sync::watch;

/// The status of a pool of an earlier system has up to 1 MB: this many are in memory at a time.
const PAGE: u32 = 20;

/// The resource of SpiderIPPools.
pub(crate) fn pools() -> ApiResource {
    ApiResource::erase::<SpiderIPPool>(&())
}

/// What an event about a pool regards.
pub(crate) fn reference(name: &str, uid: &str) -> ObjectReference {
    let kind = pools();
    ObjectReference {
        api_version: Some(kind.api_version),
        kind: Some(kind.kind),
        name: Some(name.to_owned()),
        uid: Some(uid.to_owned()),
        ..ObjectReference::default()
    }
}

pub(super) fn read(object: &DynamicObject) -> Known {
    object.data.get("spec").and_then(Pool::of).map_or(Known::Unreadable, Known::Pool)
}

/// The latest index, and the task that keeps it.
pub(crate) fn watch(
    client: Client,
    recent: Recent<Pool>,
) -> (watch::Receiver<Index>, impl Future<Output = Infallible>) {
    let (index, latest) = watch::channel(Index::default());
    (latest, run(client, index, recent))
}

async fn run(client: Client, index: watch::Sender<Index>, recent: Recent<Pool>) -> Infallible {
    let wanted = Config::default().timeout(RENEW_SECONDS).page_size(PAGE);
    let events = watcher::watcher(Api::<DynamicObject>::all_with(client, &pools()), wanted);
    let mut events = std::pin::pin!(resilient(events, "SpiderIPPools"));
    let mut listed = BTreeSet::new();
    let put = |object: DynamicObject| {
        let (name, known, shown) = (object.name_any(), read(&object), Shown::of(&object));
        drop(object);
        index.send_if_modified(|index| {
            let changed = index.pools.get(&name) != Some(&known) || index.shown.get(&name) != Some(&shown);
            if changed {
                index.pools.insert(name.clone(), known.clone());
                index.shown.insert(name.clone(), shown);
            }
            changed
        });
        // After the index has it, so that there is no moment in which neither knows it.
        recent.seen(&name, known.pool());
        name
    };
    loop {
        match events.next().await {
            // During a list the old entries stay in force; what the list does not show goes at its end.
            Some(Some(Event::Init)) => listed.clear(),
            Some(Some(Event::InitApply(object))) => drop(listed.insert(put(object))),
            Some(Some(Event::InitDone)) => index.send_modify(|index| {
                index.pools.retain(|name, _| listed.contains(name));
                index.shown.retain(|name, _| listed.contains(name));
                index.synced = true;
            }),
            Some(Some(Event::Apply(object))) => drop(put(object)),
            Some(Some(Event::Delete(object))) => {
                let name = object.name_any();
                recent.seen(&name, None);
                index.send_modify(|index| {
                    index.pools.remove(&name);
                    index.shown.remove(&name);
                });
            }
            // Without the kind there are none.
            Some(None) => index.send_modify(|index| *index = Index { synced: true, ..Index::default() }),
            // A watcher goes on for ever.
            None => std::future::pending().await,
        }
    }
}
