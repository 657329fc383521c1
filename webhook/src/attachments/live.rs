//! Asks the API server for one attachment: once for all who want it, not often, and not again for a while.

use super::config::Config;
use super::watch::configs;
use crate::injection::Attachment;
use crate::metrics::{Metrics, count};
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use k8s_api::multus::Reference;
use kube::api::DynamicObject;
use kube::{Api, Client};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// An answer is good for this long; by then the watch has it.
const KEPT: Duration = Duration::from_secs(1);
/// Requests in any such time…
const WINDOW: Duration = Duration::from_secs(1);
/// …at most.
const REQUESTS: usize = 10;
/// An API server that takes longer is not there.
const ANSWER: Duration = Duration::from_secs(2);

/// The API server could not be asked.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum NotAsked {
    #[error("too many attachments are looked up that do not exist")]
    TooMany,
    #[error("the API server did not answer")]
    Failed(#[source] Arc<kube::Error>),
    #[error("the API server did not answer within {ANSWER:?}")]
    Slow,
}

/// Cheap to clone; all clones ask together.
#[derive(Clone)]
pub(crate) struct Live {
    client: Client,
    flights: Arc<Mutex<Flights>>,
    metrics: Metrics,
}

/// The answer to one request, for everybody who waits for it.
type Flight = Shared<BoxFuture<'static, Result<Attachment, NotAsked>>>;

#[derive(Default)]
struct Flights {
    /// Those that are on their way or came in a moment ago; as many as `REQUESTS` allows for.
    by_name: HashMap<(String, String), (Instant, Flight)>,
    started: VecDeque<Instant>,
}

impl Live {
    pub(crate) fn new(client: Client, metrics: Metrics) -> Self {
        Self { client, flights: Arc::default(), metrics }
    }

    /// What stands behind a name now.
    pub(crate) async fn ask(&self, reference: &Reference) -> Result<Attachment, NotAsked> {
        let answer = match self.flight(reference) {
            Ok(flight) => flight.await,
            Err(error) => Err(error),
        };
        let outcome = match &answer {
            Ok(Attachment::Missing) => "missing",
            Ok(_) => "found",
            Err(NotAsked::TooMany) => "too-many",
            Err(NotAsked::Failed(_) | NotAsked::Slow) => "failed",
        };
        count(&self.metrics.lookups, outcome);
        answer
    }

    fn flight(&self, Reference { namespace, name, .. }: &Reference) -> Result<Flight, NotAsked> {
        let now = Instant::now();
        // A panic elsewhere leaves whole entries behind, never half ones.
        let mut flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        flights.by_name.retain(|_, (started, _)| now.duration_since(*started) < KEPT + ANSWER);
        let key = (namespace.clone(), name.clone());
        if let Some((started, flight)) = flights.by_name.get(&key)
            && (flight.peek().is_none() || now.duration_since(*started) < KEPT)
        {
            return Ok(flight.clone());
        }
        while flights.started.front().is_some_and(|started| now.duration_since(*started) >= WINDOW) {
            flights.started.pop_front();
        }
        if flights.started.len() >= REQUESTS {
            return Err(NotAsked::TooMany);
        }
        flights.started.push_back(now);
        let flight = ask(self.client.clone(), key.clone()).boxed().shared();
        flights.by_name.insert(key, (now, flight.clone()));
        Ok(flight)
    }
}

async fn ask(client: Client, (namespace, name): (String, String)) -> Result<Attachment, NotAsked> {
    let api = Api::<DynamicObject>::namespaced_with(client, &namespace, &configs());
    let object = timeout(ANSWER, api.get_opt(&name)).await.map_err(|_| NotAsked::Slow)?;
    let object = object.map_err(|error| NotAsked::Failed(Arc::new(error)))?;
    Ok(object.map_or(Attachment::Missing, |object| Config::of(&object).by_own_name()))
}
