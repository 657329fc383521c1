//! Follows the three kinds; what is known stays in force whatever happens to the API server.

use super::known::{Followed, Known, Pools, Reserved};
use futures::{Stream, StreamExt};
use k8s_api::crd::ip_pool::SpiderIPPool;
use k8s_api::crd::reserved_ip::SpiderReservedIP;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Config, Event, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use runtime::{Chain, Hold, Pauses};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// A connection that died without a word is noticed when its watch should have ended.
const WATCH_SECONDS: u32 = 120;
const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// The status of a pool of an earlier system has up to 1 MB: this many are in memory at a time.
const PAGE: u32 = 20;

/// The latest, and the task that keeps it. `seen` is released once both lists have been seen whole; `own_namespace` is
/// that of attachments that a pool names without one.
pub(crate) fn watch(
    client: Client,
    own_namespace: String,
    seen: Hold,
) -> (watch::Receiver<Known>, impl Future<Output = Result<(), Infallible>>) {
    let (known, latest) = watch::channel(Known::default());
    let mut whole = known.subscribe();
    let task = async move {
        let wanted = || Config::default().timeout(WATCH_SECONDS);
        let pools = watcher(Api::<SpiderIPPool>::all(client.clone()), wanted().page_size(PAGE));
        let reserved = watcher(Api::<SpiderReservedIP>::all(client), wanted());
        let release = async {
            if whole.wait_for(Known::is_whole).await.is_ok() {
                seen.release();
            }
            std::future::pending().await
        };
        tokio::select! {
            never = follow(&known, pools, |pool| Pools(pool, own_namespace.clone())) => match never {},
            never = follow(&known, reserved, Reserved) => match never {},
            never = release => never,
        }
    };
    (latest, task)
}

async fn follow<O: Resource + Clone, K: Followed>(
    known: &watch::Sender<Known>,
    events: impl Stream<Item = Result<Event<O>, watcher::Error>>,
    of: impl Fn(O) -> K,
) -> Infallible {
    let mut events = std::pin::pin!(events.default_backoff());
    let (mut listed, mut failing) = (BTreeSet::new(), String::new());
    let mut pauses = Pauses::new(PAUSE_MIN, PAUSE_MAX);
    while let Some(event) = events.next().await {
        match event {
            // During a list the old entries stay in force; what the list does not show goes at its end.
            Ok(Event::Init) => listed.clear(),
            Ok(Event::InitApply(object)) => {
                listed.insert(object.name_any());
                known.send_modify(|known| K::put(known, object.name_any(), of(object)));
            }
            Ok(Event::InitDone) => {
                pauses.reset();
                failing.clear();
                known.send_modify(|known| known.keep::<K>(&std::mem::take(&mut listed)));
            }
            Ok(Event::Apply(object)) => known.send_modify(|known| K::put(known, object.name_any(), of(object))),
            Ok(Event::Delete(object)) => known.send_modify(|known| K::remove(known, &object.name_any())),
            Err(error) => {
                let text = Chain(&error).to_string();
                if failing != text {
                    tracing::warn!(error = text, "cannot watch {}; what is known stays in force", K::WHAT);
                    failing = text;
                }
                // The watcher's own pauses start over with each try; a thousand agents without rights must not.
                sleep(pauses.pause()).await;
            }
        }
    }
    unreachable!("a watcher starts over for ever")
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::client::Body;
    use serde_json::json;

    /// An API server without objects.
    fn empty() -> Client {
        let answer = |request: http::Request<Body>| async move {
            if request.uri().query().is_some_and(|query| query.contains("watch=true")) {
                std::future::pending::<()>().await;
            }
            let list = json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": "1"}, "items": []});
            Ok::<_, Infallible>(http::Response::new(Body::from(list.to_string().into_bytes())))
        };
        Client::new(tower::service_fn(answer), "default")
    }

    #[tokio::test]
    async fn is_whole_after_three_lists() {
        let gate = runtime::Gate::default();
        let (mut latest, task) = watch(empty(), "kube-system".to_owned(), gate.hold("pools"));
        tokio::select! {
            whole = latest.wait_for(Known::is_whole) => assert!(whole.is_ok()),
            ended = task => panic!("{ended:?}"),
        }
    }
}
