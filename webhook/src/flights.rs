//! Requests for what a watch does not know yet: once for all who want it, not often, and not again for a while.

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// An answer is good for this long; by then the watch has it.
const KEPT: Duration = Duration::from_secs(1);
/// Requests in any such time…
const WINDOW: Duration = Duration::from_secs(1);
/// …at most.
const REQUESTS: usize = 10;
/// An API server that takes longer is not there.
pub(crate) const ANSWER: Duration = Duration::from_secs(2);

/// The API server could not be asked.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum NotAsked {
    #[error("too many names are looked up that are not known")]
    TooMany,
    #[error("the API server did not answer")]
    Failed(#[source] Arc<kube::Error>),
    #[error("the API server did not answer within {ANSWER:?}")]
    Slow,
}

/// Cheap to clone; all clones ask together, within one budget.
#[derive(Clone)]
pub(crate) struct Flights<K, V>(Arc<Mutex<Started<K, V>>>);

/// The answer to one request, for everybody who waits for it.
type Flight<V> = Shared<BoxFuture<'static, Result<V, NotAsked>>>;

struct Started<K, V> {
    /// Those that are on their way or came in a moment ago; as many as `REQUESTS` allows for.
    by_key: HashMap<K, (Instant, Flight<V>)>,
    when: VecDeque<Instant>,
}

impl<K, V> Default for Flights<K, V> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Started { by_key: HashMap::new(), when: VecDeque::new() })))
    }
}

impl<K: Clone + Eq + Hash, V: Clone> Flights<K, V> {
    /// The answer for `key`; `ask` is the request, where one is needed.
    pub(crate) async fn answer<F>(&self, key: &K, ask: impl FnOnce() -> F) -> Result<V, NotAsked>
    where
        F: Future<Output = Result<V, NotAsked>> + Send + 'static,
    {
        self.flight(key, ask)?.await
    }

    fn flight<F>(&self, key: &K, ask: impl FnOnce() -> F) -> Result<Flight<V>, NotAsked>
    where
        F: Future<Output = Result<V, NotAsked>> + Send + 'static,
    {
        let now = Instant::now();
        // A panic elsewhere leaves whole entries behind, never half ones.
        let mut started = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        started.by_key.retain(|_, (began, _)| now.duration_since(*began) < KEPT + ANSWER);
        if let Some((began, flight)) = started.by_key.get(key)
            && (flight.peek().is_none() || now.duration_since(*began) < KEPT)
        {
            return Ok(flight.clone());
        }
        while started.when.front().is_some_and(|began| now.duration_since(*began) >= WINDOW) {
            started.when.pop_front();
        }
        if started.when.len() >= REQUESTS {
            return Err(NotAsked::TooMany);
        }
        started.when.push_back(now);
        let flight = ask().boxed().shared();
        started.by_key.insert(key.clone(), (now, flight.clone()));
        Ok(flight)
    }
}
