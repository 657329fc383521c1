//! Events on the own Node: what people see in `kubectl describe node`.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use runtime::Chain;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Hands events to the one task that writes them. Cheap to clone.
///
/// When the API server is away and the queue is full, an event is dropped: the log has the same words.
#[derive(Clone, Debug)]
pub(crate) struct Events(mpsc::Sender<Event>);

const QUEUE: usize = 64;
const PUBLISH: Duration = Duration::from_secs(5);
/// The API server cuts longer notes off with an error (`events.k8s.io/v1`, `note`).
const NOTE_BYTES_MAX: usize = 1024;

/// A queue for events on the Node `node`, and the task that writes them.
pub(crate) fn writer(client: Client, node: String) -> (Events, impl Future<Output = Result<(), Infallible>>) {
    let (events, queue) = mpsc::channel(QUEUE);
    (Events(events), run(client, node, queue))
}

async fn run(client: Client, node: String, mut queue: mpsc::Receiver<Event>) -> Result<(), Infallible> {
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
    while let Some(event) = queue.recv().await {
        match timeout(PUBLISH, recorder.publish(&event, &own)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(error = %Chain(&error), reason = event.reason, "cannot write an event"),
            Err(_) => tracing::debug!(reason = event.reason, "the API server does not take an event"),
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

    fn send(&self, type_: EventType, reason: &'static str, note: &str) {
        let end = note.floor_char_boundary(NOTE_BYTES_MAX);
        let note = note.get(..end).map(ToOwned::to_owned);
        let event = Event { type_, reason: reason.to_owned(), note, action: "Advertise".to_owned(), secondary: None };
        if self.0.try_send(event).is_err() {
            tracing::debug!(reason, "too many events; this one is only in the log");
        }
    }
}
