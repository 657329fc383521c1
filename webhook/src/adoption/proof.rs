//! Whether every API server refuses what an earlier system writes.
//!
//! A policy takes effect on each server by itself, some time after it was made. So each is asked by its own address, to do in the
//! shape of that system what it must refuse, without doing it.

use futures::future::try_join_all;
use k8s_api::crd::endpoint::SpiderEndpoint;
use k8s_api::crd::ip_pool::SpiderIPPool;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::core::Request;
use kube::{Api, Client, Config, Resource};
use runtime::Chain;
use serde_json::{Value, json};
use std::fmt::Display;
use std::net::IpAddr;
use std::time::Duration;
use tokio::time::timeout;

/// One request. A server that takes longer is not there.
const ANSWER: Duration = Duration::from_secs(5);
/// In the certificate of every API server.
const SERVER_NAME: &str = "kubernetes.default.svc";
/// How API servers name the policy whose refusal counts.
const POLICY: &str = "ValidatingAdmissionPolicy 'spiderpool-adoption'";
/// Of the endpoint that no server may create.
const PROBE: &str = "spiderpool-probe";

/// Nobody knows whether what an earlier system knows stands still.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotProven {
    #[error(
        "nobody knows where the API servers are: Service default/kubernetes cannot be read; name them in ipam.adoption.apiServers"
    )]
    Unknown(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error(
        "API server {place} cannot be reached from the controller; see to that, or name the servers in ipam.adoption.apiServers"
    )]
    Unreachable {
        place: String,
        #[source]
        why: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error(
        "API server {place} does not refuse yet what an earlier system writes, {what}; is ValidatingAdmissionPolicy spiderpool-adoption there, with its binding?"
    )]
    NotRefused { place: String, what: &'static str },
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Why(String);

impl NotProven {
    fn unreachable(place: &str, why: impl Display) -> Self {
        Self::Unreachable { place: place.to_owned(), why: Box::new(Why(why.to_string())) }
    }
}

/// Who is asked, and how.
pub(super) struct Prover {
    /// As the API server is found otherwise.
    pub(super) config: Config,
    pub(super) client: Client,
    /// The controller's own.
    pub(super) namespace: String,
}

impl Prover {
    /// Asks all of `places`, or those of the Service. `pools` have records.
    pub(super) async fn prove(&self, places: &[String], pools: &[&str]) -> Result<(), NotProven> {
        let found;
        let places = if places.is_empty() {
            found = self.servers().await?;
            &found
        } else {
            places
        };
        try_join_all(places.iter().map(|place| self.ask(place, pools))).await?;
        Ok(())
    }

    /// `host:port` of each.
    async fn servers(&self) -> Result<Vec<String>, NotProven> {
        let unknown = |why: String| NotProven::Unknown(Box::new(Why(why)));
        let api = Api::<EndpointSlice>::namespaced(self.client.clone(), "default");
        let wanted = ListParams::default().labels("kubernetes.io/service-name=kubernetes");
        let slices = timeout(ANSWER, api.list(&wanted)).await;
        let slices = slices.map_err(|_| unknown(format!("no answer within {ANSWER:?}")))?;
        let slices = slices.map_err(|error| unknown(Chain(&error).to_string()))?;
        let mut places = Vec::new();
        for slice in slices {
            let ports: Vec<_> = slice.ports.iter().flatten().filter_map(|port| port.port).collect();
            for address in slice.endpoints.iter().flat_map(|endpoint| &endpoint.addresses) {
                let host = match address.parse::<IpAddr>() {
                    Ok(IpAddr::V6(v6)) => format!("[{v6}]"),
                    _ => address.clone(),
                };
                places.extend(ports.iter().map(|port| format!("{host}:{port}")));
            }
        }
        if places.is_empty() { Err(unknown("it has no endpoints".to_owned())) } else { Ok(places) }
    }

    async fn ask(&self, place: &str, pools: &[&str]) -> Result<(), NotProven> {
        let mut config = self.config.clone();
        config.cluster_url =
            format!("https://{place}").parse().map_err(|error| NotProven::unreachable(place, error))?;
        config.tls_server_name = Some(SERVER_NAME.to_owned());
        let client = Client::try_from(config).map_err(|error| NotProven::unreachable(place, Chain(&error)))?;
        let endpoints = Request::new(SpiderEndpoint::url_path(&(), Some(&self.namespace)));
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        let endpoint = json!({
            "apiVersion": SpiderEndpoint::api_version(&()), "kind": SpiderEndpoint::kind(&()),
            "metadata": {"name": PROBE}, "status": {"current": {"uid": "", "node": "", "ips": []}},
        });
        let create = endpoints.create(&dry, endpoint.to_string().into_bytes());
        if !refused(&client, place, create).await? {
            return Err(NotProven::NotRefused { place: place.to_owned(), what: "endpoints" });
        }
        let all = Request::new(SpiderIPPool::url_path(&(), None));
        let dry = PatchParams { dry_run: true, ..PatchParams::default() };
        let records = Patch::Merge(json!({"status": {"allocatedIPs": "{}"}}));
        // One may be gone by now, or be refused for another reason.
        for pool in pools {
            if refused(&client, place, all.patch_subresource("status", pool, &dry, &records)).await? {
                return Ok(());
            }
        }
        Err(NotProven::NotRefused { place: place.to_owned(), what: "records of pools" })
    }
}

/// Whether our policy is what refuses it.
async fn refused(
    client: &Client,
    place: &str,
    request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
) -> Result<bool, NotProven> {
    let request = request.map_err(|error| NotProven::unreachable(place, Chain(&error)))?;
    let answer = timeout(ANSWER, client.request::<Value>(request)).await;
    match answer.map_err(|_| NotProven::unreachable(place, format!("no answer within {ANSWER:?}")))? {
        Err(kube::Error::Api(status)) if status.message.contains(POLICY) => Ok(true),
        Ok(_) => Ok(false),
        Err(kube::Error::Api(status)) => {
            tracing::info!(place, answer = status.message, "an API server refuses for another reason");
            Ok(false)
        }
        Err(error) => Err(NotProven::unreachable(place, Chain(&error))),
    }
}
