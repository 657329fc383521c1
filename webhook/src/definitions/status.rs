//! What the attachment says of its definition: its conditions.

use crate::attachments::{Config, READY};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

/// Whether all that it chains is on the nodes.
const PLUGINS: &str = "PluginsPresent";

/// Where an attachment stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) ready: bool,
    /// One word, for programs.
    pub(super) reason: &'static str,
    /// What to do, for people.
    pub(super) message: String,
    /// Plugins that are left out.
    pub(super) omitted: Vec<&'static str>,
}

impl Standing {
    /// Something is in the way.
    pub(super) fn not_ready(reason: &'static str, message: String) -> Self {
        Self { ready: false, reason, message, omitted: Vec::new() }
    }
}

/// The conditions to write; `None` where they say so already. A condition that keeps its status keeps its time.
pub(super) fn conditions(config: &Config, standing: &Standing, now: Timestamp) -> Option<Vec<Condition>> {
    let message = match standing.omitted.as_slice() {
        [] => "every plugin of the chain is on the nodes, as far as the chart knows".to_owned(),
        omitted => format!(
            "the chain leaves out {}: if every node has it, name it in the chart value plugins.present",
            omitted.join(", ")
        ),
    };
    let reason = if standing.omitted.is_empty() { "AllPresent" } else { "NotInstalled" };
    let wanted = [
        (READY, standing.ready, standing.reason, &standing.message),
        (PLUGINS, standing.omitted.is_empty(), reason, &message),
    ];
    let old = |kind: &str| config.conditions.iter().find(|condition| condition.type_ == kind);
    let condition = |(kind, status, reason, message): (&str, bool, &str, &String)| {
        let status = if status { "True" } else { "False" };
        let since = old(kind).filter(|old| old.status == status).map(|old| old.last_transition_time.clone());
        Condition {
            type_: kind.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: message.clone(),
            observed_generation: Some(config.generation),
            last_transition_time: since.unwrap_or(Time(now)),
        }
    };
    let wanted = wanted.map(condition);
    // Those of others stay.
    let foreign = config.conditions.iter().filter(|condition| ![READY, PLUGINS].contains(&condition.type_.as_str()));
    let all: Vec<Condition> = wanted.into_iter().chain(foreign.cloned()).collect();
    let same = all.len() == config.conditions.len() && all.iter().all(|one| config.conditions.contains(one));
    (!same).then_some(all)
}

/// Whether the attachment said before that it is ready, and that it is not for this reason.
pub(super) fn said(config: &Config, standing: &Standing) -> bool {
    let status = if standing.ready { "True" } else { "False" };
    let same = |old: &Condition| old.type_ == READY && old.status == status && old.message == standing.message;
    config.conditions.iter().any(same)
}
