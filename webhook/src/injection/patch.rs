//! The change to the pod, as a JSON patch (RFC 6902) against what was sent.

use super::pod::Container;
use crate::pointer;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Writes `add` into the limits and the requests of the first container, equal in both as extended resources must be.
/// Parents that are missing or null are made; nothing else is touched. Empty when there is nothing to add.
pub(crate) fn patch(first: &Container, add: &BTreeMap<String, u32>) -> Vec<Value> {
    const RESOURCES: &str = "/spec/containers/0/resources";
    if add.is_empty() {
        return Vec::new();
    }
    let all: Map<String, Value> = add.iter().map(|(name, count)| (name.clone(), json!(count.to_string()))).collect();
    let put = |path: String, value: Value| json!({"op": "add", "path": path, "value": value});
    let Some(resources) = &first.resources else {
        return vec![put(RESOURCES.to_owned(), json!({"limits": all, "requests": all}))];
    };
    let mut operations = Vec::new();
    for (part, there) in [("limits", &resources.limits), ("requests", &resources.requests)] {
        if there.is_none() {
            operations.push(put(format!("{RESOURCES}/{part}"), json!(all)));
            continue;
        }
        for (name, count) in &all {
            let name = pointer::part(name);
            operations.push(put(format!("{RESOURCES}/{part}/{name}"), count.clone()));
        }
    }
    operations
}
