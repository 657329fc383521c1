//! Figures of the provider.

use crate::fault::Kind;
use crate::wire::Operation;
use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[derive(Debug)]
pub(super) struct Metrics {
    registry: Registry,
    calls: Family<Call, Counter>,
    faults: Family<Fault, Counter>,
    pub(super) foreign_releases: Counter,
    bindings: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Call {
    operation: &'static str,
    /// `none` when no status was answered.
    code: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Fault {
    kind: String,
}

impl Metrics {
    pub(super) fn new() -> Self {
        let mut registry = Registry::with_prefix("provider_sim");
        let metrics = (Family::default(), Family::default(), Counter::default(), Gauge::default());
        let (calls, faults, foreign_releases, bindings) = metrics;
        registry.register("calls", "Calls, by the status that was answered", Family::clone(&calls));
        registry.register("faults", "Faults that were asked for and done", Family::clone(&faults));
        let foreign = "Releases of an address that was bound for a pod of another UID than the one that they named";
        registry.register("foreign_releases", foreign, Counter::clone(&foreign_releases));
        registry.register("bindings", "Addresses that are bound", Gauge::clone(&bindings));
        Self { registry, calls, faults, foreign_releases, bindings }
    }

    pub(super) fn answered(&self, operation: Operation, status: Option<StatusCode>) {
        let code = status.map_or_else(|| "none".to_owned(), |status| status.as_str().to_owned());
        self.calls.get_or_create(&Call { operation: operation.name(), code }).inc();
    }

    pub(super) fn fault(&self, kind: Kind) {
        self.faults.get_or_create(&Fault { kind: name(kind) }).inc();
    }

    pub(super) fn exposition(&self, bindings: usize) -> Response {
        self.bindings.set(i64::try_from(bindings).unwrap_or(i64::MAX));
        let mut text = String::new();
        if let Err(error) = prometheus_client::encoding::text::encode(&mut text, &self.registry) {
            return super::problem(StatusCode::INTERNAL_SERVER_ERROR, error);
        }
        let kind = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
        let mut response = Response::new(Body::from(text));
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response
    }
}

/// A kind as rules spell it.
pub(super) fn name(kind: Kind) -> String {
    match serde_json::to_value(kind) {
        Ok(serde_json::Value::String(name)) => name,
        Ok(_) | Err(_) => format!("{kind:?}"),
    }
}
