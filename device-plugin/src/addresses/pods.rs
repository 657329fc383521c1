//! Pods of this node that end: their addresses are looked at, whether or not a DEL came.

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use runtime::{Chain, Pauses};
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::sleep;

/// As for the own Node.
const WATCH_SECONDS: u32 = 120;
const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(30);
const PAGE: u32 = 50;

/// Tells the UID of each pod that has ended, or gone. One that finds no room is found by the slow look at all.
pub(super) async fn ended(client: Client, node: &str, told: mpsc::Sender<String>) -> Infallible {
    let own =
        watcher::Config::default().fields(&format!("spec.nodeName={node}")).timeout(WATCH_SECONDS).page_size(PAGE);
    let mut events = std::pin::pin!(watcher(Api::<Pod>::all(client), own).default_backoff());
    let mut pauses = Pauses::new(PAUSE_MIN, PAUSE_MAX);
    loop {
        match events.next().await {
            Some(Ok(Event::Apply(pod) | Event::InitApply(pod))) => {
                pauses.reset();
                if is_terminal(&pod) {
                    tell(&told, &pod);
                }
            }
            Some(Ok(Event::Delete(pod))) => tell(&told, &pod),
            Some(Ok(Event::Init | Event::InitDone)) => {}
            Some(Err(error)) => {
                tracing::warn!(error = %Chain(&error), "cannot watch the node's pods; addresses of ended ones wait");
                sleep(pauses.pause()).await;
            }
            None => std::future::pending().await,
        }
    }
}

fn is_terminal(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// Static pods are known by the hash of their files.
fn tell(told: &mpsc::Sender<String>, pod: &Pod) {
    const HASH: &str = "kubernetes.io/config.hash";
    let hash = pod.metadata.annotations.as_ref().and_then(|annotations| annotations.get(HASH));
    for uid in pod.metadata.uid.iter().chain(hash) {
        let _ = told.try_send(uid.clone());
    }
}
