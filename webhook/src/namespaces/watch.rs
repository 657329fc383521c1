//! Keeps what is known of namespaces; of each it reads the metadata alone.

use super::facts::Facts;
use super::known::Namespaces;
use crate::resilient::{resilient, wanted};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Namespace;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, ResourceExt};
use runtime::Hold;
use std::collections::HashSet;
use std::convert::Infallible;
use tokio::sync::watch;

/// The latest of what is known, and the task that keeps it. `synced` is released once the list has been seen whole.
pub(crate) fn watch(client: Client, synced: Hold) -> (watch::Receiver<Namespaces>, impl Future<Output = Infallible>) {
    let (namespaces, latest) = watch::channel(Namespaces::default());
    (latest, run(client, namespaces, synced))
}

async fn run(client: Client, namespaces: watch::Sender<Namespaces>, synced: Hold) -> Infallible {
    let events = watcher::watcher(Api::<PartialObjectMeta<Namespace>>::all(client), wanted());
    let mut events = std::pin::pin!(resilient(events, "Namespaces"));
    let (mut listed, mut synced) = (HashSet::new(), Some(synced));
    loop {
        match events.next().await {
            Some(Some(event)) => keep(&namespaces, event, &mut listed, &mut synced),
            // Every cluster has namespaces.
            Some(None) => {}
            // A watcher goes on for ever.
            None => std::future::pending().await,
        }
    }
}

/// During a list the old entries stay in force; what the list does not show goes at its end.
fn keep(
    namespaces: &watch::Sender<Namespaces>,
    event: Event<PartialObjectMeta<Namespace>>,
    listed: &mut HashSet<String>,
    synced: &mut Option<Hold>,
) {
    let put = |object: &PartialObjectMeta<Namespace>| {
        let facts = Facts::of(&object.metadata);
        namespaces.send_modify(|known| known.put(object.name_any(), facts));
    };
    match event {
        Event::Init => listed.clear(),
        Event::InitApply(object) => {
            listed.insert(object.name_any());
            put(&object);
        }
        Event::InitDone => {
            namespaces.send_modify(|known| {
                known.keep(listed);
                known.synced = true;
            });
            if let Some(synced) = synced.take() {
                synced.release();
            }
        }
        Event::Apply(object) => put(&object),
        Event::Delete(object) => namespaces.send_modify(|known| known.remove(&object.name_any())),
    }
}
