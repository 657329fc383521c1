//! Changes of an object as JSON patch operations (RFC 6902) against what was sent.

use super::Object;
use crate::pointer;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Sets (`Some`) and removes labels. Those that are as wanted are left out, so a second time there is nothing to do.
pub(super) fn labels(object: &Object, wanted: &BTreeMap<&str, Option<&str>>) -> Vec<Value> {
    let Some(labels) = object.labels() else {
        let all: BTreeMap<_, _> = wanted.iter().filter_map(|(key, value)| Some((*key, (*value)?))).collect();
        let add = json!({"op": "add", "path": "/metadata/labels", "value": all});
        return if all.is_empty() { Vec::new() } else { vec![add] };
    };
    let change = |(key, value): (&str, Option<&str>)| {
        let path = format!("/metadata/labels/{}", pointer::part(key));
        match (labels.get(key).map(String::as_str), value) {
            (found, wanted) if found == wanted => None,
            (_, Some(wanted)) => Some(json!({"op": "add", "path": path, "value": wanted})),
            (_, None) => Some(json!({"op": "remove", "path": path})),
        }
    };
    wanted.iter().map(|(key, value)| (*key, *value)).filter_map(change).collect()
}

/// Adds a finalizer. Of one that is on its way out nobody is asked.
pub(super) fn finalizer(object: &Object, name: &str) -> Option<Value> {
    match object.finalizers() {
        None => Some(json!({"op": "add", "path": "/metadata/finalizers", "value": [name]})),
        Some(all) if all.iter().any(|one| one == name) => None,
        Some(_) => Some(json!({"op": "add", "path": "/metadata/finalizers/-", "value": name})),
    }
}

/// Sets a field of the spec that is absent or null.
pub(super) fn default(object: &Object, field: &str, value: &Value) -> Option<Value> {
    let absent = object.spec.as_object()?.get(field).is_none_or(Value::is_null);
    absent.then(|| json!({"op": "add", "path": format!("/spec/{field}"), "value": value}))
}
