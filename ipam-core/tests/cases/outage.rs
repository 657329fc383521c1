//! A provider that is away while pods come and go.

use crate::node::{Flow, Going, Pool, Who, add_and_undo, del, spend, start, who};
use crate::world::{Mood, Shared};
use ipam_core::Address;
use std::collections::BTreeMap;
use std::time::Duration;

const MINUTE: Duration = Duration::from_mins(1);
const TURN: Duration = Duration::from_secs(15);

fn provided(name: &str, uid: &str, container: &str) -> Who {
    Who { provided: true, ..who(name, uid, container) }
}

/// Pods of a node, by name: each asks until it has an address, with a sandbox of its own each time.
struct Pods<'a> {
    shared: &'a Shared,
    agent: &'a Flow,
    controller: &'a Flow,
    going: Vec<Going<'a, ()>>,
    there: Vec<String>,
    tries: usize,
}

impl Pods<'_> {
    fn come(&mut self, name: &str) {
        self.shared.pod(name, &format!("{name}-uid"), "node");
        self.there.push(name.to_owned());
    }

    /// Its sandboxes go, and it does, whether or not a DEL has got anywhere.
    fn go(&mut self) {
        let name = self.there.remove(0);
        self.shared.pod_goes(&name);
        let (agent, uid) = (self.agent, format!("{name}-uid"));
        let held: Vec<_> = {
            let mut world = self.shared.world();
            let of = world.allocations.values().filter(|one| one.value.pod.uid == uid);
            let held: Vec<_> = of.map(|one| one.value.container_id.clone()).collect();
            world.gone.extend(held.iter().cloned());
            held
        };
        for container in held {
            let who = provided(&name, &uid, &container);
            self.going.push(Box::pin(async move { del(agent, &who).await }));
        }
    }

    /// Some seconds of what kubelets ask for and what agent and controller do by themselves.
    fn turn(&mut self) {
        let (shared, agent, controller) = (self.shared, self.agent, self.controller);
        for name in &self.there {
            if !shared.world().shown(name).is_empty() {
                continue;
            }
            self.tries += 1;
            let (who, before) = (
                provided(name, &format!("{name}-uid"), &format!("{name}-{}", self.tries)),
                format!("{name}-{}", self.tries - 1),
            );
            shared.world().gone.insert(before);
            self.going.push(Box::pin(async move { drop(add_and_undo(agent, shared, &who, &Pool(60)).await) }));
        }
        for address in shared.addresses() {
            self.going.push(Box::pin(async move { drop(agent.reconcile(address).await) }));
            self.going.push(Box::pin(async move { drop(controller.collect(address, false).await) }));
        }
        spend(shared, &mut self.going, TURN);
    }

    fn agree(&self, when: &str) {
        let world = self.shared.world();
        let held: BTreeMap<Address, &str> = (world.allocations.values().filter(|one| one.value.held()))
            .map(|one| (one.value.address, one.value.pod.name.as_str()))
            .collect();
        let shown: BTreeMap<Address, &str> = (world.endpoints.keys())
            .flat_map(|name| world.shown(name).into_iter().map(move |address| (address, name.as_str())))
            .collect();
        let mut live: Vec<&str> = held.values().copied().collect();
        live.sort_unstable();
        let mut there: Vec<&str> = self.there.iter().map(String::as_str).collect();
        there.sort_unstable();
        assert_eq!(live, there, "{when}: each pod has one address");
        assert_eq!((&held, world.allocations.len()), (&shown, shown.len()), "{when}: nothing is left Releasing");
        assert!(world.bound.keys().eq(held.keys()), "{when}: {:?}", world.bound);
    }
}

/// Away for ten minutes, in either way; then everything drains, without a restart of anybody.
#[test]
fn a_provider_that_was_away_for_ten_minutes_leaves_nothing_behind() {
    for away in [Mood::Unsent, Mood::Unknown] {
        let shared = Shared::new();
        let (agent, controller) = (start(&shared, "node"), start(&shared, ""));
        let (going, there) = (Vec::new(), Vec::new());
        let mut pods = Pods { shared: &shared, agent: &agent, controller: &controller, going, there, tries: 0 };
        (0..10).for_each(|n| pods.come(&format!("p{n}")));
        (0..4).for_each(|_| pods.turn());
        pods.agree("before");
        shared.world().mood = away;
        let began = shared.world().now;
        let calls = shared.world().calls.len();
        let mut next = 10;
        while shared.world().now < began + 10 * MINUTE {
            pods.go();
            pods.come(&format!("p{next}"));
            next += 1;
            pods.turn();
        }
        let asked = shared.world().calls.len() - calls;
        assert!(asked > 100, "{away:?}: it is asked again and again: {asked}");
        let releasing = shared.world().allocations.values().filter(|one| !one.value.held()).count();
        assert!(releasing >= 10, "{away:?}: what pods had is still bound: {releasing}");
        assert_eq!(shared.world().bound.len(), 10, "{away:?}: nothing was done");
        shared.world().mood = Mood::Works;
        (0..16).for_each(|_| pods.turn());
        pods.agree(&format!("four minutes after {away:?}"));
        while !pods.there.is_empty() {
            pods.go();
        }
        (0..16).for_each(|_| pods.turn());
        pods.agree("without pods");
        assert!(shared.world().allocations.is_empty() && shared.world().bound.is_empty(), "{away:?}");
    }
}
