//! The pod's networks, written back.

use super::Pod;
use k8s_api::multus::NETWORKS;
use serde_json::{Value, json};

/// The operation (RFC 6902) that makes `networks` the pod's, against what was sent: parents that are missing or null are
/// made, other annotations stay.
pub(crate) fn annotate(pod: &Pod<'_>, networks: &str) -> Value {
    let all = json!({NETWORKS: networks});
    let (path, value) = match (pod.has_metadata(), pod.has_annotations()) {
        (false, _) => ("/metadata".to_owned(), json!({"annotations": all})),
        (true, false) => ("/metadata/annotations".to_owned(), all),
        // RFC 6901: in a path `~` is `~0` and `/` is `~1`.
        (true, true) => {
            (format!("/metadata/annotations/{}", NETWORKS.replace('~', "~0").replace('/', "~1")), json!(networks))
        }
    };
    json!({"op": "add", "path": path, "value": value})
}
