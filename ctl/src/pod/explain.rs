//! Facts in, findings out, in the order of the way that an address takes.

mod addresses;
mod advice;
mod endpoint;
mod events;
mod named;
mod networks;
mod node;
mod pools;
mod resources;
#[cfg(test)]
mod tests;
mod there;

use super::facts::Facts;
use crate::finding::Finding;

/// Everything that can be said of a pod.
pub(super) fn explain(facts: &Facts) -> Vec<Finding> {
    let mut findings = vec![there::pod(facts)];
    if facts.pod.is_some() && !facts.host_network() {
        findings.push(there::namespace(facts));
        findings.extend(networks::networks(facts));
        if !facts.has_ended() {
            findings.extend(resources::resources(facts));
            findings.extend(node::node(facts));
            findings.extend(pools::pools(facts));
        }
    }
    findings.extend(addresses::addresses(facts));
    findings.extend(endpoint::endpoint(facts));
    findings.extend(events::events(facts));
    findings
}
