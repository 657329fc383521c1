//! Labels that are copies of annotations: what selects attachments by their annotations asks for labels.

use crate::objects::{Object, patch};
use k8s_api::names::INJECT;
use k8s_api::syntax;
use serde_json::Value;
use std::collections::BTreeMap;

/// Copies; and removes what was the copy of an annotation that is gone. A value that is no label value stays where it is,
/// and the check that follows says so.
pub(crate) fn complete(new: &Object, old: Option<&Object>) -> Vec<Value> {
    let mut wanted = BTreeMap::new();
    for key in INJECT {
        let label = new.labels().and_then(|labels| labels.get(key));
        match (new.annotations().get(key), old.and_then(|old| old.annotations().get(key))) {
            (Some(value), _) if syntax::is_label_value(value) => drop(wanted.insert(key, Some(value.as_str()))),
            (None, Some(copied)) if label == Some(copied) => drop(wanted.insert(key, None)),
            _ => {}
        }
    }
    patch::labels(new, &wanted)
}
