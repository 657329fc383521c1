//! Events on attachments and pools: what people see in `kubectl describe`.

use crate::attachments::{Config, configs};
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
/// When the API server is slow and the queue is full, an event is dropped: conditions and log have the same words.
#[derive(Clone, Debug)]
pub(crate) struct Events(mpsc::Sender<(ObjectReference, Event)>);

const QUEUE: usize = 256;
const PUBLISH: Duration = Duration::from_secs(5);
/// The API server refuses longer notes (`events.k8s.io/v1`, `note`).
const NOTE_BYTES_MAX: usize = 1024;

/// A queue for events, and the task that writes them in the name of this controller.
pub(crate) fn writer(client: Client, instance: String) -> (Events, impl Future<Output = Result<(), Infallible>>) {
    let (events, mut queue) = mpsc::channel(QUEUE);
    let reporter = Reporter { controller: "spiderpool-controller".to_owned(), instance: Some(instance) };
    let recorder = Recorder::new(client, reporter);
    let run = async move {
        while let Some((regarding, event)) = queue.recv().await {
            match timeout(PUBLISH, recorder.publish(&event, &regarding)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::debug!(error = %Chain(&error), reason = event.reason, "an event was not written");
                }
                Err(_) => tracing::debug!(reason = event.reason, "an event was not written within {PUBLISH:?}"),
            }
        }
        std::future::pending().await
    };
    (Events(events), run)
}

impl Events {
    /// Something that a person should look at; `note` says what to do.
    pub(crate) fn warn(&self, config: &Config, reason: &str, note: &str) {
        self.send(config, EventType::Warning, reason, note);
    }

    /// Something that was asked for has happened.
    pub(crate) fn tell(&self, config: &Config, reason: &str, note: &str) {
        self.send(config, EventType::Normal, reason, note);
    }

    /// The same of an object that is no attachment; `action` is what was tried.
    pub(crate) fn warn_of(&self, regarding: ObjectReference, reason: &str, action: &str, note: &str) {
        self.put(regarding, EventType::Warning, reason, action, note);
    }

    /// The same of something that was done as it should be.
    pub(crate) fn tell_of(&self, regarding: ObjectReference, reason: &str, action: &str, note: &str) {
        self.put(regarding, EventType::Normal, reason, action, note);
    }

    fn send(&self, config: &Config, type_: EventType, reason: &str, note: &str) {
        let kind = configs();
        let regarding = ObjectReference {
            api_version: Some(kind.api_version),
            kind: Some(kind.kind),
            namespace: Some(config.namespace.clone()),
            name: Some(config.name.clone()),
            uid: Some(config.uid.clone()),
            ..ObjectReference::default()
        };
        self.put(regarding, type_, reason, "Define", note);
    }

    fn put(&self, regarding: ObjectReference, type_: EventType, reason: &str, action: &str, note: &str) {
        let note = note.get(..note.floor_char_boundary(NOTE_BYTES_MAX)).unwrap_or_default();
        let event = Event {
            type_,
            reason: reason.to_owned(),
            note: Some(note.to_owned()),
            action: action.to_owned(),
            secondary: None,
        };
        if self.0.try_send((regarding, event)).is_err() {
            tracing::debug!(reason, "too many events; this one is only in the log");
        }
    }
}
