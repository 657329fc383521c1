//! What tests and people ask beside the contract.

use super::answer::{json_of, problem};
use super::shared::{CannotAdd, Handle, Shared};
use super::state_file::listed;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use bytes::Bytes;
use http::StatusCode;
use ipam_core::Address;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

/// `?since=`
#[derive(Debug, Default, Deserialize)]
pub(super) struct After {
    #[serde(default)]
    since: u64,
}

pub(super) async fn health() -> Response {
    json_of(&json!({ "status": "ok" }))
}

pub(super) async fn records(State(shared): State<Arc<Shared>>, after: Query<After>) -> Response {
    json_of(&json!({ "records": Handle::new(shared).records(after.since) }))
}

pub(super) async fn bindings(State(shared): State<Arc<Shared>>) -> Response {
    json_of(&listed(&shared.lock().cloud))
}

/// One binding, in the words of a mock that others know.
pub(super) async fn one(State(shared): State<Arc<Shared>>, Path(ip): Path<String>) -> Response {
    let Ok(address) = ip.parse::<Address>() else {
        return problem(StatusCode::BAD_REQUEST, "invalid ipAddress");
    };
    let inner = shared.lock();
    let Some(binding) = inner.cloud.get(address) else {
        return problem(StatusCode::NOT_FOUND, "ip not found");
    };
    json_of(&json!({ "entry": {
        "nodeName": binding.node,
        "ipAddress": binding.address.to_string(),
        "subnet": binding.subnet.to_string(),
        "parentNicMac": binding.parent.to_string(),
        "mac": binding.mac.to_string(),
        "vlanID": binding.vlan,
    }}))
}

pub(super) async fn faults(State(shared): State<Arc<Shared>>) -> Response {
    json_of(&json!({ "faults": Handle::new(shared).faults() }))
}

pub(super) async fn add_faults(State(shared): State<Arc<Shared>>, body: Bytes) -> Response {
    let handle = Handle::new(shared);
    let added = str::from_utf8(&body).map_err(|_| "body: it is no UTF-8".to_owned());
    match added.and_then(|text| handle.add_faults(text).map_err(|why: CannotAdd| why.to_string())) {
        Ok(()) => json_of(&json!({ "faults": handle.faults() })),
        Err(why) => problem(StatusCode::BAD_REQUEST, why),
    }
}

pub(super) async fn clear_faults(State(shared): State<Arc<Shared>>) -> Response {
    Handle::new(Arc::clone(&shared)).clear_faults();
    faults(State(shared)).await
}

/// Records, faults and bindings: all gone, as after a start without a state file.
pub(super) async fn reset(State(shared): State<Arc<Shared>>) -> Response {
    {
        let mut inner = shared.lock();
        inner.records.clear();
        inner.faults.clear();
    }
    forget(State(shared)).await
}

pub(super) async fn forget(State(shared): State<Arc<Shared>>) -> Response {
    match Handle::new(shared).forget() {
        Ok(()) => json_of(&json!({ "bindings": [] })),
        Err(error) => problem(StatusCode::INTERNAL_SERVER_ERROR, error),
    }
}

pub(super) async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    let bindings = shared.lock().cloud.bindings().count();
    shared.metrics.exposition(bindings)
}
