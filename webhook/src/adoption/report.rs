//! What is said about it: conditions and events of pools, log, one metric.

use crate::events::Events;
use crate::pools::reference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::collections::BTreeMap;
use store::adopt::{Adopter, OldPool, Plan};

/// Texts of faults in a condition.
const NAMED: usize = 5;

/// Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metrics {
    pub(super) records: Gauge,
}

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let found = Self::default();
        let help = "Records of an earlier system in status.allocatedIPs of pools, which give no address before these are taken over";
        registry.register("adoption_records", help, found.records.clone());
        found
    }
}

/// Why a pool is not adopted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    DryRun,
    PolicyNotInForce,
    RecordsNotUsable,
    WritesFail,
}

impl Reason {
    fn name(self) -> &'static str {
        match self {
            Self::DryRun => "DryRun",
            Self::PolicyNotInForce => "PolicyNotInForce",
            Self::RecordsNotUsable => "RecordsNotUsable",
            Self::WritesFail => "WritesFail",
        }
    }
}

/// Says what is news, and nothing twice.
pub(super) struct Teller<'a> {
    pub(super) adopter: &'a Adopter,
    pub(super) events: &'a Events,
    pub(super) said: &'a mut BTreeMap<String, (Reason, String)>,
}

impl Teller<'_> {
    pub(super) async fn not_adopted(&mut self, pool: &OldPool, reason: Reason, message: &str) {
        let name = &pool.name;
        if self.said.get(name).is_some_and(|said| (said.0, said.1.as_str()) == (reason, message)) {
            return;
        }
        if let Err(error) = self.adopter.say(pool, reason.name(), message, now()).await {
            tracing::info!(pool = name, %error, "the condition Adopted cannot be written; trying again");
            return;
        }
        let reference = reference(name, &pool.uid);
        if reason == Reason::DryRun {
            tracing::info!(pool = name, message, "dry run: records of an earlier system would be taken over");
            self.events.tell_of(reference, "AdoptionPlanned", "Adopt", message);
        } else {
            tracing::warn!(pool = name, reason = reason.name(), message, "a pool is not adopted yet");
            self.events.warn_of(reference, reason.name(), "Adopt", message);
        }
        self.said.insert(name.clone(), (reason, message.to_owned()));
    }

    pub(super) fn adopted(&mut self, pool: &OldPool, message: &str) {
        self.said.remove(&pool.name);
        tracing::info!(pool = pool.name, message, "a pool is adopted");
        self.events.tell_of(reference(&pool.name, &pool.uid), "Adopted", "Adopt", message);
    }
}

pub(super) fn now() -> Time {
    Time(Timestamp::now())
}

/// What is wrong with the records, and how many are right.
pub(super) fn faults(plan: &Plan) -> String {
    let texts: Vec<_> = plan.faults.iter().take(NAMED).map(ToString::to_string).collect();
    let more = match plan.faults.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    format!(
        "of {} records {} cannot be taken over, so the pool gives no address: {}{more}",
        plan.records,
        plan.faults.len(),
        texts.join("; ")
    )
}

/// What an adoption would do.
pub(super) fn planned(plan: &Plan) -> String {
    let done = format!(
        "dry run: {} of {} records would be taken over, {} are already",
        plan.imports.len(),
        plan.records,
        plan.there
    );
    if plan.faults.is_empty() { done } else { format!("{done}; {}", faults(plan)) }
}
