//! The pod's networks, written back.

use super::Pod;
use crate::pointer;
use k8s_api::multus::NETWORKS;
use serde_json::{Value, json};

/// The operation (RFC 6902) that makes `networks` the pod's, against what was sent: parents that are missing or null are
/// made, other annotations stay.
pub(crate) fn annotate(pod: &Pod<'_>, networks: &str) -> Value {
    let all = json!({NETWORKS: networks});
    let (path, value) = match (pod.has_metadata(), pod.has_annotations()) {
        (false, _) => ("/metadata".to_owned(), json!({"annotations": all})),
        (true, false) => ("/metadata/annotations".to_owned(), all),
        (true, true) => (format!("/metadata/annotations/{}", pointer::part(NETWORKS)), json!(networks)),
    };
    json!({"op": "add", "path": path, "value": value})
}
