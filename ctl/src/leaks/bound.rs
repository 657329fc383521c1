//! Addresses that a provider may have bound: its word ends that, and somebody has to ask for it.

use super::facts::Facts;
use super::judge::{By, Place, agent};
use crate::held::Held;
use crate::providers;
use store::Allocation;

/// The controller takes up what nobody has written for so long.
const STUCK_SECONDS: i64 = 240;

/// Who has it unbound, and when. `shown`: an endpoint still shows it.
pub(super) fn bound(facts: &Facts, held: &Held, one: &Allocation, place: &Place<'_>, shown: bool) -> (By, String) {
    let server = one.provider.as_ref().map(|binding| binding.server.as_str()).unwrap_or_default();
    if let Some(server) = facts.providers.unserved(one) {
        return (By::Nobody, providers::remedy(server, one));
    }
    let (by, when) = asks(facts, one, place, shown, server);
    if by != By::Nobody && !one.held() && held.since_written(facts.now).is_some_and(|since| since < STUCK_SECONDS) {
        return (by, format!("when {server} lets go of it: it is asked again and again"));
    }
    let known = one.held() && shown;
    match providers::settles(held, one, facts.now).filter(|_| !known) {
        Some(left) => {
            (by, format!("{when}, not before what {server} was asked has come to its end ({left}s at the most)"))
        }
        None => (by, when),
    }
}

/// The agent of its node, as long as that works.
fn asks(facts: &Facts, one: &Allocation, place: &Place<'_>, shown: bool, server: &str) -> (By, String) {
    let ready = |ready: Option<bool>| ready.unwrap_or_default();
    let of_node = facts.agents.as_ref().map(|agents| agents.get(&one.node.name).map(|agent| agent.ready));
    let well = match place {
        Place::Here(machine) => machine.ready && of_node.map_or(true, ready),
        Place::Unknown => true,
        Place::Off | Place::Gone | Place::Nowhere => false,
    };
    let collects = facts.gc.enabled && !(facts.gc.dry_run && one.held());
    if well || (matches!(place, Place::Here(_)) && (shown || !collects)) {
        return agent(facts, one, place);
    }
    if !collects {
        let why = "ipam.gc.enabled is false, or ipam.gc.dryRun true";
        return (By::Nobody, format!("{why}: spiderpoolctl release {}", one.address));
    }
    let when = match place {
        Place::Off => "within minutes: the node is tainted out-of-service".to_owned(),
        Place::Gone => format!("within {} minutes after the node went", facts.gc.node_gone_after.as_secs() / 60),
        Place::Nowhere => "some minutes after its pool has been taken over from the earlier system".to_owned(),
        Place::Here(_) | Place::Unknown => "within minutes, as the agent of its node does not see to it".to_owned(),
    };
    (By::Controller, format!("{when}; it asks {server}"))
}
