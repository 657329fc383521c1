//! Pods of this node: which live, and which end. The addresses of those that end are looked at, whether or not a DEL came.

use super::live::{Known, Live, config_hash, is_terminal};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use runtime::{Chain, Pauses};
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};

/// As for the own Node.
const WATCH_SECONDS: u32 = 120;
const PAUSE_MIN: Duration = Duration::from_millis(200);
/// With that of the watch itself, half a minute too, the longest time in which a failed watch fails again.
const PAUSE_MAX: Duration = Duration::from_secs(30);
const PAGE: u32 = 50;

/// Keeps `known`, and tells the UID of each pod that has ended, or gone. One that finds no room is found by the slow look at
/// all.
pub(super) async fn watch(
    client: Client,
    node: &str,
    told: mpsc::Sender<String>,
    known: &watch::Sender<Known>,
) -> Infallible {
    let own =
        watcher::Config::default().fields(&format!("spec.nodeName={node}")).timeout(WATCH_SECONDS).page_size(PAGE);
    let mut events = std::pin::pin!(watcher(Api::<Pod>::all(client), own).default_backoff());
    let mut pauses = Pauses::new(PAUSE_MIN, PAUSE_MAX);
    let mut live = Live::default();
    loop {
        match events.next().await {
            Some(Ok(event)) => {
                live.shown(&event);
                live.tell(known);
                match event {
                    Event::Apply(pod) | Event::InitApply(pod) => {
                        pauses.reset();
                        if is_terminal(&pod) {
                            tell(&told, &pod);
                        }
                    }
                    Event::Delete(pod) => tell(&told, &pod),
                    Event::Init | Event::InitDone => {}
                }
            }
            Some(Err(error)) => {
                tracing::warn!(error = %Chain(&error), "cannot watch the node's pods; addresses of ended ones wait");
                live.failed(Instant::now());
                live.tell(known);
                sleep(pauses.pause()).await;
            }
            None => std::future::pending().await,
        }
    }
}

fn tell(told: &mpsc::Sender<String>, pod: &Pod) {
    for uid in pod.metadata.uid.iter().chain(config_hash(pod)) {
        let _ = told.try_send(uid.clone());
    }
}
