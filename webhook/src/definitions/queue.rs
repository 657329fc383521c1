//! Which attachments have to be looked at, and when.

use crate::attachments::{Config, Index};
use runtime::Pauses;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;
use tokio::time::Instant;

/// Namespace and name of an attachment.
pub(super) type Key = (String, String);

/// After a write that failed, growing.
const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Bounded by the number of attachments: one is in it once, however often it changed.
#[derive(Debug, Default)]
pub(super) struct Queue {
    due: BTreeSet<Key>,
    busy: HashSet<Key>,
    later: BTreeSet<(Instant, Key)>,
    failed: HashMap<Key, Failure>,
    seen: HashMap<Key, Looks>,
}

/// What a plan depends on, by version: the attachment, its definition, and what the definition is left with.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Looks(String, String, Epoch);

/// Changes with everything that concerns all attachments: the configuration, and whether there is Multus.
pub(super) type Epoch = (u64, bool);

/// What came of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The watches will show it.
    Written,
    /// The watches will not show it: look again soon.
    Removed,
    /// It was only said where the attachment stands.
    Told,
    /// Another write was first, or the API server was away.
    Failed,
    /// The API server does not want it, and said why.
    Refused(String),
}

#[derive(Debug)]
struct Failure {
    pauses: Pauses,
    refusal: Option<String>,
}

impl Queue {
    /// Marks what has changed since the last look.
    pub(super) fn look(&mut self, index: &Index, epoch: Epoch) {
        let mut gone = std::mem::take(&mut self.seen);
        for config in index.configs() {
            let key = (config.namespace.clone(), config.name.clone());
            let now = Looks(config.version.clone(), made(index, config), epoch);
            if gone.remove(&key).as_ref() != Some(&now) {
                self.due.insert(key.clone());
            }
            self.seen.insert(key, now);
        }
        for key in gone.into_keys() {
            self.due.remove(&key);
            self.failed.remove(&key);
        }
    }

    /// Takes one that is due and not being written.
    pub(super) fn take(&mut self, now: Instant) -> Option<Key> {
        while self.later.first().is_some_and(|(at, _)| *at <= now) {
            self.due.extend(self.later.pop_first().map(|(_, key)| key));
        }
        let key = self.due.iter().find(|key| !self.busy.contains(*key))?.clone();
        self.due.take(&key)
    }

    /// It is being written.
    pub(super) fn busy(&mut self, key: Key) {
        self.busy.insert(key);
    }

    /// The write has ended; one that failed comes back after a pause.
    pub(super) fn done(&mut self, key: Key, outcome: Outcome, now: Instant) {
        self.busy.remove(&key);
        let refusal = match outcome {
            Outcome::Told => return,
            Outcome::Written => return drop(self.failed.remove(&key)),
            Outcome::Removed => {
                self.failed.remove(&key);
                self.later.insert((now + PAUSE_MIN, key));
                return;
            }
            Outcome::Failed => None,
            Outcome::Refused(text) => Some(text),
        };
        let first = || Failure { pauses: Pauses::new(PAUSE_MIN, PAUSE_MAX), refusal: None };
        let failure = self.failed.entry(key.clone()).or_insert_with(first);
        failure.refusal = refusal;
        self.later.insert((now + failure.pauses.pause(), key));
    }

    /// Nothing is to be done for it.
    pub(super) fn settled(&mut self, key: &Key) {
        self.failed.remove(key);
    }

    /// What the API server said to the last try, if it refused it.
    pub(super) fn refusal(&self, key: &Key) -> Option<&str> {
        self.failed.get(key)?.refusal.as_deref()
    }

    /// When the next pause is over.
    pub(super) fn next(&self) -> Option<Instant> {
        self.later.first().map(|(at, _)| *at)
    }

    /// Forgets what was seen: another controller may have written since.
    pub(super) fn forget(&mut self) {
        *self = Self { busy: std::mem::take(&mut self.busy), ..Self::default() };
    }
}

/// The versions of what stands under the attachment's network name, and who is first to it.
fn made(index: &Index, config: &Config) -> String {
    let definition = index.definition(&config.namespace, &config.network);
    let first = index.of_network(&config.namespace, &config.network).map(|first| first.name.as_str());
    let kind = definition.map_or("-", |definition| definition.version());
    format!("{kind} {}", first.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn config(name: &str, version: &str) -> Config {
        let object = json!({"metadata": {"namespace": "ns", "name": name, "resourceVersion": version}, "spec": {}});
        Config::of(&serde_json::from_value(object).expect("an object"))
    }

    fn key(name: &str) -> Key {
        ("ns".to_owned(), name.to_owned())
    }

    fn taken(queue: &mut Queue, now: Instant) -> Vec<String> {
        std::iter::from_fn(|| queue.take(now)).map(|(_, name)| name).collect()
    }

    #[test]
    fn what_changed_is_due_once() {
        let now = Instant::now();
        let (mut queue, mut index) = (Queue::default(), Index::default());
        index.put_config(config("a", "1"));
        index.put_config(config("b", "1"));
        queue.look(&index, (0, true));
        queue.look(&index, (0, true));
        assert_eq!(taken(&mut queue, now), ["a", "b"]);
        queue.look(&index, (0, true));
        assert_eq!(taken(&mut queue, now), [""; 0], "nothing changed");
        index.put_config(config("b", "2"));
        queue.look(&index, (0, true));
        assert_eq!(taken(&mut queue, now), ["b"]);
        index.put_definition("ns".to_owned(), "a".to_owned(), crate::attachments::Definition::Foreign);
        queue.look(&index, (0, true));
        assert_eq!(taken(&mut queue, now), ["a"]);
        queue.look(&index, (1, true));
        assert_eq!(taken(&mut queue, now), ["a", "b"], "the configuration concerns all");
    }

    #[test]
    fn one_that_is_being_written_waits_and_a_change_meanwhile_is_not_lost() {
        let now = Instant::now();
        let (mut queue, mut index) = (Queue::default(), Index::default());
        index.put_config(config("a", "1"));
        queue.look(&index, (0, true));
        let first = queue.take(now).expect("due");
        queue.busy(first);
        index.put_config(config("a", "2"));
        queue.look(&index, (0, true));
        assert_eq!(queue.take(now), None);
        queue.done(key("a"), Outcome::Written, now);
        assert_eq!(taken(&mut queue, now), ["a"]);
    }

    #[test]
    fn failures_come_back_ever_more_slowly_and_refusals_are_known() {
        let mut now = Instant::now();
        let mut queue = Queue::default();
        let mut pauses = Vec::new();
        for _ in 0..10 {
            queue.done(key("a"), Outcome::Refused("no".to_owned()), now);
            assert_eq!(queue.refusal(&key("a")), Some("no"));
            assert_eq!(queue.take(now), None);
            let next = queue.next().expect("a pause");
            pauses.push(next - now);
            now = next;
            assert_eq!(taken(&mut queue, now), ["a"]);
        }
        assert!((PAUSE_MIN..=2 * PAUSE_MIN).contains(&pauses[0]), "{pauses:?}");
        assert!((PAUSE_MAX / 2..=PAUSE_MAX).contains(&pauses[9]), "{pauses:?}");
        queue.done(key("a"), Outcome::Written, now);
        assert_eq!((queue.refusal(&key("a")), queue.next()), (None, None));
    }
}
