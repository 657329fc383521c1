//! Agents that start while pods do.

use crate::node::{Going, Pool, add_and_undo, alone, start, together, who};
use crate::world::Shared;
use ipam_core::Address;
use std::collections::BTreeSet;

/// aws/amazon-vpc-cni-k8s#711: after a restart the addresses of running pods were given again. The pool has none to spare.
#[test]
fn an_agent_that_starts_gives_nothing_that_a_pod_has() {
    let shared = Shared::new();
    let pool = Pool(60);
    let asked: Vec<_> = (0..60).map(|n| who(&format!("a{n}"), &format!("a{n}-uid"), &format!("c-{n}"))).collect();
    for one in &asked {
        shared.pod(&one.name, &one.uid, "node");
    }
    let agent = start(&shared, "node");
    let mut given: Vec<Address> = (asked.iter().take(30))
        .map(|one| alone(&shared, add_and_undo(&agent, &shared, one, &pool)).expect("ends").expect("given"))
        .collect();
    drop(agent);
    let agent = start(&shared, "node");
    let mut flows: Vec<Going<'_, Result<Address, String>>> = Vec::new();
    for one in asked.iter().skip(30) {
        flows.push(Box::pin(add_and_undo(&agent, &shared, one, &pool)));
    }
    given.extend(together(&shared, flows).into_iter().map(|one| one.expect("ends").expect("given")));
    assert_eq!(given.iter().collect::<BTreeSet<_>>().len(), 60, "{given:?}");
}
