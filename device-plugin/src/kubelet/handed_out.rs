//! Devices that the kubelet was given (`Allocate`) and may not list yet.

use super::in_use::{Ids, Listed};
use k8s_api::resource::ResourceName;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// Devices that were handed out a moment ago, which the kubelet does not list yet. Cheap to clone: the sessions add to it,
/// the advertiser reads it with each pass, so that no count takes away what was just given.
#[derive(Clone, Debug, Default)]
pub(crate) struct HandedOut {
    fresh: Arc<Mutex<VecDeque<Fresh>>>,
    wake: Arc<Notify>,
}

#[derive(Debug)]
struct Fresh {
    at: Instant,
    resource: String,
    ids: Vec<String>,
}

/// An answer that was asked for this long after an `Allocate` has the device if a pod still holds it. Until there is one,
/// the `Allocate` counts.
pub(super) const FRESH: Duration = Duration::from_secs(15);
/// More calls than a node has pods; the oldest go first, and the kubelet lists those by then.
const FRESH_MAX: usize = 4096;
impl HandedOut {
    /// The kubelet is being given these.
    pub(crate) fn note(&self, resource: &ResourceName, ids: Vec<String>) {
        let mut fresh = self.fresh();
        if fresh.len() == FRESH_MAX {
            fresh.pop_front();
        }
        fresh.push_back(Fresh { at: Instant::now(), resource: resource.to_string(), ids });
        self.wake.notify_one();
    }

    /// What is in use: listed by the kubelet, or handed out too short ago to be.
    ///
    /// What was handed out is read first. It is let go only after the answer that stands in for it was published, so
    /// nothing is missed in between.
    pub(crate) fn in_use(&self, latest: &mut watch::Receiver<Option<Listed>>) -> Ids {
        let handed_out: Vec<(String, Vec<String>)> =
            self.fresh().iter().map(|fresh| (fresh.resource.clone(), fresh.ids.clone())).collect();
        let mut in_use = latest.borrow_and_update().as_ref().map(|listed| Ids::clone(&listed.ids)).unwrap_or_default();
        for (resource, ids) in handed_out {
            in_use.entry(resource).or_default().extend(ids);
        }
        in_use
    }

    /// Lets go of what was handed out so long before `asked`, when the kubelet was asked, that its answer stands in for
    /// it. Whether there was such.
    pub(super) fn expire(&self, asked: Instant) -> bool {
        let mut fresh = self.fresh();
        let before = fresh.len();
        fresh.retain(|one| asked.saturating_duration_since(one.at) < FRESH);
        fresh.len() < before
    }

    /// A pod has gone: the kubelet is asked soon, as after an `Allocate`, which devices are in use now.
    pub(crate) fn ask_soon(&self) {
        self.wake.notify_one();
    }

    /// Waits until something is handed out, or is to be asked for.
    pub(super) async fn more(&self) {
        self.wake.notified().await;
    }

    /// When the first of them was handed out.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.fresh().front().map(|fresh| fresh.at)
    }

    fn fresh(&self) -> MutexGuard<'_, VecDeque<Fresh>> {
        // An entry is whole once it is pushed, so a panic elsewhere leaves nothing half-written.
        self.fresh.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
