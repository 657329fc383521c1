//! Asks the API server for one attachment.

use super::config::Config;
use super::watch::configs;
use crate::flights::{ANSWER, Flights, NotAsked};
use crate::injection::Attachment;
use crate::metrics::{Metrics, count};
use k8s_api::multus::Reference;
use kube::api::DynamicObject;
use kube::{Api, Client};
use std::sync::Arc;
use tokio::time::timeout;

/// Cheap to clone; all clones ask together.
#[derive(Clone)]
pub(crate) struct Live {
    client: Client,
    flights: Flights<(String, String), Attachment>,
    metrics: Metrics,
}

impl Live {
    pub(crate) fn new(client: Client, metrics: Metrics) -> Self {
        Self { client, flights: Flights::default(), metrics }
    }

    /// What stands behind a name now.
    pub(crate) async fn ask(&self, Reference { namespace, name, .. }: &Reference) -> Result<Attachment, NotAsked> {
        let key = (namespace.clone(), name.clone());
        let answer = self.flights.answer(&key, || ask(self.client.clone(), key.clone())).await;
        let outcome = match &answer {
            Ok(Attachment::Missing) => "missing",
            Ok(_) => "found",
            Err(NotAsked::TooMany) => "too-many",
            Err(NotAsked::Failed(_) | NotAsked::Slow) => "failed",
        };
        count(&self.metrics.lookups, outcome);
        answer
    }
}

async fn ask(client: Client, (namespace, name): (String, String)) -> Result<Attachment, NotAsked> {
    let api = Api::<DynamicObject>::namespaced_with(client, &namespace, &configs());
    let object = timeout(ANSWER, api.get_opt(&name)).await.map_err(|_| NotAsked::Slow)?;
    let object = match object {
        // Without rights nobody will answer this controller any more: they went with the release, a moment before it. What
        // the cluster has of ours was known by its watch; nobody's pods are held up for the rest.
        Err(kube::Error::Api(refusal)) if matches!(refusal.code, 401 | 403) => {
            tracing::warn!(%refusal, "may not look attachments up; taken as missing");
            None
        }
        object => object.map_err(|error| NotAsked::Failed(Arc::new(error)))?,
    };
    Ok(object.map_or(Attachment::Missing, |object| Config::of(&object).by_own_name()))
}
