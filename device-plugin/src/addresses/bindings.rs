//! The cloud's bindings on this node that no live pod holds: being released, of unknown outcome, or kept for a StatefulSet.
//!
//! ```text
//! index of allocations ──┐
//! pods of this node ─────┴──> Absences ──> how many ──> advertise: as many devices fewer
//! ```
//!
//! Each takes a slot of the node, and no pod's request stands for it. The scheduler would promise that slot to another pod.

use super::Addresses;
use super::live::Known;
use ipam_core::{Allocation, Store};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// A binding counts once its pod has not been there for this long. The allocation of a pod that starts may be seen before the
/// pod is; and when a pod ends, its release mostly follows at once. Neither shall move devices to and fro. The kubelet tells
/// the API server of changes every 10 s, so that this makes little difference to the scheduler.
const SETTLE: Duration = Duration::from_secs(2);
/// A watch of the pods that failed and shows nothing since works again if it has not failed anew for so long: a minute of
/// pauses, and half of one for a connection.
const DOUBT: Duration = Duration::from_secs(90);

/// Keeps the count.
pub(super) async fn count(addresses: &Addresses, count: &watch::Sender<u32>) -> Infallible {
    let Addresses { store, node, pods, .. } = addresses;
    let mut pods = pods.subscribe();
    let mut absences = Absences::default();
    let mut edition = 0;
    loop {
        let machine = node.borrow().as_ref().map(|node| node.machine_id.clone()).unwrap_or_default();
        let known = pods.borrow_and_update().clone();
        let all = store.all();
        let bound = all.iter().map(|one| &one.value).filter(|one| takes_slot(one, &machine));
        let found = absences.look(bound.map(|one| one.pod.uid.as_str()), &known, Instant::now());
        count.send_if_modified(|before| std::mem::replace(before, found.count) != found.count);
        let due = async {
            match found.next {
                Some(next) => sleep_until(next).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            now = store.changed_since(edition) => edition = now,
            // The sender lives as long as these addresses.
            Ok(()) = pods.changed() => {}
            () = due => {}
        }
    }
}

/// Whether the cloud may have bound it to this machine. (Another one that had the Node's name before had slots of its own.)
fn takes_slot(allocation: &Allocation, machine: &str) -> bool {
    let on = &allocation.node.machine_id;
    allocation.provider.is_some() && (on.is_empty() || on == machine)
}

/// What one look has found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Found {
    /// Bindings that no live pod holds.
    count: u32,
    /// When another one counts unless something changes.
    next: Option<Instant>,
}

/// Pods of bindings that are not there. Has no more entries than the node has bindings.
#[derive(Debug, Default)]
struct Absences {
    /// By UID, from when on its bindings count.
    due: BTreeMap<String, Instant>,
}

impl Absences {
    /// Looks at all bindings, of which `bound` has the pods' UIDs, one for each.
    ///
    /// Nothing counts before the pods have been listed. While the watch of the pods may be failing, nothing more counts than
    /// did before: pods that it does not show may be there.
    fn look<'a>(&mut self, bound: impl Iterator<Item = &'a str>, known: &Known, now: Instant) -> Found {
        let before = std::mem::take(&mut self.due);
        let Some(live) = &known.live else { return Found::default() };
        let doubt = known.failed.map(|failed| failed + DOUBT).filter(|end| *end > now);
        let latest = doubt.unwrap_or(now) + SETTLE;
        let mut found = Found::default();
        for uid in bound.filter(|uid| !live.contains(*uid)) {
            let due = match before.get(uid) {
                Some(due) if *due <= now => *due,
                Some(due) if doubt.is_none() => latest.min(*due),
                _ => latest,
            };
            if due <= now {
                found.count = found.count.saturating_add(1);
            } else {
                found.next = Some(found.next.map_or(due, |next| next.min(due)));
            }
            self.due.insert(uid.to_owned(), due);
        }
        found
    }
}

#[cfg(test)]
mod tests;
