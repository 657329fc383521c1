use super::*;
use ipam_core::{Node, Pod, State};
use proptest::prelude::*;

const NOW: Duration = Duration::from_secs(1);

fn object(name: &str, uid: &str, resource: u64) -> Object {
    let allocation = Allocation {
        pool: "p".to_owned(),
        address: name.parse().expect("an address"),
        node: Node::default(),
        pod: Pod { uid: format!("pod-{uid}"), ..Pod::default() },
        owner: None,
        container_id: format!("c{resource}"),
        interface: String::new(),
        network: String::new(),
        netns: None,
        boot_id: String::new(),
        flow_id: String::new(),
        state: State::Held,
        provider: None,
        detached: false,
        release_request: None,
    };
    Object { name: name.to_owned(), version: numbered(uid, resource), what: Ok(allocation) }
}

fn numbered(uid: &str, resource: u64) -> Numbered {
    Numbered { uid: uid.to_owned(), resource }
}

fn versions(index: &Index) -> Vec<(String, u64)> {
    let all = index.all().into_iter().map(|stored| stored.version);
    all.map(|version| (version.uid, version.resource.parse().expect("a number"))).collect()
}

const A: &str = "10.0.0.1";

#[test]
fn what_is_older_is_dropped_and_seen_is_when_a_version_came_first() {
    let mut index = Index::default();
    assert!(index.put(object(A, "a", 9), NOW));
    assert!(!index.put(object(A, "a", 8), NOW * 2));
    assert!(!index.put(object(A, "a", 9), NOW * 3));
    assert_eq!(index.get(A).map(|stored| stored.seen), Some(NOW));
    assert!(index.put(object(A, "a", 10), NOW * 4), "as numbers, not as texts");
    assert_eq!(index.get(A).map(|stored| stored.seen), Some(NOW * 4));
    assert_eq!(index.of_container("c9"), [], "it is found by what it has now");
    assert_eq!(index.of_container("c10").len(), 1);
    assert_eq!(index.of_pod("pod-a").len(), 1);
}

#[test]
fn an_own_deletion_is_remembered_until_the_watch_has_passed_it() {
    let mut index = Index::default();
    index.put(object(A, "a", 5), NOW);
    assert!(index.removed(A, &numbered("a", 5)));
    assert!(!index.put(object(A, "a", 6), NOW), "the watch still shows it");
    assert!(!index.sweep(&["a".to_owned()].into(), 6), "as does a list that is older");
    assert!(index.put(object(A, "b", 8), NOW), "the next object of the name is another");
    index.delete(A, &numbered("a", 7));
    index.passed(7);
    assert_eq!(versions(&index), [("b".to_owned(), 8)]);
    assert!(!index.put(object(A, "a", 6), NOW));
    assert!(index.removed.is_empty(), "what has been passed is forgotten");
    index.removed(A, &numbered("a", 5));
    assert!(index.removed.is_empty(), "also if the answer comes late");
}

#[test]
fn a_late_answer_does_not_bring_back_what_others_deleted() {
    let mut index = Index::default();
    index.delete(A, &numbered("a", 7));
    index.passed(7);
    assert!(!index.put(object(A, "a", 6), NOW));
    assert!(index.put(object(A, "a", 8), NOW), "but what came back to this node is back");
}

#[test]
fn a_list_takes_away_what_it_does_not_have_unless_that_is_newer() {
    let mut index = Index::default();
    index.put(object("10.0.0.1", "a", 5), NOW);
    index.put(object("10.0.0.2", "b", 6), NOW);
    index.put(object("10.0.0.3", "c", 20), NOW);
    assert!(index.sweep(&["b".to_owned()].into(), 10));
    assert_eq!(versions(&index), [("b".to_owned(), 6), ("c".to_owned(), 20)]);
    assert!(!index.put(object("10.0.0.1", "a", 5), NOW));
    assert!(!index.put(object("10.0.0.4", "d", 9), NOW), "an answer about what had ended before the list");
}

#[test]
fn what_cannot_be_read_is_told_and_found_nowhere() {
    let mut index = Index::default();
    index.put(object(A, "a", 5), NOW);
    let broken = Object { what: Err("odd".to_owned()), ..object(A, "a", 6) };
    assert!(index.put(broken, NOW));
    assert_eq!((index.all(), index.of_pod("pod-a"), index.get(A)), (vec![], vec![], None));
    assert_eq!(index.unreadable(), [(A.to_owned(), "odd".to_owned())]);
    assert!(index.put(object(A, "a", 7), NOW), "until it is mended");
    assert_eq!(index.unreadable(), []);
}

/// One thing that happens to the one server, or to what it tells us.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Somebody creates, changes or deletes, or moves it off the node and back.
    Create(usize),
    Change(usize),
    Delete(usize),
    Move(usize),
    /// We do; our answer arrives at once, or after so many steps.
    OwnCreate(usize, usize),
    OwnChange(usize, usize),
    OwnDelete(usize, usize),
    /// The watch shows one more event.
    Watch,
    /// A list is made; it arrives whole, and the watch goes on from it.
    List,
}

fn step() -> impl Strategy<Value = Step> {
    let which = 0..3_usize;
    let late = 0..6_usize;
    prop_oneof![
        which.clone().prop_map(Step::Create),
        which.clone().prop_map(Step::Change),
        which.clone().prop_map(Step::Delete),
        which.clone().prop_map(Step::Move),
        (which.clone(), late.clone()).prop_map(|(which, late)| Step::OwnCreate(which, late)),
        (which.clone(), late.clone()).prop_map(|(which, late)| Step::OwnChange(which, late)),
        (which, late).prop_map(|(which, late)| Step::OwnDelete(which, late)),
        Just(Step::Watch),
        Just(Step::Watch),
        Just(Step::Watch),
        Just(Step::List),
    ]
}

/// A server with three names, and an index that hears of it late.
#[derive(Default)]
struct World {
    revision: u64,
    objects: BTreeMap<usize, (String, u64, bool)>,
    /// What a watch shows: name, uid, revision, and whether it is there.
    events: Vec<(usize, String, u64, bool)>,
    watched: usize,
    answers: Vec<(usize, usize, String, u64, bool)>,
    index: Index,
    clock: u32,
}

fn name(which: usize) -> String {
    format!("10.0.0.{which}")
}

impl World {
    fn now(&self) -> Duration {
        NOW * self.clock
    }

    fn write(&mut self, which: usize, next: Option<(String, bool)>) -> u64 {
        self.revision += 1;
        let before = self.objects.remove(&which);
        if let Some((uid, here)) = next {
            self.objects.insert(which, (uid.clone(), self.revision, here));
            if here || before.as_ref().is_some_and(|(.., here)| *here) {
                self.events.push((which, uid, self.revision, here));
            }
        } else if let Some((uid, _, true)) = before {
            self.events.push((which, uid, self.revision, false));
        }
        self.revision
    }

    fn answer(&mut self, which: usize, uid: &str, resource: u64, there: bool) {
        let now = self.now();
        if there {
            self.index.put(object(&name(which), uid, resource), now);
        } else {
            self.index.removed(&name(which), &numbered(uid, resource));
        }
    }

    fn own(&mut self, late: usize, which: usize, uid: String, resource: u64, there: bool) {
        if late == 0 {
            self.answer(which, &uid, resource, there);
            let held = self.index.get(&name(which)).map(|stored| stored.version.uid.clone());
            assert_eq!(held, there.then_some(uid), "an own write is known at once");
        } else {
            self.answers.push((late, which, uid, resource, there));
        }
    }

    fn step(&mut self, step: Step) {
        self.clock += 1;
        let mut due = Vec::new();
        self.answers.retain_mut(|answer| {
            answer.0 -= 1;
            if answer.0 == 0 {
                due.push(answer.clone());
            }
            answer.0 > 0
        });
        for (_, which, uid, resource, there) in due {
            self.answer(which, &uid, resource, there);
        }
        let found = |world: &Self, which| world.objects.get(&which).cloned();
        match step {
            Step::Create(which) | Step::OwnCreate(which, _) if self.objects.contains_key(&which) => {}
            Step::Create(which) => {
                let uid = format!("u{}", self.revision);
                self.write(which, Some((uid, true)));
            }
            Step::OwnCreate(which, late) => {
                let uid = format!("u{}", self.revision);
                let resource = self.write(which, Some((uid.clone(), true)));
                self.own(late, which, uid, resource, true);
            }
            Step::Change(which) => {
                if let Some((uid, _, here)) = found(self, which) {
                    self.write(which, Some((uid, here)));
                }
            }
            Step::OwnChange(which, late) => {
                if let Some((uid, _, true)) = found(self, which) {
                    let resource = self.write(which, Some((uid.clone(), true)));
                    self.own(late, which, uid, resource, true);
                }
            }
            Step::Move(which) => {
                if let Some((uid, _, here)) = found(self, which) {
                    self.write(which, Some((uid, !here)));
                }
            }
            Step::Delete(which) => drop(self.write(which, None)),
            Step::OwnDelete(which, late) => {
                if let Some((uid, resource, true)) = found(self, which) {
                    self.write(which, None);
                    self.own(late, which, uid, resource, false);
                }
            }
            Step::Watch => {
                let Some((which, uid, resource, there)) = self.events.get(self.watched).cloned() else { return };
                self.watched += 1;
                let now = self.now();
                if there {
                    self.index.put(object(&name(which), &uid, resource), now);
                } else {
                    self.index.delete(&name(which), &numbered(&uid, resource));
                }
                self.index.passed(resource);
            }
            Step::List => {
                let now = self.now();
                let here = self.objects.iter().filter(|(_, (.., here))| *here);
                let here: Vec<_> = here.map(|(which, (uid, resource, _))| (*which, uid.clone(), *resource)).collect();
                for (which, uid, resource) in &here {
                    self.index.put(object(&name(*which), uid, *resource), now);
                }
                self.index.sweep(&here.into_iter().map(|(_, uid, _)| uid).collect(), self.revision);
                self.watched = self.events.len();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]
    /// Whatever overtakes what: once all has arrived, the index is the server's state.
    #[test]
    fn the_index_ends_as_the_server(steps in prop::collection::vec(step(), 0..60)) {
        let mut world = World::default();
        for step in steps {
            world.step(step);
        }
        for _ in 0..10 {
            world.step(Step::Watch);
        }
        while world.watched < world.events.len() {
            world.step(Step::Watch);
        }
        let there = world.objects.values().filter(|(.., here)| *here);
        let there: BTreeMap<_, _> = there.map(|(uid, resource, _)| (uid.clone(), *resource)).collect();
        prop_assert_eq!(versions(&world.index).into_iter().collect::<BTreeMap<_, _>>(), there);
        prop_assert!(world.index.removed.is_empty(), "{:?}", world.index.removed);
    }
}
