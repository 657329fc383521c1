//! Events on the own Node: what people see in `kubectl describe node`.

use crate::hash::fnv1a;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use runtime::{Chain, Pauses};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

/// Hands events to the one task that writes them. Cheap to clone.
///
/// When the API server is away and the queue is full, an event is dropped: the log has the same words.
#[derive(Clone, Debug)]
pub(crate) struct Events(mpsc::Sender<Event>);

const QUEUE: usize = 64;
const PUBLISH: Duration = Duration::from_secs(5);
/// A warning that the API server does not take is offered again, the others behind it wait. An API server that restarts
/// is back by then.
const TRIES: u32 = 6;
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// The API server cuts longer notes off with an error (`events.k8s.io/v1`, `note`).
const NOTE_BYTES_MAX: usize = 1024;

/// A queue for events on the Node `node`, and the task that writes them.
pub(crate) fn writer(client: Client, node: String) -> (Events, impl Future<Output = Result<(), Infallible>>) {
    let (events, queue) = mpsc::channel(QUEUE);
    (Events(events), run(client, node, queue))
}

/// An event was not written.
#[derive(Debug, thiserror::Error)]
enum NotWritten {
    #[error("cannot write an event")]
    Refused(#[source] kube::Error),
    #[error("the API server did not take an event within {PUBLISH:?}")]
    Slow,
}

async fn run(client: Client, node: String, queue: mpsc::Receiver<Event>) -> Result<(), Infallible> {
    let reporter = Reporter { controller: "spiderpool-agent".to_owned(), instance: Some(node.clone()) };
    let recorder = Recorder::new(client, reporter);
    // Events of a Node carry its name as UID, as those of the kubelet do: `kubectl describe node` selects by it.
    let own = ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Node".to_owned()),
        name: Some(node.clone()),
        uid: Some(node),
        ..ObjectReference::default()
    };
    let publish = |event: Arc<Event>| {
        let (recorder, own) = (recorder.clone(), own.clone());
        async move {
            let published = timeout(PUBLISH, recorder.publish(&event, &own)).await;
            published.map_err(|_| NotWritten::Slow)?.map_err(NotWritten::Refused)
        }
    };
    write(queue, publish).await
}

async fn write<Published: Future<Output = Result<(), NotWritten>>>(
    mut queue: mpsc::Receiver<Event>,
    publish: impl Fn(Arc<Event>) -> Published,
) -> Result<(), Infallible> {
    while let Some(event) = queue.recv().await.map(Arc::new) {
        let tries = if event.type_ == EventType::Warning { TRIES } else { 1 };
        let mut pauses = Pauses::new(PAUSE_MIN, PAUSE_MAX);
        for left in (0..tries).rev() {
            let Err(error) = publish(Arc::clone(&event)).await else { break };
            tracing::debug!(error = %Chain(&error), reason = event.reason, left, "an event was not written");
            if left > 0 {
                sleep(pauses.pause()).await;
            }
        }
    }
    std::future::pending().await
}

impl Events {
    /// Something that a person should look at; `note` says what to do.
    pub(crate) fn warn(&self, reason: &'static str, note: &str) {
        self.send(EventType::Warning, reason, note);
    }

    /// Something that was asked for has happened.
    pub(crate) fn tell(&self, reason: &'static str, note: &str) {
        self.send(EventType::Normal, reason, note);
    }

    /// For tests of those who tell something.
    #[cfg(test)]
    pub(crate) fn nowhere() -> Self {
        Self(mpsc::channel(1).0)
    }

    fn send(&self, type_: EventType, reason: &'static str, note: &str) {
        if self.0.try_send(event(type_, reason, note)).is_err() {
            tracing::debug!(reason, "too many events; this one is only in the log");
        }
    }
}

/// The recorder counts an event up instead of writing it if all but its note was there before. Two resources with one
/// fault, or two faults of one resource, are two texts that people need, so the action stands in for the note.
fn event(type_: EventType, reason: &'static str, note: &str) -> Event {
    let note = note.get(..note.floor_char_boundary(NOTE_BYTES_MAX)).unwrap_or_default();
    let action = format!("Advertise-{:016x}", fnv1a(note.as_bytes()));
    Event { type_, reason: reason.to_owned(), note: Some(note.to_owned()), action, secondary: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::collections::BTreeSet;
    use std::future::ready;

    #[test]
    fn each_text_is_an_event_of_its_own_and_the_same_text_is_not() {
        let action = |note: &str| event(EventType::Warning, "NetworkResourceNotRegistered", note).action;
        let notes = ["a/x: the kubelet refused", "a/y: the kubelet refused", "a/x: the kubelet is slow", ""];
        let actions: BTreeSet<String> = notes.into_iter().map(action).collect();
        assert_eq!(actions.len(), notes.len());
        assert!(actions.iter().all(|action| action.len() <= 128), "{actions:?}");
        assert_eq!(action(notes[0]), action(notes[0]));
    }

    #[test]
    fn a_long_note_is_cut_between_characters() {
        let note = event(EventType::Normal, "r", &"\u{e4}".repeat(NOTE_BYTES_MAX)).note.expect("a note");
        assert_eq!(note.len(), NOTE_BYTES_MAX);
        let odd = event(EventType::Normal, "r", &format!("x{}", "\u{e4}".repeat(NOTE_BYTES_MAX))).note.expect("a note");
        assert_eq!(odd.len(), NOTE_BYTES_MAX - 1);
    }

    /// Writes a warning, another event and a warning while the API server refuses the first `refusals` of what it is
    /// offered; the notes in the order in which they were offered.
    async fn offered(refusals: usize) -> Vec<String> {
        let (sender, queue) = mpsc::channel(QUEUE);
        let events = Events(sender);
        events.warn("r", "one");
        events.tell("r", "two");
        events.warn("r", "three");
        let offered = RefCell::new(Vec::new());
        let writing = write(queue, |event| {
            let mut offered = offered.borrow_mut();
            offered.push(event.note.clone().unwrap_or_default());
            ready(if offered.len() > refusals { Ok(()) } else { Err(NotWritten::Slow) })
        });
        assert!(timeout(Duration::from_mins(10), writing).await.is_err(), "it waits for more");
        offered.into_inner()
    }

    #[tokio::test(start_paused = true)]
    async fn a_warning_is_offered_again_a_few_times() {
        assert_eq!(offered(0).await, ["one", "two", "three"]);
        assert_eq!(offered(2).await, ["one", "one", "one", "two", "three"]);
        let for_ever = offered(usize::MAX).await;
        let count = |note| for_ever.iter().filter(|offered| *offered == note).count();
        assert_eq!((count("one"), count("two"), count("three")), (6, 1, 6));
    }
}
