//! What the namespace of a pod says of injection.

use super::facts::Facts;
use super::known::Namespaces;
use crate::attachments::{SYNC, WAIT};
use crate::flights::{ANSWER, Flights, NotAsked};
use crate::metrics::{Metrics, count};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};
use std::sync::Arc;
use tokio::sync::watch;
use tokio::time::timeout;

/// It cannot be known what a pod is given; what happens to it then is the webhook's failurePolicy.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unresolved {
    #[error("the namespaces of the cluster are not known yet; try again")]
    NotSynced,
    #[error("cannot tell which annotations namespace {namespace:.100} has; try again")]
    NotAsked { namespace: String, source: NotAsked },
}

/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct Lookup {
    latest: watch::Receiver<Namespaces>,
    client: Client,
    /// A budget of its own: names that pods invent for attachments do not use it up.
    flights: Flights<String, Facts>,
    metrics: Metrics,
}

impl Lookup {
    pub(crate) fn new(latest: watch::Receiver<Namespaces>, client: Client, metrics: Metrics) -> Self {
        Self { latest, client, flights: Flights::default(), metrics }
    }

    /// What is known of all of them.
    pub(crate) fn latest(&self) -> &watch::Receiver<Namespaces> {
        &self.latest
    }

    /// The values of the annotations of a namespace: from the watch at once, else a moment later, else by asking. The
    /// namespace of a pod that is created exists, so one that is not known is new.
    pub(crate) async fn inject(&self, namespace: &str) -> Result<[Option<Arc<str>>; 2], Unresolved> {
        let mut latest = self.latest.clone();
        let synced = timeout(SYNC, latest.wait_for(|known| known.synced)).await.is_ok_and(|known| known.is_ok());
        if !synced {
            return Err(Unresolved::NotSynced);
        }
        let known = |known: &Namespaces| known.get(namespace).map(|facts| facts.inject.clone());
        if let Some(found) = known(&self.latest.borrow()) {
            return Ok(found);
        }
        let appeared = async { latest.wait_for(|latest| known(latest).is_some()).await.is_ok() };
        // Late or not: what is known by then is looked at next.
        let _ = timeout(WAIT, appeared).await;
        if let Some(found) = known(&self.latest.borrow()) {
            return Ok(found);
        }
        let answer =
            self.flights.answer(&namespace.to_owned(), || ask(self.client.clone(), namespace.to_owned())).await;
        count(&self.metrics.namespace_lookups, if answer.is_ok() { "answered" } else { "failed" });
        let facts = answer.map_err(|source| Unresolved::NotAsked { namespace: namespace.to_owned(), source })?;
        Ok(facts.inject)
    }
}

/// One that is nowhere has no annotations.
async fn ask(client: Client, namespace: String) -> Result<Facts, NotAsked> {
    let api = Api::<Namespace>::all(client);
    let found = timeout(ANSWER, api.get_metadata_opt(&namespace)).await.map_err(|_| NotAsked::Slow)?;
    let found = found.map_err(|error| NotAsked::Failed(Arc::new(error)))?;
    Ok(found.map(|object| Facts::of(&object.metadata)).unwrap_or_default())
}
