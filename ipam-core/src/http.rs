//! The one client of providers: the contract over HTTP.
//!
//! ```text
//! Call ──> Servers (which, where, by what credentials) ──> Link (connections of one server) ── POST ──> status, body ──> Outcome
//! ```

mod body;
mod credentials;
mod error;
mod link;
mod servers;
mod status;

pub use servers::{Servers, Target};

use crate::{ALLOCATE, AllocateRequest, Bound, Call, Outcome, Provider, RELEASE, Release, bound};
use error::{CallError, Operation};
use link::Link;
use reqwest::Response;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Told of each call: `allocate` or `release`; `answered`, `rejected`, `unsent` or `unknown`; how long it took.
pub type Watcher = Box<dyn Fn(&'static str, &'static str, Duration) + Send + Sync>;

/// Asks providers over HTTP.
pub struct HttpProvider {
    /// Never goes back and counts sleep of the machine, as [`crate::Host::now`].
    now: fn() -> Duration,
    watcher: Watcher,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    servers: Arc<Servers>,
    links: BTreeMap<String, Arc<Link>>,
}

impl fmt::Debug for HttpProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpProvider").finish_non_exhaustive()
    }
}

/// Between two tries to connect, for as long as a request has certainly not left. A provider that is being replaced is back then.
const CONNECT_PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_millis(800)];

impl HttpProvider {
    /// Serves nobody until it is told whom.
    #[must_use]
    pub fn new(now: fn() -> Duration, watcher: Watcher) -> Self {
        Self { now, watcher, state: Mutex::default() }
    }

    /// Whom to call from now on. Calls that are on their way end as they began.
    pub fn set(&self, servers: Servers) {
        let mut state = self.state();
        let State { servers: before, links } = &mut *state;
        links.retain(|id, _| servers.named.get(id).is_some_and(|now| before.named.get(id) == Some(now)));
        *before = Arc::new(servers);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Replaced as a whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connections to a server, by its credentials as they are now.
    async fn link(&self, id: &str) -> Result<Arc<Link>, CallError> {
        let (servers, known) = {
            let state = self.state();
            (Arc::clone(&state.servers), state.links.get(id).cloned())
        };
        let target = servers.named.get(id).ok_or_else(|| CallError::Unserved(id.to_owned()))?;
        let credentials = credentials::read(target.credentials.as_deref()).await?;
        if let Some(known) = known.filter(|known| known.is_of(&credentials)) {
            return Ok(known);
        }
        let link = Arc::new(Link::new(target, credentials)?);
        let mut state = self.state();
        // One that was made by what held before is for this call alone.
        if Arc::ptr_eq(&state.servers, &servers) {
            state.links.insert(id.to_owned(), Arc::clone(&link));
        }
        drop(state);
        Ok(link)
    }

    /// Sends it once, or not at all: only what certainly never left is tried again.
    async fn send(&self, operation: Operation, call: &Call, body: &impl Serialize) -> Result<Response, CallError> {
        let path = match operation {
            Operation::Allocate => ALLOCATE,
            Operation::Release => RELEASE,
        };
        let link = self.link(&call.server).await?;
        let mut pauses = CONNECT_PAUSES.into_iter();
        loop {
            let left = call.deadline.at.saturating_sub((self.now)());
            let sent = link.post(path, left, body).await;
            match (sent, pauses.next()) {
                (Err(error @ CallError::Connect(_)), Some(pause)) if pause < left => {
                    drop(error);
                    tokio::time::sleep(pause).await;
                }
                (sent, _) => return sent,
            }
        }
    }

    /// Within its time.
    async fn timed<T>(
        &self,
        operation: Operation,
        call: &Call,
        ask: impl Future<Output = Result<T, CallError>>,
    ) -> Outcome<T> {
        let began = (self.now)();
        let left = call.deadline.at.saturating_sub(began);
        let ended = tokio::time::timeout(left, ask).await;
        let ended = ended.unwrap_or(Err(call.deadline.limit.map_or(CallError::Parent, CallError::Timeout)));
        let outcome = match ended {
            Ok(answer) => Outcome::Answered(answer),
            Err(error) => error.outcome(operation),
        };
        let name = match &outcome {
            Outcome::Answered(_) => "answered",
            Outcome::Rejected(_) => "rejected",
            Outcome::Unsent(_) => "unsent",
            Outcome::Unknown(_) => "unknown",
        };
        (self.watcher)(operation.name(), name, (self.now)().saturating_sub(began));
        outcome
    }
}

impl Provider for HttpProvider {
    async fn allocate(&self, call: &Call) -> Outcome<Bound> {
        let operation = Operation::Allocate;
        let ask = async {
            let response = self.send(operation, call, &AllocateRequest::new(call)).await?;
            let status = response.status();
            let body = body::whole(response).await?;
            status::judge(status, &body)?;
            bound(&body, call).map_err(CallError::Bad)
        };
        self.timed(operation, call, ask).await
    }

    async fn release(&self, call: &Call) -> Outcome<()> {
        let operation = Operation::Release;
        let ask = async {
            let response = self.send(operation, call, &Release::new(call)).await?;
            let status = response.status();
            if status.is_success() {
                // Its body says nothing; read, the connection can be used again.
                body::rest(response).await;
                return Ok(());
            }
            status::judge(status, &body::whole(response).await?)
        };
        self.timed(operation, call, ask).await
    }

    fn limit(&self) -> Duration {
        self.state().servers.limit
    }

    fn serves(&self, server: &str) -> bool {
        self.state().servers.named.contains_key(server)
    }
}
