//! Leaders, replicas and API servers that see everything late, crash and are interfered with: whatever may be shown must be
//! trusted by whatever may trust.

use super::issue::apply;
use super::pem::Certificate;
use super::plan::{Lifetimes, Plan, Step, Trust, plan};
use super::state::{Data, State};
use proptest::prelude::*;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{ServerName, UnixTime};
use rustls::{RootCertStore, crypto};
use std::sync::Arc;
use std::time::Duration;

const NAME: &str = "spiderpool-controller.kube-system.svc";
const START: i64 = 1_800_000_000;

/// A certificate lives for an hour: overlap 1 min, linger 15 min, authority 4 h.
fn lifetimes() -> Lifetimes {
    Lifetimes::of(Duration::from_hours(1))
}

/// Whether an API server that trusts the bundle takes the certificate.
fn verifies(shown: &Certificate, bundle: &[Certificate], now: i64) -> bool {
    let mut roots = RootCertStore::empty();
    for certificate in bundle {
        roots.add(certificate.der().clone()).expect("an authority");
    }
    let provider = Arc::new(crypto::ring::default_provider());
    let Ok(verifier) = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build() else {
        return false;
    };
    let now = UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(now).expect("after 1970")));
    let name = ServerName::try_from(NAME).expect("a name");
    verifier.verify_server_cert(shown.der(), &[], &name, &[], now).is_ok()
}

/// The same, much faster: authorities have names of their own.
fn is_trusted(shown: &Certificate, bundle: &[Certificate], now: i64) -> bool {
    let signs = |one: &Certificate| one.subject == shown.issuer && one.is_valid(now);
    shown.is_valid(now) && bundle.iter().any(signs)
}

/// Something with a history; everybody sees it with a delay of their own.
#[derive(Clone)]
struct Versions<T>(Vec<(i64, T)>);

impl<T: Clone + PartialEq> Versions<T> {
    fn put(&mut self, now: i64, value: T) {
        if self.latest() != &value {
            self.0.push((now, value));
        }
    }

    fn latest(&self) -> &T {
        &self.0.last().expect("a first one").1
    }

    fn index_at(&self, moment: i64) -> usize {
        self.0.partition_point(|(from, _)| *from <= moment).saturating_sub(1)
    }

    /// What somebody may see who is at the most so far behind.
    fn within(&self, now: i64, behind: i64) -> impl Iterator<Item = &T> {
        self.0[self.index_at(now - behind)..].iter().map(|(_, value)| value)
    }
}

/// The cluster: one Secret, two webhook entries, two controllers that both take themselves for the leader now and then.
struct World {
    now: i64,
    names: Vec<String>,
    secret: Versions<State>,
    entries: [Versions<Vec<Certificate>>; 2],
    /// Per controller, since when it has seen entries trust what they all do…
    since: [Vec<(Certificate, i64)>; 2],
    /// …and how far it has seen. Watches do not go back.
    seen: [i64; 2],
    /// A webhook has no bundle, or has got it back so lately that not every API server knows.
    excused_until: i64,
}

/// API servers and controllers are never so far behind in what they watch, in seconds.
const BEHIND: i64 = 20;
/// One that only shows what is in the Secret may have lost its connection.
const LONG_BEHIND: i64 = 600;

impl World {
    fn new() -> Self {
        Self {
            now: START,
            names: vec![NAME.to_owned()],
            secret: Versions(vec![(START, State::default())]),
            entries: [Versions(vec![(START, Vec::new())]), Versions(vec![(START, Vec::new())])],
            since: [Vec::new(), Vec::new()],
            seen: [START; 2],
            excused_until: START,
        }
    }

    fn state(&self) -> State {
        self.secret.latest().clone()
    }

    /// What controller `who` knows.
    fn trust(&mut self, who: usize) -> Trust {
        let moment = self.seen[who];
        let seen: Vec<&Vec<Certificate>> =
            self.entries.iter().map(|entry| &entry.0[entry.index_at(moment)].1).collect();
        let all = seen[0].iter().filter(|one| seen[1].contains(one));
        let before = std::mem::take(&mut self.since[who]);
        let since = |one: &Certificate| before.iter().find(|(known, _)| known == one).map_or(self.now, |(_, at)| *at);
        self.since[who] = all.map(|one| (one.clone(), since(one))).collect();
        let span = |at: i64| Duration::from_secs(u64::try_from(self.now - at).expect("past"));
        Trust {
            any: seen.into_iter().flatten().cloned().collect(),
            all: self.since[who].iter().map(|(one, at)| (one.clone(), span(*at))).collect(),
            none: None,
        }
    }

    /// One pass of controller `who` that knows everything `behind` seconds late; it dies before its write if `crashes`.
    fn pass(&mut self, who: usize, behind: i64, crashes: bool) {
        self.seen[who] = self.seen[who].max(self.now - behind);
        let (trust, moment) = (self.trust(who), self.seen[who]);
        let seen = self.secret.index_at(moment);
        let is_latest = seen + 1 == self.secret.0.len();
        let state = self.secret.0[seen].1.clone();
        let plan = plan(&state, &trust, &self.names, self.now, &lifetimes());
        if !matches!(&plan, Plan::Do(step) if step.extends_trust()) {
            let mut patched = false;
            for entry in &mut self.entries {
                let seen = entry.index_at(moment);
                // The Secret is read again, and the configuration must be the one that was seen.
                if is_latest && seen + 1 == entry.0.len() && *entry.latest() != state.bundle && !crashes {
                    entry.put(self.now, state.bundle.clone());
                    patched = true;
                }
            }
            if patched {
                return;
            }
        }
        let Plan::Do(step) = plan else { return };
        if crashes || !is_latest {
            return;
        }
        let after = apply(&step, &state, &self.names, self.now, &lifetimes()).expect("it can be made");
        let mut data = Data::new();
        after.write(&mut data);
        assert_eq!(State::read(&data), after, "written as read");
        self.secret.put(self.now, after);
    }

    /// What controllers may show now: those that are behind, and what they fell back on when the Secret had none.
    fn shown(&self) -> Vec<Certificate> {
        let first = self.secret.index_at(self.now - LONG_BEHIND);
        let pair = |state: &State| state.shown.as_ref().map(|shown| shown.certificate.clone());
        let before = self.secret.0[..first].iter().rev().find_map(|(_, state)| pair(state));
        let recent: Vec<_> = self.secret.0[first..].iter().map(|(_, state)| pair(state)).collect();
        // Without a pair in it the one of before stays.
        let fallen_back = recent.first().is_some_and(Option::is_none).then_some(before).flatten();
        fallen_back.into_iter().chain(recent.into_iter().flatten()).collect()
    }

    fn check(&mut self) {
        if self.entries.iter().any(|entry| entry.latest().is_empty()) {
            self.excused_until = self.now + BEHIND + 1;
        }
        for shown in self.shown() {
            for entry in &self.entries {
                for bundle in entry.within(self.now, BEHIND) {
                    assert!(
                        self.now < self.excused_until || is_trusted(&shown, bundle, self.now),
                        "{} s: {shown:?} is not trusted by {bundle:?}",
                        self.now - START
                    );
                }
            }
        }
    }

    fn interfere(&mut self, fault: Fault) {
        let drop_keys = |data: &mut Data, keys: &[&str]| keys.iter().for_each(|key| drop(data.remove(*key)));
        let mut data = Data::new();
        self.secret.latest().write(&mut data);
        match fault {
            Fault::SecretDeleted => data.clear(),
            Fault::KeysLost(which) => {
                let all = ["ca.crt", "ca.key", "next.crt", "next.key", "tls.crt", "tls.key"];
                let lost: Vec<&str> = (0..6).filter(|bit| which & (1 << bit) != 0).map(|bit| all[bit]).collect();
                drop_keys(&mut data, &lost);
            }
            Fault::BundleLost(entry) => {
                self.entries[entry % 2].put(self.now, Vec::new());
            }
            Fault::Renamed => {
                self.names = if self.names.len() == 1 {
                    vec!["a.example".to_owned(), NAME.to_owned()]
                } else {
                    vec![NAME.to_owned()]
                }
            }
        }
        self.secret.put(self.now, State::read(&data));
    }
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    SecretDeleted,
    KeysLost(u8),
    BundleLost(usize),
    Renamed,
}

fn faults() -> impl Strategy<Value = Fault> {
    prop_oneof![
        Just(Fault::SecretDeleted),
        (1u8..64).prop_map(Fault::KeysLost),
        (0usize..2).prop_map(Fault::BundleLost),
        Just(Fault::Renamed),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// For half a day: two authorities and more, dozens of certificates.
    #[test]
    fn what_may_be_shown_is_trusted_by_whatever_may_trust(
        passes in prop::collection::vec((1i64..40, 0usize..2, 0i64..BEHIND, prop::bool::weighted(0.2)), 1200),
        faults in prop::collection::vec((faults(), 0usize..1200), 0..4),
    ) {
        let mut world = World::new();
        for (at, (gap, who, behind, crashes)) in passes.into_iter().enumerate() {
            world.now += gap;
            world.check();
            // A fault on top of one that is being mended is nobody's promise.
            for (fault, when) in &faults {
                if *when == at && world.now > START + 600 && world.now > world.excused_until {
                    world.interfere(*fault);
                    world.check();
                }
            }
            world.pass(who, behind, crashes);
            world.check();
        }
        prop_assert!(world.state().bundle.len() <= 6, "{:?}", world.state().bundle);
        // What was broken in the last passes has still to be mended.
        for _ in 0..20 {
            world.now += BEHIND;
            world.pass(0, 0, false);
            world.check();
        }
        let state = world.state();
        prop_assert!(state.authority.is_some() && state.shown.is_some());
        prop_assert!(state.bundle.len() <= 6, "{:?}", state.bundle);
    }

    /// From anything that is not forbidden to lie there, everything is right in the end.
    #[test]
    fn every_state_is_mended(
        parts in prop::collection::vec((0usize..8, 0usize..6), 0..6),
        ages in prop::collection::vec(0i64..20_000, 3),
        entries in prop::collection::vec(0usize..4, 2),
    ) {
        let made: Vec<State> = ages.iter().map(|age| {
            apply(&Step::Make, &State::default(), &[NAME.to_owned()], START - age, &lifetimes()).expect("it can be made")
        }).collect();
        let keys = ["ca.crt", "ca.key", "next.crt", "next.key", "tls.crt", "tls.key"];
        let mut world = World::new();
        let mut data = Data::new();
        for (from, key) in parts {
            let mut source = Data::new();
            if let Some(state) = made.get(from) { state.write(&mut source); }
            let bytes = source.get(match keys[key] { "next.crt" => "ca.crt", "next.key" => "ca.key", other => other });
            data.insert(keys[key].to_owned(), bytes.cloned().unwrap_or_default());
        }
        world.secret.put(START, State::read(&data));
        for (entry, which) in entries.into_iter().enumerate() {
            world.entries[entry].put(START, made.get(which).map(|state| state.bundle.clone()).unwrap_or_default());
        }
        for _ in 0..200 {
            world.now += 5;
            world.pass(0, 0, false);
        }
        let state = world.state();
        let shown = state.shown.expect("a certificate").certificate;
        for entry in &world.entries {
            prop_assert!(verifies(&shown, entry.latest(), world.now));
        }
    }
}

#[test]
fn nothing_is_done_until_it_is_time() {
    let mut world = World::new();
    world.pass(0, 0, false);
    let life = lifetimes();
    // Nobody trusted anything: at once.
    let first = world.state();
    assert_eq!((first.bundle.len(), first.shown.is_some(), world.secret.0.len()), (1, true, 2));
    world.pass(0, 0, false);
    let trust = world.trust(0);
    assert_eq!(plan(&first, &trust, &world.names, START, &life), Plan::Wait(Duration::from_mins(40)));
    assert!(matches!(plan(&first, &trust, &world.names, START + 2400, &life), Plan::Do(Step::Issue)));
    let late = START + 9600;
    let Plan::Do(Step::Issue) = plan(&first, &trust, &world.names, late, &life) else {
        panic!("the certificate first: it may be about to end")
    };
    let renewed = apply(&Step::Issue, &first, &world.names, late, &life).expect("it can be made");
    assert!(matches!(plan(&renewed, &trust, &world.names, late, &life), Plan::Do(Step::Announce { .. })));
    let other = ["other.example".to_owned()];
    assert!(matches!(plan(&first, &trust, &other, START, &life), Plan::Do(Step::Issue)));
    assert!(verifies(&first.shown.expect("a certificate").certificate, &first.bundle, START));
}

#[test]
fn a_key_is_never_shown() {
    let made = apply(&Step::Make, &State::default(), &[NAME.to_owned()], START, &lifetimes()).expect("it can be made");
    let text = format!("{made:?}");
    assert!(text.contains("(a key)") && !text.contains("PRIVATE"), "{text}");
}
