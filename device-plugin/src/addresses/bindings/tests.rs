use super::*;
use ipam_core::{Binding, Node, Pod, State};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;

const INSTANT: Duration = Duration::from_millis(1);

fn known(live: &[&str]) -> Known {
    Known { live: Some(Arc::new(live.iter().map(ToString::to_string).collect())), failed: None }
}

/// A look at these pods' bindings: how many count, and after which time another will.
fn look(absences: &mut Absences, bound: &[&str], known: &Known, now: Instant) -> (u32, Option<Duration>) {
    let found = absences.look(bound.iter().copied(), known, now);
    (found.count, found.next.map(|next| next - now))
}

#[test]
fn a_binding_counts_when_its_pod_has_been_away_for_a_while() {
    let (mut absences, start) = (Absences::default(), Instant::now());
    let bound = ["a", "b", "b"];
    assert_eq!(look(&mut absences, &bound, &known(&["a", "b"]), start), (0, None), "live pods hold theirs");
    assert_eq!(look(&mut absences, &bound, &known(&["a"]), start), (0, Some(SETTLE)));
    let shortly = start + SETTLE - INSTANT;
    assert_eq!(look(&mut absences, &bound, &known(&["a"]), shortly), (0, Some(INSTANT)), "looks do not put it off");
    assert_eq!(look(&mut absences, &bound, &known(&["a"]), start + SETTLE), (2, None), "each allocation is a slot");
    assert_eq!(look(&mut absences, &["a", "b"], &known(&["a"]), start + SETTLE), (1, None), "one is released");
    assert_eq!(look(&mut absences, &["a", "b"], &known(&["a", "b"]), start + SETTLE), (0, None), "it is back");
    assert_eq!(look(&mut absences, &["a", "b"], &known(&["a"]), start + SETTLE), (0, Some(SETTLE)), "and gone anew");
}

#[test]
fn an_allocation_that_is_seen_before_its_pod_moves_nothing() {
    let (mut absences, start) = (Absences::default(), Instant::now());
    assert_eq!(look(&mut absences, &["new"], &known(&[]), start), (0, Some(SETTLE)));
    assert_eq!(look(&mut absences, &["new"], &known(&["new"]), start + SETTLE - INSTANT), (0, None));
    assert_eq!(look(&mut absences, &["new"], &known(&["new"]), start + 2 * SETTLE), (0, None));
}

#[test]
fn nothing_counts_before_pods_are_listed() {
    let (mut absences, start) = (Absences::default(), Instant::now());
    assert_eq!(look(&mut absences, &["a"], &Known::default(), start), (0, None));
    assert_eq!(look(&mut absences, &["a"], &Known::default(), start + 2 * SETTLE), (0, None));
    assert_eq!(look(&mut absences, &["a"], &known(&[]), start + 2 * SETTLE), (0, Some(SETTLE)));
}

#[test]
fn a_watch_that_fails_takes_no_more_devices_and_gives_none_back() {
    let (mut absences, start) = (Absences::default(), Instant::now());
    look(&mut absences, &["old"], &known(&[]), start);
    let failed = start + SETTLE;
    let failing = Known { failed: Some(failed), ..known(&[]) };
    assert_eq!(look(&mut absences, &["old", "new"], &failing, failed), (1, Some(DOUBT + SETTLE)));
    let late = failed + DOUBT - INSTANT;
    assert_eq!(look(&mut absences, &["old", "new"], &failing, late), (1, Some(INSTANT + SETTLE)));
    assert_eq!(look(&mut absences, &["old", "new"], &known(&["new"]), late), (1, None), "it shows the pod");
    assert_eq!(look(&mut absences, &["old", "other"], &failing, late), (1, Some(INSTANT + SETTLE)));
    assert_eq!(look(&mut absences, &["old", "other"], &known(&[]), late), (1, Some(SETTLE)), "or something else");
    assert_eq!(look(&mut absences, &["old", "other"], &known(&[]), late + SETTLE), (2, None));
}

#[test]
fn a_binding_is_what_the_cloud_may_know_of_on_this_machine() {
    let binding = Binding {
        server: "http://cloud".to_owned(),
        subnet: String::new(),
        parent_nic_mac: String::new(),
        bind_id: String::new(),
        settle: Duration::ZERO,
    };
    let on = |machine: &str, provider: Option<Binding>| Allocation {
        pool: "p".to_owned(),
        address: "10.0.0.1".parse().expect("an address"),
        node: Node { name: "n".to_owned(), uid: "u".to_owned(), machine_id: machine.to_owned() },
        pod: Pod::default(),
        owner: None,
        container_id: String::new(),
        interface: String::new(),
        network: String::new(),
        netns: None,
        boot_id: String::new(),
        flow_id: String::new(),
        state: State::Held,
        provider,
        detached: false,
        release_request: None,
    };
    assert!(takes_slot(&on("m", Some(binding.clone())), "m"));
    assert!(takes_slot(&on("", Some(binding.clone())), "m"), "nobody knows of which machine");
    assert!(!takes_slot(&on("before", Some(binding)), "m"), "of another machine of this Node's name");
    assert!(!takes_slot(&on("m", None), "m"), "no provider knows of it");
}

/// What happens to three pods and their bindings.
#[derive(Clone, Debug)]
enum Event {
    Wait(u64),
    Pod(usize, bool),
    Bindings(usize, usize),
    Fails,
    Shows,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => (0..4_000_u64).prop_map(Event::Wait),
        1 => (80_000..100_000_u64).prop_map(Event::Wait),
        4 => (0..3_usize, any::<bool>()).prop_map(|(pod, there)| Event::Pod(pod, there)),
        4 => (0..3_usize, 0..3_usize).prop_map(|(pod, bindings)| Event::Bindings(pod, bindings)),
        1 => Just(Event::Fails),
        1 => Just(Event::Shows),
    ]
}

const PODS: [&str; 3] = ["a", "b", "c"];

proptest! {
    /// Against the history itself: a pod's bindings count if, and only if, it has been seen to be away for as long as it takes
    /// while the watch was not in doubt, at every look since it was last there.
    #[test]
    fn the_count_is_that_of_the_history(events in prop::collection::vec(event(), 1..60)) {
        let mut now = Instant::now();
        let mut absences = Absences::default();
        let (mut live, mut bindings) = (BTreeSet::<String>::new(), [0_usize; 3]);
        let mut failed = None;
        // Of each pod: since when it has been away with a binding and without doubt, and whether it counts.
        let mut away: [Option<Instant>; 3] = [None; 3];
        let mut counts = [false; 3];
        for event in events {
            match event {
                Event::Wait(milliseconds) => now += Duration::from_millis(milliseconds),
                Event::Pod(pod, there) => {
                    failed = None;
                    if there { live.insert(PODS[pod].to_owned()); } else { live.remove(PODS[pod]); }
                }
                Event::Bindings(pod, some) => bindings[pod] = some,
                Event::Fails => failed = Some(now),
                Event::Shows => failed = None,
            }
            let doubt_ends = failed.map(|at| at + DOUBT);
            for (pod, uid) in PODS.iter().enumerate() {
                let absent = bindings[pod] > 0 && !live.contains(*uid);
                if !absent {
                    (away[pod], counts[pod]) = (None, false);
                    continue;
                }
                // What counts goes on to; what does not starts anew when the doubt ends.
                let begun = away[pod].get_or_insert(now);
                if let Some(end) = doubt_ends.filter(|end| !counts[pod] && *begun + SETTLE > now && *end > now) {
                    *begun = end;
                }
                if failed.is_none() {
                    *begun = (*begun).min(now);
                }
                counts[pod] |= *begun + SETTLE <= now;
            }
            let bound = PODS.iter().enumerate().flat_map(|(pod, uid)| std::iter::repeat_n(*uid, bindings[pod]));
            let known = Known { live: Some(Arc::new(live.clone())), failed };
            let found = absences.look(bound, &known, now);
            let expected: usize = (0..3).filter(|pod| counts[*pod]).map(|pod| bindings[pod]).sum();
            prop_assert_eq!(found.count, u32::try_from(expected).expect("few"));
            let waiting = (0..3).filter(|pod| away[*pod].is_some() && !counts[*pod]).count();
            prop_assert_eq!(found.next.is_some(), waiting > 0, "it is looked at again if, and only if, one waits");
            if let Some(next) = found.next {
                prop_assert!(next > now && next <= now + DOUBT + SETTLE);
            }
            prop_assert!(absences.due.len() <= bindings.iter().filter(|some| **some > 0).count(), "bounded");
        }
    }
}
