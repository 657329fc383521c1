//! Addresses whose node is gone, so that no agent will ever give them back. Here is who is suspected; the live reads that
//! decide are in [`super::collect`].

use super::facts::Allocation;
use crate::nodes::Machines;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

/// A Node may be deleted and registered again; a machine that is off stays away longer.
pub(super) const NODE_GONE_AFTER: Duration = Duration::from_mins(10);
/// Looked at in one sweep.
const MOST: usize = 20;

/// Since when a Node is missed, by name and UID: counted on this process's own clock.
#[derive(Debug, Default)]
pub(super) struct Missed(HashMap<(String, String), Instant>);

impl Missed {
    /// Allocations without a provider whose Node is long gone, or whose machine is stated to be off.
    pub(super) fn suspects<'a>(
        &mut self,
        allocations: impl Iterator<Item = &'a Allocation>,
        machines: &Machines,
        now: Instant,
    ) -> Vec<Allocation> {
        let mut missed = HashMap::new();
        let mut suspects = Vec::new();
        // One without a node is that of an installation that is being taken over.
        for allocation in allocations.filter(|one| one.bind_id.is_none() && !one.node.is_empty()) {
            let here = machines.get(&allocation.node);
            let same = here.filter(|machine| allocation.node_uid.is_empty() || machine.uid == allocation.node_uid);
            let suspected = if let Some(machine) = same {
                machine.out_of_service
            } else {
                let key = (allocation.node.clone(), allocation.node_uid.clone());
                let since = *missed.entry(key).or_insert_with_key(|key| self.0.get(key).copied().unwrap_or(now));
                since + NODE_GONE_AFTER <= now
            };
            if suspected && suspects.len() < MOST {
                suspects.push(allocation.clone());
            }
        }
        self.0 = missed;
        suspects
    }
}

#[cfg(test)]
mod tests {
    use super::super::ledger::tests::allocation;
    use super::*;
    use crate::nodes::Machine;
    use serde_json::{Value, json};

    fn of(node: &str, uid: &str, more: &Value) -> Allocation {
        let mut all = json!({"node": {"name": node, "uid": uid}});
        all.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
        allocation("10.0.0.1", "p", "a", &all)
    }

    fn machines(out_of_service: bool) -> Machines {
        Machines::from([("n".to_owned(), Machine { uid: "u".to_owned(), out_of_service })])
    }

    #[test]
    fn a_node_must_be_missed_for_long_or_stated_to_be_off() {
        let begin = Instant::now();
        let mut missed = Missed::default();
        let mut suspected = |one: &Allocation, machines: &Machines, at: Instant| {
            !missed.suspects(std::iter::once(one), machines, at).is_empty()
        };
        let (here, gone) = (machines(false), Machines::new());
        let (one, later) = (of("n", "u", &json!({})), begin + NODE_GONE_AFTER);
        assert!(!suspected(&one, &here, begin));
        assert!(suspected(&one, &machines(true), begin));
        assert!(!suspected(&one, &gone, begin), "it may come back");
        assert!(suspected(&one, &gone, later));
        assert!(!suspected(&one, &here, later), "it has come back");
        assert!(!suspected(&one, &gone, later), "counted anew");
        let other = of("n", "other", &json!({}));
        assert!(!suspected(&other, &here, begin));
        assert!(suspected(&other, &here, later), "another machine of the name");
        let bound = of("n", "u", &json!({"provider": {"bindId": "b"}}));
        assert!(!suspected(&bound, &machines(true), later), "the cloud is asked first");
        let nowhere = of("", "", &json!({}));
        assert!(!suspected(&nowhere, &gone, begin) && !suspected(&nowhere, &gone, later));
    }
}
