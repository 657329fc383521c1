//! Allocations by the name of their pod, on all nodes.

use crate::allocation::read;
use crate::call::Caller;
use crate::path;
use crate::shared::Shared;
use crate::watch::allocations;
use ipam_core::{Allocation, StoreError, Stored};
use kube::api::{DynamicObject, ListParams, ObjectList};
use serde_json::Value;

/// One that cannot be read is an error: the pod may well have an address.
pub(crate) async fn named(
    caller: &Caller,
    shared: &Shared,
    namespace: &str,
    pod: &str,
) -> Result<Vec<Stored<Allocation>>, StoreError> {
    let wanted = ListParams::default().fields(&format!("spec.pod.name={}", path::name(pod)?));
    let list: ObjectList<DynamicObject> = caller.json(allocations().list(&wanted)).await?;
    let of =
        |object: &DynamicObject| object.data.pointer("/spec/pod/namespace").and_then(Value::as_str) == Some(namespace);
    let found = list.items.iter().filter(|object| of(object));
    found.map(|object| shared.put(read(object)?).map_err(StoreError::Refused)).collect()
}
