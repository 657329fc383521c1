//! This node's Node object, watched.

use futures::StreamExt;
use k8s_api::selector::Labels;
use k8s_openapi::api::core::v1::Node;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use runtime::{Chain, Hold, Pauses};
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// What the agent needs of the object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnNode {
    pub(crate) uid: String,
    /// The machine behind it, as its kubelet says.
    pub(crate) machine_id: String,
    pub(crate) labels: Labels,
    /// `v1.36.3`.
    pub(crate) kubelet_version: String,
}

impl From<Node> for OwnNode {
    fn from(node: Node) -> Self {
        let info = node.status.and_then(|status| status.node_info);
        Self {
            uid: node.metadata.uid.unwrap_or_default(),
            machine_id: info.as_ref().map(|info| info.machine_id.clone()).unwrap_or_default(),
            labels: node.metadata.labels.unwrap_or_default(),
            kubelet_version: info.map(|info| info.kubelet_version).unwrap_or_default(),
        }
    }
}

/// The Node named `name` as last seen, and the task that keeps it. `None` until it was seen once; after that the last
/// state stays, whatever happens to the API server or the object.
pub(crate) fn watch(
    client: Client,
    name: String,
    seen: Hold,
) -> (watch::Receiver<Option<OwnNode>>, impl Future<Output = Result<(), Infallible>>) {
    let (node, latest) = watch::channel(None);
    (latest, run(client, name, seen, node))
}

/// A connection that died without a word is noticed when its watch should have ended: a change of labels is late by no
/// more than this.
const WATCH_SECONDS: u32 = 120;

const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(30);

async fn run(
    client: Client,
    name: String,
    seen: Hold,
    latest: watch::Sender<Option<OwnNode>>,
) -> Result<(), Infallible> {
    let own = watcher::Config::default().fields(&format!("metadata.name={name}")).timeout(WATCH_SECONDS);
    let mut events = std::pin::pin!(watcher(Api::<Node>::all(client), own).default_backoff());
    let mut seen = Some(seen);
    let mut failing = String::new();
    let mut pauses = Pauses::new(PAUSE_MIN, PAUSE_MAX);
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Apply(node) | Event::InitApply(node)) => {
                failing.clear();
                pauses.reset();
                if let Some(hold) = seen.take() {
                    hold.release();
                }
                let now = OwnNode::from(node);
                latest.send_if_modified(|before| before.replace(now.clone()).as_ref() != Some(&now));
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
                    let labels = if seen.is_some() { "not known yet" } else { "as last seen" };
                    tracing::warn!(node = name, labels, error = text, "cannot watch the own Node");
                    failing = text;
                }
                // The watcher's own pauses start over with each try; a thousand agents without rights must not.
                sleep(pauses.pause()).await;
            }
        }
    }
    unreachable!("a watcher starts over for ever")
}
