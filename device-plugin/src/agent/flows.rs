//! Flows on behalf of plugins: bounded, tracked, longer-lived than their callers.

use super::answer;
use super::ipam::{Asked, Ipam};
use super::progress::{Progress, noted};
use ipam_core::{AddError, Answer, Del, Failed, NotYet};
use proto::agent::Fault;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// A node has some hundred pods; more at once are a runtime that repeats itself. One pool has 288 of them at the most (ipam-core,
/// `places`), so that seven have to be stuck before others are refused.
pub(super) const ADDS: usize = 2048;
const DELS: usize = 256;
/// Each looks at all allocations of the node.
const GCS: usize = 1;
/// A runtime tears sandboxes down one interface after the other.
const DEL: Duration = Duration::from_secs(5);
/// Without the API server waiting longer changes nothing.
const DEL_UNREADY: Duration = Duration::from_secs(2);
/// What is kept of a caller's time, so that it hears from us what took it: a tenth, half a second at the most.
const TELLING: Duration = Duration::from_millis(500);

/// Starts flows and knows which run.
pub(super) struct Flows<I> {
    ipam: Arc<I>,
    adds: Arc<Semaphore>,
    dels: Arc<Semaphore>,
    gcs: Arc<Semaphore>,
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl<I> Clone for Flows<I> {
    fn clone(&self) -> Self {
        let Self { ipam, adds, dels, gcs, tracker, stop } = self;
        Self {
            ipam: ipam.clone(),
            adds: adds.clone(),
            dels: dels.clone(),
            gcs: gcs.clone(),
            tracker: tracker.clone(),
            stop: stop.clone(),
        }
    }
}

impl<I: Ipam> Flows<I> {
    pub(super) fn new(ipam: Arc<I>, stop: CancellationToken) -> Self {
        let tracker = TaskTracker::new();
        tracker.close();
        let [adds, dels, gcs] = [ADDS, DELS, GCS].map(|most| Arc::new(Semaphore::new(most)));
        Self { ipam, adds, dels, gcs, tracker, stop }
    }

    pub(super) fn ipam(&self) -> &I {
        &self.ipam
    }

    /// The answer, if there is one while the caller waits: until `left` from `since` on. The flow runs to its end either way.
    pub(super) async fn add(&self, asked: Asked, since: Instant, left: Duration) -> Result<Answer, Fault> {
        if self.stop.is_cancelled() {
            return Err(answer::again("the node agent is stopping"));
        }
        let Ok(permit) = self.adds.clone().try_acquire_owned() else {
            return Err(answer::fault(&AddError::NotYet(NotYet::Busy)));
        };
        let ipam = self.ipam.clone();
        let (tell, answered) = oneshot::channel();
        let progress = Arc::new(Progress::default());
        let noting = Arc::clone(&progress);
        self.tracker.spawn(async move {
            let (pod, interface) = (asked.add.pod.clone(), asked.add.interface.clone());
            let ended = noted(noting, ipam.add(asked)).await;
            drop(permit);
            let (namespace, name) = (pod.namespace, pod.name);
            let undo = match ended {
                Ok(entry) => {
                    let addresses: Vec<String> = entry.addresses.iter().map(|ip| ip.address.to_string()).collect();
                    tracing::info!(namespace, name, interface, ?addresses, "a pod has its addresses");
                    let _ = tell.send(Ok(entry));
                    None
                }
                Err(Failed { error, undo }) => {
                    let text = runtime::Chain(&error).to_string();
                    tracing::warn!(namespace, name, interface, error = text, "a pod gets no address");
                    let _ = tell.send(Err(error));
                    undo
                }
            };
            if let Some(undo) = undo {
                ipam.undo(undo).await;
            }
        });
        let until = since + left.saturating_sub(TELLING.min(left / 10));
        match timeout_at(until, answered).await {
            Ok(Ok(ended)) => ended.map_err(|error| answer::fault(&error)),
            Ok(Err(_)) => {
                tracing::error!("an ADD was cut off");
                Err(answer::failed("a fault of the node agent; its log says more".to_owned()))
            }
            Err(_) => Err(answer::again(&format!(
                "parent budget exhausted: {progress}; cancelled by parent context deadline ({left:.0?})"
            ))),
        }
    }

    /// Returns when the flow has ended or has taken as long as a runtime should wait; it runs to its end either way. What
    /// is not begun, reconciling finds.
    pub(super) async fn del(&self, del: Del) {
        let Ok(permit) = self.dels.clone().try_acquire_owned() else {
            tracing::warn!(container = del.container_id, "too many DELs; this one is left to reconciling");
            return;
        };
        let patience = if self.ipam.ready().is_ok() { DEL } else { DEL_UNREADY };
        let ipam = self.ipam.clone();
        let (container, interface) = (del.container_id.clone(), del.interface.clone());
        let flow = self.tracker.spawn(async move {
            ipam.del(del).await;
            drop(permit);
        });
        match timeout(patience, flow).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(container, interface, %error, "a DEL was cut off"),
            Err(_) => tracing::info!(container, interface, "a DEL goes on without its caller"),
        }
    }

    /// What it has begun it ends, whether or not its caller waits.
    pub(super) async fn gc(&self, network: String, in_use: Vec<Del>) -> Result<(), Fault> {
        if self.stop.is_cancelled() {
            return Err(answer::again("the node agent is stopping"));
        }
        let Ok(permit) = self.gcs.clone().try_acquire_owned() else {
            return Err(answer::again("another GC is still running"));
        };
        let ipam = self.ipam.clone();
        let flow = self.tracker.spawn(async move {
            let ended = ipam.gc(network, in_use).await;
            drop(permit);
            ended
        });
        match flow.await {
            Ok(ended) => ended.map_err(answer::failed),
            Err(error) => {
                tracing::error!(%error, "a GC was cut off");
                Err(answer::failed("a fault of the node agent; its log says more".to_owned()))
            }
        }
    }

    pub(super) fn running(&self) -> usize {
        self.tracker.len()
    }

    pub(super) async fn ended(&self) {
        self.tracker.wait().await;
    }
}
