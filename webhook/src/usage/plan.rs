//! The next step for one pool, as a function of what is known.

use super::ledger::Ledger;
use super::shown::Shown;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;
use tokio::time::Instant;

/// Between two writes of the same kind of news.
pub(super) const EVERY: Duration = Duration::from_secs(10);
/// An agent that has not heard of the deletion may still give an address; watches are faster than this.
const QUIET: Duration = Duration::from_secs(2);
/// Condition of a pool that is being deleted: whether it can go.
pub(super) const RELEASED: &str = "AddressesReleased";
/// Pods that a message names.
const PODS: usize = 5;

/// What is said of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) allocated: i64,
    pub(super) total: i64,
    /// Why its deletion waits, and for what.
    pub(super) waits: Option<String>,
}

/// One write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Hold the pool from now on, so that its deletion waits for its addresses.
    Guard,
    /// Say how it stands.
    Tell(Said),
    /// Nobody has an address any more: it may go.
    LetGo,
}

/// What is to be done, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Now(Step),
    At(Instant),
    Nothing,
}

/// What this process remembers of a pool.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// What it last said, and when; the watch may not show it yet.
    pub(super) told: Option<(Instant, Said)>,
    /// Since when it sees it being deleted with nothing left.
    pub(super) empty_since: Option<Instant>,
    /// After a write that failed.
    pub(super) not_before: Option<Instant>,
}

pub(super) fn plan(name: &str, shown: &Shown, total: u128, ledger: &Ledger, memory: &mut Memory, now: Instant) -> Next {
    if let Some(until) = memory.not_before.filter(|until| *until > now) {
        return Next::At(until);
    }
    let held = shown.deleting && shown.guarded();
    if !shown.deleting && !shown.guarded() {
        return Next::Now(Step::Guard);
    }
    if held && ledger.count(name) == 0 && shown.records == Some(0) {
        let quiet = *memory.empty_since.get_or_insert(now) + QUIET;
        return if quiet <= now { Next::Now(Step::LetGo) } else { Next::At(quiet) };
    }
    memory.empty_since = None;
    let said = Said {
        allocated: i64::try_from(ledger.published(name)).unwrap_or(i64::MAX),
        total: i64::try_from(total).unwrap_or(i64::MAX),
        waits: held.then(|| waits(name, shown, ledger)),
    };
    let recent = memory.told.as_ref().filter(|(at, _)| *at + EVERY > now);
    let before = recent.map_or_else(|| seen(shown), |(_, said)| Some(said.clone()));
    match (before, recent) {
        (Some(before), _) if before == said => Next::Nothing,
        (Some(before), Some((at, _))) if !is_edge(&before, &said) => Next::At(*at + EVERY),
        _ => Next::Now(Step::Tell(said)),
    }
}

/// What the pool says; `None` if it says nothing yet.
fn seen(shown: &Shown) -> Option<Said> {
    let [Some(allocated), Some(total)] = shown.counts else { return None };
    let waits = shown.conditions.iter().find(|condition| condition.type_ == RELEASED);
    let waits = waits.filter(|condition| condition.status == "False").map(|condition| condition.message.clone());
    Some(Said { allocated, total, waits })
}

/// News that does not wait: the pool is empty or full, or is so no more; it has other addresses; its deletion waits.
fn is_edge(before: &Said, now: &Said) -> bool {
    let full = |said: &Said| said.allocated >= said.total;
    let empty = |said: &Said| said.allocated == 0;
    before.total != now.total
        || full(before) != full(now)
        || empty(before) != empty(now)
        || before.waits.is_some() != now.waits.is_some()
}

/// Who keeps the pool, and what to do.
fn waits(name: &str, shown: &Shown, ledger: &Ledger) -> String {
    let mut text = String::new();
    let pods: BTreeSet<_> =
        ledger.of_pool(name).map(|one| (one.pod.namespace.as_str(), one.pod.name.as_str())).take(PODS * 4).collect();
    let count = ledger.count(name);
    if count > 0 {
        let shown: Vec<_> = pods.iter().take(PODS).map(|(namespace, pod)| format!("{namespace}/{pod}")).collect();
        let more = if pods.len() > PODS || count > PODS * 4 { " and others" } else { "" };
        let (addresses, are) = if count == 1 { ("address", "is") } else { ("addresses", "are") };
        // A `String` takes everything.
        let _ = write!(
            text,
            "{count} {addresses} {are} still held, by pods {}{more}: delete these pods, or wait for them; new pods get none of \
             this pool, and it goes with the last address",
            shown.join(", ")
        );
    }
    let records = match shown.records {
        Some(0) => return text,
        Some(records) => {
            format!("{records} records of an earlier system in status.allocatedIPs are not taken over yet")
        }
        None => "status.allocatedIPs cannot be read, so nobody knows which addresses are in use: repair it".to_owned(),
    };
    let _ = write!(text, "{}{records}", if text.is_empty() { "" } else { "; " });
    text
}

#[cfg(test)]
mod tests;
