//! What is said about it: log, metrics, events on pools.

use crate::events::Events;
use crate::metrics::Outcome;
use crate::pools::{Index, reference};
use crate::usage::{Suspect, Suspicion};
use ipam_core::Answered;
use k8s_api::names::{RELEASE_DECLINED, release_declined};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::collections::BTreeMap;

/// What a look came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Looked {
    /// A pod needs it, or its agent sees to it, or it has gone by itself.
    Kept,
    /// Something has to settle first.
    Waits,
    /// Its address can be given to others. With the pod that had it, and that one's node.
    Freed { pod: String, node: String },
    /// It would be, but for the dry run.
    WouldFree { pod: String, node: String },
    /// It is its pod's again, on that node.
    Moved { pod: String, to: String },
    /// A person has been answered.
    Asked { done: Answered, pod: String, by: String },
    /// Its binding is of a provider that nobody may ask.
    Unserved { pod: String, server: String },
    /// The endpoint showed what nobody has.
    EndpointRemoved,
    /// Why nobody knows.
    Failed(String),
}

/// How many looks came to what. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metrics {
    looks: Family<Outcome, Counter>,
    pub(super) suspects: Gauge,
}

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let found = Self::default();
        let help =
            "Allocations and endpoints that were suspected to be left behind and read live, by what that came to";
        registry.register("garbage_looks", help, found.looks.clone());
        registry.register(
            "garbage_suspects",
            "Allocations and endpoints that may have been left behind, by what watches show",
            found.suspects.clone(),
        );
        found
    }
}

/// What one pass has done, by pool: how many, and some of them.
#[derive(Default)]
pub(super) struct Pass {
    freed: BTreeMap<String, Names>,
    would_free: BTreeMap<String, Names>,
    /// By pool and provider.
    unserved: BTreeMap<(String, String), Names>,
    /// What was asked for, pool by pool.
    asked: Vec<(String, Answer)>,
}

/// To a person who asked for a release.
struct Answer {
    good: bool,
    reason: &'static str,
    note: String,
}

#[derive(Default)]
struct Names {
    count: usize,
    some: Vec<String>,
}

/// So many names are in an event.
const NAMED: usize = 5;

impl Pass {
    pub(super) fn add(&mut self, metrics: &Metrics, suspect: &Suspect, why: &Suspicion, looked: &Looked) {
        let outcome = match looked {
            Looked::Kept => "kept",
            Looked::Waits => "waits",
            Looked::Freed { .. } => "freed",
            Looked::WouldFree { .. } => "would_free",
            Looked::Moved { .. } => "moved",
            Looked::Asked { done: Answered::Declined, .. } => "declined",
            Looked::Asked { .. } => "released",
            Looked::Unserved { .. } => "unserved",
            Looked::EndpointRemoved => "endpoint_removed",
            Looked::Failed(_) => "failed",
        };
        crate::metrics::count(&metrics.looks, outcome);
        let what = match suspect {
            Suspect::Allocation(address) => address.to_string(),
            Suspect::Endpoint(namespace, pod) => format!("{namespace}/{pod}"),
        };
        let pool = &why.pool;
        match looked {
            Looked::Kept | Looked::Waits => {}
            Looked::Freed { pod, node } => {
                tracing::info!(address = what, pool, pod, node, "freed an address that was left behind");
                self.freed.entry(pool.clone()).or_default().add(&what, pod);
            }
            Looked::WouldFree { pod, node } => {
                tracing::info!(address = what, pool, pod, node, "dry run: an address was left behind");
                self.would_free.entry(pool.clone()).or_default().add(&what, pod);
            }
            Looked::Moved { pod, to } => {
                tracing::info!(address = what, pool, pod, node = to, "an address follows its pod to another node");
            }
            Looked::Asked { done, pod, by } => {
                let answer = Answer::to(*done, &what, pod, by);
                tracing::info!(address = what, pool, pod, by, "{}", answer.note);
                self.asked.push((pool.clone(), answer));
            }
            Looked::Unserved { pod, server } => {
                tracing::warn!(
                    address = what,
                    pool,
                    pod,
                    provider = server,
                    "kept: its provider is not configured any more"
                );
                let names = self.unserved.entry((pool.clone(), server.clone())).or_default();
                names.add(&what, pod);
            }
            Looked::EndpointRemoved => {
                tracing::info!(pod = what, "removed the endpoint of a pod that is gone");
            }
            Looked::Failed(error) => tracing::warn!(suspect = what, error, "cannot tell whether this was left behind"),
        }
    }

    pub(super) fn tell(self, events: &Events, index: &Index) {
        let told =
            [(self.freed, "AddressesCollected", "freed"), (self.would_free, "AddressesLeftBehind", "would free")];
        for (of, reason, done) in told {
            for (pool, names) in of {
                let Some(shown) = index.shown.get(&pool) else { continue };
                events.tell_of(reference(&pool, &shown.uid), reason, "Collect", &names.note(done));
            }
        }
        for ((pool, server), names) in self.unserved {
            let Some(pool) = index.shown.get(&pool).map(|shown| reference(&pool, &shown.uid)) else { continue };
            let note = format!(
                "{} of pods that are gone may be bound at provider {server}, which is not configured any more: name it in \
                 iaasNetworkProvider.formerServers, or run spiderpoolctl release --abandon",
                names.list()
            );
            events.warn_of(pool, "ProviderNotConfigured", "Collect", &note);
        }
        for (pool, Answer { good, reason, note }) in self.asked {
            let Some(pool) = index.shown.get(&pool).map(|shown| reference(&pool, &shown.uid)) else { continue };
            if good {
                events.tell_of(pool, reason, "Release", &note);
            } else {
                events.warn_of(pool, reason, "Release", &note);
            }
        }
    }
}

impl Answer {
    fn to(done: Answered, address: &str, pod: &str, by: &str) -> Self {
        let (good, reason, note) = match done {
            Answered::Abandoned => (
                false,
                "AddressAbandoned",
                format!(
                    "{address} of {pod} is free, as {by} asked; the provider was not asked and may still have it bound"
                ),
            ),
            Answered::Declined => (false, RELEASE_DECLINED, release_declined(address, by, pod)),
            Answered::Released => (true, "AddressReleased", format!("{address} of {pod} is free, as {by} asked")),
        };
        Self { good, reason, note }
    }
}

impl Names {
    fn add(&mut self, address: &str, pod: &str) {
        self.count += 1;
        if self.some.len() < NAMED {
            self.some.push(format!("{address} ({pod})"));
        }
    }

    fn note(&self, done: &str) -> String {
        let count = &self.count;
        let (addresses, pods) = if *count == 1 { ("address", "a pod that is") } else { ("addresses", "pods that are") };
        format!("{done} {count} {addresses} of {pods} gone: {}", self.list())
    }

    fn list(&self) -> String {
        let more = if self.count > self.some.len() { " and others" } else { "" };
        format!("{}{more}", self.some.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_names_some() {
        let mut names = Names::default();
        names.add("10.0.0.1", "a/b");
        assert_eq!(names.note("freed"), "freed 1 address of a pod that is gone: 10.0.0.1 (a/b)");
        for _ in 0..6 {
            names.add("10.0.0.2", "a/c");
        }
        let note = names.note("would free");
        assert!(note.starts_with("would free 7 addresses of pods that are gone: 10.0.0.1 (a/b), "), "{note}");
        assert!(note.ends_with("and others"), "{note}");
    }
}
