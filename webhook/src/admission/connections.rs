//! The open connections, and which of them goes when there are too many.

use axum_server::ConnectionShutdown;
use prometheus_client::metrics::counter::Counter;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;

/// An API server keeps a few and opens more in a burst.
const MOST: usize = 1024;

/// No connection can be closed for another one: none has got as far as a request.
#[derive(Debug, thiserror::Error)]
#[error("too many connections")]
pub(super) struct TooMany;

/// Cheap to clone; all clones know the same connections.
#[derive(Clone, Debug)]
pub(super) struct Connections {
    known: Arc<Mutex<Known>>,
    /// Those that were closed for others, or not let in.
    refused: Counter,
}

#[derive(Debug, Default)]
struct Known {
    next: u64,
    open: HashMap<u64, Open>,
}

#[derive(Debug)]
struct Open {
    used: Instant,
    answering: usize,
    /// Known with the first request.
    close: Option<ConnectionShutdown>,
}

/// A connection's place; free again when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    id: u64,
    connections: Connections,
}

/// A request that is being answered.
#[derive(Debug)]
pub(super) struct Answering(Arc<Place>);

impl Connections {
    pub(super) fn new(refused: Counter) -> Self {
        Self { known: Arc::default(), refused }
    }

    /// A place for one more. When all are taken, the connection that has been idle for longest is closed for it, so that
    /// whoever opens many and holds them keeps nobody out.
    pub(super) fn enter(&self) -> Result<Place, TooMany> {
        let mut known = self.known();
        if known.open.len() >= MOST {
            self.refused.inc();
            let idle = known.open.iter().filter(|(_, open)| open.answering == 0 && open.close.is_some());
            let longest = idle.min_by_key(|(_, open)| open.used).map(|(id, _)| *id).ok_or(TooMany)?;
            if let Some(close) = known.open.remove(&longest).and_then(|open| open.close) {
                close.shutdown();
            }
        }
        let id = known.next;
        known.next += 1;
        known.open.insert(id, Open { used: Instant::now(), answering: 0, close: None });
        Ok(Place { id, connections: self.clone() })
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // A panic elsewhere leaves whole entries behind, never half ones.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// A request has come on this connection.
    pub(super) fn answer(self: &Arc<Self>, close: Option<&ConnectionShutdown>) -> Answering {
        if let Some(open) = self.connections.known().open.get_mut(&self.id) {
            open.answering += 1;
            open.close = close.cloned();
        }
        Answering(Arc::clone(self))
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        if let Some(open) = self.0.connections.known().open.get_mut(&self.0.id) {
            open.answering = open.answering.saturating_sub(1);
            open.used = Instant::now();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.known().open.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_bounded_and_come_back() {
        let connections = Connections::new(Counter::default());
        let mut places: Vec<_> = (0..MOST).map(|_| connections.enter().expect("room")).collect();
        assert!(connections.enter().is_err(), "none has got as far as a request, so none can be closed");
        assert_eq!(connections.refused.get(), 1);
        places.pop();
        assert!(connections.enter().is_ok());
    }
}
