//! Allocations by the name of their pod or of its machine, on all nodes.

use crate::allocation::read;
use crate::call::Caller;
use crate::path;
use crate::shared::Shared;
use crate::watch::allocations;
use ipam_core::{Allocation, Owner, StoreError, Stored};
use kube::api::{DynamicObject, ListParams, ObjectList};
use serde_json::Value;

/// One that cannot be read is an error: the pod may well have an address.
pub(crate) async fn named(
    caller: &Caller,
    shared: &Shared,
    namespace: &str,
    pod: &str,
    owner: Option<&Owner>,
) -> Result<Vec<Stored<Allocation>>, StoreError> {
    let machine = owner.filter(|owner| owner.is_machine());
    let selector = match machine {
        Some(machine) => format!("spec.owner.name={}", path::name(&machine.name)?),
        None => format!("spec.pod.name={}", path::name(pod)?),
    };
    let wanted = ListParams::default().fields(&selector);
    let list: ObjectList<DynamicObject> = caller.json(allocations().list(&wanted)).await?;
    let is = |object: &DynamicObject, at, text: &str| object.data.pointer(at).and_then(Value::as_str) == Some(text);
    let of = |object: &&DynamicObject| {
        is(object, "/spec/pod/namespace", namespace)
            && machine.is_none_or(|machine| is(object, "/spec/owner/uid", &machine.uid))
    };
    let found = list.items.iter().filter(of);
    found.map(|object| shared.put(read(object)?).map_err(StoreError::Refused)).collect()
}
