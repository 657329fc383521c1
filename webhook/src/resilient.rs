//! Watches that outlive every error.

use futures::{Stream, StreamExt, stream};
use kube::runtime::watcher::{self, Config, Event};
use runtime::{Chain, Pauses};
use std::time::Duration;
use tokio::time::sleep;

/// The server ends each watch after this, so that one that died unnoticed is noticed.
pub(crate) const RENEW_SECONDS: u32 = 120;
const PAUSE_MIN: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// A kind that is not there may be installed at any time.
const ABSENT: Duration = Duration::from_secs(5);
const PAGE: u32 = 500;

/// What is asked of the API server.
pub(crate) fn wanted() -> Config {
    Config::default().timeout(RENEW_SECONDS).page_size(PAGE)
}

/// The stream with its errors told, once each, and waited out; `None` where the kind does not exist.
pub(crate) fn resilient<K>(
    events: impl Stream<Item = Result<Event<K>, watcher::Error>>,
    what: &'static str,
) -> impl Stream<Item = Option<Event<K>>> {
    let state = (Box::pin(events), pauses(), String::new(), Duration::ZERO);
    stream::unfold(state, move |(mut events, mut pauses, mut said, mut rest)| async move {
        loop {
            sleep(std::mem::take(&mut rest)).await;
            match events.next().await? {
                Ok(event) => {
                    if matches!(event, Event::InitDone | Event::Apply(_) | Event::Delete(_)) {
                        pauses.reset();
                        said.clear();
                    }
                    return Some((Some(event), (events, pauses, said, rest)));
                }
                Err(error) => {
                    let absent = is_absent(&error);
                    let text = Chain(&error).to_string();
                    if said != text && absent {
                        tracing::info!("no {what} on this cluster; looking again from time to time");
                    } else if said != text {
                        tracing::warn!(error = text, "cannot watch {what}; what is known stays in force");
                    }
                    said = text;
                    if absent {
                        // Told at once: whoever waits for the first list need not wait for more.
                        return Some((None, (events, pauses, said, ABSENT)));
                    }
                    rest = pauses.pause();
                }
            }
        }
    })
}

/// The API server does not know the kind.
fn is_absent(error: &watcher::Error) -> bool {
    use watcher::Error::{InitialListFailed, WatchStartFailed};
    matches!(error, InitialListFailed(kube::Error::Api(status)) | WatchStartFailed(kube::Error::Api(status)) if status.code == 404)
}

/// Between two tries, growing.
pub(crate) fn pauses() -> Pauses {
    Pauses::new(PAUSE_MIN, PAUSE_MAX)
}
