//! The labels of this node, watched.

use futures::StreamExt;
use k8s_api::selector::Labels;
use k8s_openapi::api::core::v1::Node;
use kube::core::PartialObjectMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use runtime::{Chain, Hold};
use std::convert::Infallible;
use tokio::sync::watch;

/// Latest labels of the Node named `name`, and the task that keeps them. `None` until the Node was seen once; after
/// that the last labels stay, whatever happens to the API server or the object.
pub(crate) fn watch(
    client: Client,
    name: String,
    seen: Hold,
) -> (watch::Receiver<Option<Labels>>, impl Future<Output = Result<(), Infallible>>) {
    let (labels, latest) = watch::channel(None);
    (latest, run(client, name, seen, labels))
}

async fn run(
    client: Client,
    name: String,
    seen: Hold,
    labels: watch::Sender<Option<Labels>>,
) -> Result<(), Infallible> {
    let own = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let mut events = std::pin::pin!(watcher(Api::<PartialObjectMeta<Node>>::all(client), own).default_backoff());
    let mut seen = Some(seen);
    let mut failing = String::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Apply(node) | Event::InitApply(node)) => {
                failing.clear();
                if let Some(hold) = seen.take() {
                    hold.release();
                }
                let now = node.metadata.labels.unwrap_or_default();
                labels.send_if_modified(|before| before.replace(now.clone()).as_ref() != Some(&now));
            }
            Ok(Event::Delete(_)) => {
                tracing::warn!(node = name, "the own Node was deleted; its last labels stay in force");
            }
            Ok(Event::InitDone) if seen.is_some() => {
                tracing::warn!(node = name, "no such Node yet; rules with a node selector wait for it");
            }
            Ok(Event::Init | Event::InitDone) => {}
            Err(error) => {
                let text = Chain(&error).to_string();
                if failing != text {
                    tracing::warn!(
                        node = name,
                        error = text,
                        "cannot watch the own Node; its last labels stay in force"
                    );
                    failing = text;
                }
            }
        }
    }
    unreachable!("a watcher starts over for ever")
}
