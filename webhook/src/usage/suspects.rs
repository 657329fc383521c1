//! What may have been left behind, by what the watches show. What is done about it is decided by live reads
//! ([`crate::garbage`]).

use super::facts::Allocation;
use super::ledger::Ledger;
use crate::nodes::Machines;
use ipam_core::Address;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

/// A pod's endpoint is made a moment after its allocation, and goes a moment after its pod.
const LONELY: Duration = Duration::from_mins(1);
/// Who binds or releases writes its allocation anew before each call, and no call and no pause take so long.
const STUCK: Duration = Duration::from_mins(4);

/// One to look at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Suspect {
    Allocation(Address),
    /// Namespace and name of the pod whose endpoint it is.
    Endpoint(String, String),
}

/// Why, and how urgent it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Suspicion {
    /// Of an allocation: a change makes it worth a look at once.
    pub(crate) version: String,
    pub(crate) pool: String,
    /// Nothing runs on its node any more, by what the administrator states.
    pub(crate) node_gone: bool,
    pub(crate) wanted: Wanted,
    /// The endpoint still shows an earlier pod elsewhere: whoever moved it was cut off.
    pub(crate) astray: bool,
}

/// Whether somebody waits for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Wanted {
    #[default]
    No,
    /// The pod of a machine may, on another node; most that are stopped stay so.
    Perhaps,
    /// A pod of its name on another node, or a person who asked for its release.
    Yes,
}

impl Suspicion {
    /// A pod may wait for what comes of it.
    pub(crate) fn is_urgent(&self) -> bool {
        self.wanted == Wanted::Yes || self.astray
    }
}

pub(crate) type Suspects = HashMap<Suspect, Suspicion>;

/// Since when something is so, counted on this process's own clock.
#[derive(Debug, Default)]
pub(super) struct Since {
    /// A Node is missed, by name and UID.
    missed: HashMap<(String, String), Instant>,
    /// What a provider may have bound is shown by no endpoint, and nobody writes it: by name, with its version.
    stuck: HashMap<String, (String, Instant)>,
    /// Nothing is held under an endpoint's name.
    lonely: HashMap<(String, String), Instant>,
}

impl Since {
    /// All of them. Of a pool with records of an earlier system, which `waits` to be taken over, nobody knows yet who has what.
    pub(super) fn suspects(
        &mut self,
        ledger: &Ledger,
        waits: &impl Fn(&str) -> bool,
        machines: &Machines,
        gone_after: Duration,
        now: Instant,
    ) -> Suspects {
        let (mut missed, mut stuck) = (HashMap::new(), HashMap::new());
        let mut suspects = Suspects::new();
        // One without a node was taken over, of a pod that was gone: no agent will free it.
        for one in ledger.all().filter(|one| one.asked || !one.node.is_empty() || !waits(&one.pool)) {
            let nowhere = one.node.is_empty();
            let node_gone = machine_of(one, machines).unwrap_or_else(|| {
                let key = (one.node.clone(), if nowhere { one.name.clone() } else { one.node_uid.clone() });
                let since = missed.entry(key).or_insert_with_key(|key| self.missed.get(key).copied().unwrap_or(now));
                (!nowhere || !waits(&one.pool)) && *since + gone_after <= now
            });
            let bound = one.bind_id.is_some();
            // What the provider takes from a node's NIC nothing there can use, so that nobody has to say that the node is off.
            let unheard = bound && machines.get(&one.node).is_some_and(|machine| machine.not_ready);
            // A finished pod's is shown as long as the pod is there.
            let abandoned = bound && (unheard || !ledger.is_shown(&one.name)) && {
                let before = self.stuck.remove(&one.name).filter(|(version, _)| *version == one.version);
                let (version, since) = before.unwrap_or_else(|| (one.version.clone(), now));
                stuck.insert(one.name.clone(), (version, since));
                since + STUCK <= now
            };
            let leaves = one.detached || node_gone || unheard;
            let owner = one.owner.as_ref().filter(|owner| owner.retains() && leaves);
            let wanted = match owner {
                _ if one.asked => Wanted::Yes,
                Some(owner) if owner.is_machine() || !(one.detached || node_gone) => Wanted::Perhaps,
                Some(_) => Wanted::Yes,
                None => Wanted::No,
            };
            let astray = ledger.is_astray(one);
            let suspected = one.held && (node_gone || wanted != Wanted::No || astray) || abandoned;
            if let Some(address) = one.address.parse().ok().filter(|_| suspected || one.asked) {
                let (version, pool) = (one.version.clone(), one.pool.clone());
                suspects.insert(Suspect::Allocation(address), Suspicion { version, pool, node_gone, wanted, astray });
            }
        }
        (self.missed, self.stuck) = (missed, stuck);
        let mut lonely = HashMap::new();
        for (key, _) in ledger.lonely().filter(|(_, endpoint)| !endpoint.pools().any(waits)) {
            let since = self.lonely.get(key).copied().unwrap_or(now);
            lonely.insert(key.clone(), since);
            if since + LONELY <= now {
                let (namespace, pod) = key.clone();
                suspects.insert(Suspect::Endpoint(namespace, pod), Suspicion::default());
            }
        }
        self.lonely = lonely;
        suspects
    }
}

/// Whether the allocation's machine is stated to be off; `None` if there is no such Node.
fn machine_of(one: &Allocation, machines: &Machines) -> Option<bool> {
    let here = machines.get(&one.node);
    // A Node that was deleted and registered again is another object of the same machine.
    let is_it = |id: &str| !id.is_empty() && id == one.machine;
    let same = here.filter(|machine| one.node_uid.is_empty() || machine.uid == one.node_uid || is_it(&machine.id));
    same.map(|machine| machine.out_of_service)
}

#[cfg(test)]
mod tests {
    use super::super::facts::Endpoint;
    use super::super::ledger::tests::allocation;
    use super::*;
    use crate::nodes::Machine;
    use serde_json::{Value, json};

    const GONE: Duration = Duration::from_mins(10);

    fn of(node: &str, uid: &str, more: &Value) -> Allocation {
        let mut all = json!({"node": {"name": node, "uid": uid}});
        all.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
        allocation("10.0.0.1", "p", "a", &all)
    }

    fn machines(out_of_service: bool) -> Machines {
        let machine = Machine { uid: "u".to_owned(), out_of_service, ..Machine::default() };
        Machines::from([("n".to_owned(), machine)])
    }

    fn look(since: &mut Since, one: &Allocation, machines: &Machines, at: Instant) -> Option<Suspicion> {
        let mut ledger = Ledger::default();
        ledger.put(one.clone());
        since.suspects(&ledger, &|_: &str| false, machines, GONE, at).into_values().next()
    }

    #[test]
    fn a_node_must_be_missed_for_long_or_stated_to_be_off() {
        let begin = Instant::now();
        let mut since = Since::default();
        let mut suspected =
            |one: &Allocation, machines: &Machines, at: Instant| look(&mut since, one, machines, at).is_some();
        let (here, gone) = (machines(false), Machines::new());
        let (one, later) = (of("n", "u", &json!({})), begin + GONE);
        assert!(!suspected(&one, &here, begin));
        assert!(suspected(&one, &machines(true), begin));
        assert!(!suspected(&one, &gone, begin), "it may come back");
        assert!(suspected(&one, &gone, later));
        assert!(!suspected(&one, &here, later), "it has come back");
        assert!(!suspected(&one, &gone, later), "counted anew");
        let other = of("n", "other", &json!({}));
        assert!(!suspected(&other, &here, begin));
        assert!(suspected(&other, &here, later), "another machine of the name");
    }

    #[test]
    fn what_was_taken_over_without_a_node_is_looked_at_a_while_after_all_was() {
        let (mut since, mut ledger, begin) = (Since::default(), Ledger::default(), Instant::now());
        ledger.put(of("", "", &json!({})));
        let mut look =
            |adopted: bool, at| !since.suspects(&ledger, &|_: &str| !adopted, &machines(false), GONE, at).is_empty();
        assert!(!look(false, begin) && !look(false, begin + GONE), "a node may still turn up");
        assert!(!look(true, begin + GONE));
        assert!(look(true, begin + GONE + GONE));
    }

    #[test]
    fn a_node_that_is_registered_again_is_there() {
        let again = Machine { uid: "new".to_owned(), id: "m".to_owned(), ..Machine::default() };
        let machines = Machines::from([("n".to_owned(), again)]);
        let mut since = Since::default();
        let one = |id: &str| of("n", "u", &json!({"node": {"name": "n", "uid": "u", "machineID": id}}));
        for (id, suspected) in [("m", false), ("other", true), ("", true)] {
            since = Since { missed: [(("n".to_owned(), "u".to_owned()), Instant::now())].into(), ..since };
            let later = Instant::now() + GONE;
            assert_eq!(look(&mut since, &one(id), &machines, later).is_some(), suspected, "{id:?}");
        }
    }

    #[test]
    fn what_is_wanted_elsewhere_or_half_moved_is_looked_at_where_nodes_are_there() {
        let mut since = Since::default();
        let mut suspicion = |more: Value| look(&mut since, &of("n", "u", &more), &machines(false), Instant::now());
        let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "a", "uid": "s"});
        assert!(suspicion(json!({"owner": set})).is_none(), "its sandbox is there");
        assert!(suspicion(json!({"owner": set, "detached": true})).expect("suspected").wanted == Wanted::Yes);
        assert!(suspicion(json!({"detached": true})).is_none(), "nobody keeps it");
        let asked =
            json!({"releaseRequest": {"by": "ann", "at": "now"}, "provider": {"bindId": "b"}, "node": {"name": ""}});
        assert!(suspicion(asked).expect("a person waits").wanted == Wanted::Yes);

        let (one, mut ledger) = (of("n", "u", &json!({})), Ledger::default());
        ledger.put(one.clone());
        let mut shown = |uid: &str, node: &str| {
            let endpoint = Endpoint { pod_uid: uid.into(), node: node.into(), ..Endpoint::default() };
            ledger.show((one.pod.namespace.clone(), one.pod.name.clone()), Some(endpoint));
            since
                .suspects(&ledger, &|_: &str| false, &machines(false), GONE, Instant::now())
                .into_values()
                .any(|why| why.astray)
        };
        let uid = one.pod.uid.clone();
        assert_eq!([shown("old", "m"), shown("old", "n"), shown(&uid, "m")], [true, false, false]);
    }

    #[test]
    fn what_a_provider_may_have_bound_is_looked_at_when_nobody_sees_to_it() {
        let bound = |more: &Value| {
            let mut all = json!({"provider": {"bindId": "b"}});
            all.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
            of("n", "u", &all)
        };
        let (begin, here) = (Instant::now(), machines(false));
        for more in [json!({}), json!({"state": "Releasing"})] {
            let mut since = Since::default();
            let mut suspected = |one: &Allocation, at| look(&mut since, one, &here, at).is_some();
            let one = bound(&more);
            assert!(!suspected(&one, begin), "a flow is at work");
            assert!(suspected(&one, begin + STUCK), "{more}");
            let renewed = Allocation { version: "2".to_owned(), ..one };
            assert!(!suspected(&renewed, begin + STUCK), "somebody is at work");
        }
        let unbound = of("n", "u", &json!({}));
        let mut since = Since::default();
        look(&mut since, &unbound, &here, begin);
        assert!(look(&mut since, &unbound, &here, begin + STUCK).is_none(), "its agent sees to it");

        let set = json!({"owner": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "a", "uid": "s"}});
        let unheard = Machine { uid: "u".to_owned(), not_ready: true, ..Machine::default() };
        let silent = Machines::from([("n".to_owned(), unheard)]);
        let wanted = |one: &Allocation| look(&mut Since::default(), one, &silent, begin).map(|why| why.wanted);
        assert_eq!(wanted(&bound(&set)), Some(Wanted::Perhaps), "the provider fences the node");
        assert_eq!(wanted(&of("n", "u", &set)), None, "nothing does");
        assert_eq!(wanted(&bound(&json!({}))), None);
    }

    #[test]
    fn what_an_endpoint_shows_is_looked_at_where_nobody_hears_of_its_node() {
        let (begin, one) = (Instant::now(), of("n", "u", &json!({"provider": {"bindId": "b"}})));
        for (not_ready, suspected) in [(true, true), (false, false)] {
            let machine = Machine { uid: "u".to_owned(), not_ready, ..Machine::default() };
            let machines = Machines::from([("n".to_owned(), machine)]);
            let mut ledger = Ledger::default();
            ledger.put(one.clone());
            let ips = json!([{"interface": one.interface, "ipv4": "10.0.0.1/24", "ipv4Pool": "p", "bindId": "b"}]);
            let shown =
                json!({"metadata": {"name": one.pod.name}, "status": {"current": {"uid": one.pod.uid, "ips": ips}}});
            let shown = Endpoint::of(&serde_json::from_value(shown).expect("an object"));
            ledger.show((one.pod.namespace.clone(), one.pod.name.clone()), Some(shown));
            assert!(ledger.is_shown(&one.name));
            let mut since = Since::default();
            let mut look = |at| !since.suspects(&ledger, &|_: &str| false, &machines, GONE, at).is_empty();
            assert!(!look(begin), "its agent may be back");
            assert_eq!(look(begin + STUCK), suspected, "a finished pod's has no agent that frees it");
        }
    }

    #[test]
    fn an_endpoint_under_whose_name_nothing_is_held_is_looked_at_after_a_while() {
        let (mut since, mut ledger, begin) = (Since::default(), Ledger::default(), Instant::now());
        let key = ("team-a".to_owned(), "gone".to_owned());
        ledger.show(key.clone(), Some(Endpoint::default()));
        let mut look = |ledger: &Ledger, at| since.suspects(ledger, &|_: &str| false, &machines(false), GONE, at);
        assert!(look(&ledger, begin).is_empty());
        let found = look(&ledger, begin + LONELY);
        assert!(found.contains_key(&Suspect::Endpoint(key.0.clone(), key.1.clone())));
        ledger.show(key, None);
        assert!(look(&ledger, begin + LONELY).is_empty());
        let old = json!({"metadata": {"name": "old"},
            "status": {"current": {"ips": [{"interface": "eth0", "ipv4": "10.0.0.1/24", "ipv4Pool": "old"}]}}});
        let old = Endpoint::of(&serde_json::from_value(old).expect("an object"));
        ledger.show(("team-a".to_owned(), "old".to_owned()), Some(old));
        for (waits, looked_at) in [("old", false), ("another", true)] {
            let mut since = Since::default();
            let mut look = |at| since.suspects(&ledger, &|pool: &str| pool == waits, &machines(false), GONE, at);
            look(begin);
            assert_eq!(!look(begin + LONELY).is_empty(), looked_at, "{waits} may still be taken over");
        }
    }
}
