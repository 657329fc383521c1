//! One object, followed by its name.

use crate::resilient::RENEW_SECONDS;
use futures::{Stream, StreamExt, stream};
use kube::runtime::watcher::{self, Config, Event};
use kube::{Api, Resource};
use runtime::{Chain, Pauses};
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::time::Duration;
use tokio::time::sleep;

const PAUSE_MIN: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(20);

/// What is known of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Known<K> {
    /// Not seen yet, or the watch has broken.
    #[default]
    Unknown,
    Absent,
    There(K),
}

/// The object called `name`, whenever it changes.
pub(super) fn follow<K>(api: Api<K>, name: &str, what: &'static str) -> impl Stream<Item = Known<K>> + use<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let wanted = Config::default().fields(&format!("metadata.name={name}")).timeout(RENEW_SECONDS);
    let events = watcher::watcher(api, wanted).boxed();
    let pauses = Pauses::new(PAUSE_MIN, PAUSE_MAX);
    let state = Following { events, listed: Known::Absent, pauses, said: String::new(), rest: Duration::ZERO };
    stream::unfold(state, move |mut state| async move {
        loop {
            sleep(std::mem::take(&mut state.rest)).await;
            match state.events.next().await? {
                Ok(event) => {
                    if let Some(known) = state.take(event) {
                        return Some((known, state));
                    }
                }
                Err(error) => {
                    state.rest = state.pauses.pause();
                    let text = Chain(&error).to_string();
                    if state.said != text {
                        tracing::warn!(error = text, "cannot watch {what}; if rights are missing, upgrade the release");
                        state.said = text;
                    }
                    return Some((Known::Unknown, state));
                }
            }
        }
    })
}

struct Following<K> {
    events: stream::BoxStream<'static, watcher::Result<Event<K>>>,
    listed: Known<K>,
    pauses: Pauses,
    said: String,
    rest: Duration,
}

impl<K> Following<K> {
    fn take(&mut self, event: Event<K>) -> Option<Known<K>> {
        let known = match event {
            Event::Init => {
                self.listed = Known::Absent;
                return None;
            }
            Event::InitApply(object) => {
                self.listed = Known::There(object);
                return None;
            }
            Event::InitDone => std::mem::replace(&mut self.listed, Known::Absent),
            Event::Apply(object) => Known::There(object),
            Event::Delete(_) => Known::Absent,
        };
        self.pauses.reset();
        self.said.clear();
        Some(known)
    }
}
