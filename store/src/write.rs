//! Writes of allocations. Each is one request; an unknown outcome is followed by one live read.

use crate::allocation::{Object, as_stored, read, written};
use crate::call::Caller;
use crate::name;
use crate::object::{Numbered, number};
use crate::shared::Shared;
use crate::watch::allocations;
use http::Request;
use ipam_core::{Address, Allocation, Reserved, StoreError, Stored, Version};
use k8s_api::names::REPLACES;
use kube::api::{DeleteParams, DynamicObject, GetParams, PostParams, Preconditions};
use kube::core::request;
use serde_json::Value;

type Asked = Result<Request<Vec<u8>>, request::Error>;

/// Creates. An object that is there is another's: this is asked once. After an unknown outcome it is ours if it is of the same
/// flow.
pub(crate) async fn reserve(caller: &Caller, shared: &Shared, new: Allocation) -> Result<Reserved, StoreError> {
    let asked = allocations().create(&PostParams::default(), body(&written(&new, None)));
    match caller.object(asked).await {
        Ok(object) => created(shared, read(&object)?),
        Err(StoreError::Conflict) => Ok(Reserved::Taken),
        Err(StoreError::Unknown(why)) => match live(caller, new.address).await {
            Ok(Some(object)) => ours(shared, &new, read(&object)?),
            // It may still be on its way.
            Ok(None) | Err(_) => Err(StoreError::Unknown(why)),
        },
        Err(error) => Err(error),
    }
}

fn created(shared: &Shared, object: Object) -> Result<Reserved, StoreError> {
    shared.put(object).map(|stored| Reserved::Created(Box::new(stored))).map_err(StoreError::Refused)
}

fn ours(shared: &Shared, new: &Allocation, object: Object) -> Result<Reserved, StoreError> {
    let same = |found: &Allocation| {
        let of = |one: &Allocation| (one.pod.uid.clone(), one.interface.clone(), one.flow_id.clone());
        of(found) == of(new)
    };
    if object.what.as_ref().is_ok_and(same) { created(shared, object) } else { Ok(Reserved::Taken) }
}

/// Replaces, at exactly that version.
pub(crate) async fn advance(
    caller: &Caller,
    shared: &Shared,
    address: Address,
    version: &Version,
    next: Allocation,
) -> Result<Stored<Allocation>, StoreError> {
    if next.address != address {
        return Err(StoreError::Refused(format!("an allocation of {address} cannot become one of {}", next.address)));
    }
    let asked = allocations().replace(&name::of(address), &PostParams::default(), body(&written(&next, Some(version))));
    match caller.object(asked).await {
        Ok(object) => shared.put(read(&object)?).map_err(StoreError::Refused),
        Err(StoreError::Unknown(why)) => match live(caller, address).await {
            Ok(found) => found_out(shared, found, version, next, why),
            Err(_) => Err(StoreError::Unknown(why)),
        },
        Err(StoreError::Gone) => Err(ended(shared, address, version)),
        Err(error) => Err(error),
    }
}

/// What became of a replacement without an answer.
fn found_out(
    shared: &Shared,
    found: Option<DynamicObject>,
    version: &Version,
    next: Allocation,
    why: String,
) -> Result<Stored<Allocation>, StoreError> {
    let address = next.address;
    let Some(found) = found else { return Err(ended(shared, address, version)) };
    let object = read(&found)?;
    if object.version.uid != version.uid {
        return Err(ended(shared, address, version));
    }
    if object.version.version() == *version {
        // It may still be on its way.
        return Err(StoreError::Unknown(why));
    }
    let replaced = found.metadata.annotations.as_ref().and_then(|all| all.get(REPLACES)) == Some(&version.resource);
    let ours = replaced && object.what.is_ok() && object.what == as_stored(next);
    let stored = shared.put(object);
    if ours { stored.map_err(StoreError::Refused) } else { Err(StoreError::Conflict) }
}

/// Deletes, at exactly that version.
pub(crate) async fn remove(
    caller: &Caller,
    shared: &Shared,
    address: Address,
    version: &Version,
) -> Result<(), StoreError> {
    let only = DeleteParams::default().preconditions(preconditions(version));
    let asked = allocations().delete(&name::of(address), &only);
    match caller.json::<Value>(asked).await {
        Ok(answer) => deleted(shared, address, version, &answer),
        Err(StoreError::Gone) => Err(ended(shared, address, version)),
        Err(StoreError::Unknown(why)) => match live(caller, address).await {
            Ok(found) => match found.as_ref().map(read).transpose()? {
                Some(object) if object.version.version() == *version => Err(StoreError::Unknown(why)),
                Some(object) if object.version.uid == version.uid => {
                    // Another version is what the watch shows as well.
                    let _ = shared.put(object);
                    Err(StoreError::Conflict)
                }
                Some(_) | None => {
                    ended(shared, address, version);
                    Ok(())
                }
            },
            Err(_) => Err(StoreError::Unknown(why)),
        },
        Err(error) => Err(error),
    }
}

fn deleted(shared: &Shared, address: Address, version: &Version, answer: &Value) -> Result<(), StoreError> {
    // Of an object that is only marked the API server sends the object, of one that is gone a status.
    if let Some(finalizers) = answer.pointer("/metadata/finalizers") {
        return Err(StoreError::Refused(format!("it is kept by finalizers of others, {finalizers}")));
    }
    ended(shared, address, version);
    Ok(())
}

/// Remembers that there is no object of that UID any more.
fn ended(shared: &Shared, address: Address, version: &Version) -> StoreError {
    let last = number(&version.resource).unwrap_or_default();
    shared.removed(&name::of(address), &Numbered { uid: version.uid.clone(), resource: last });
    StoreError::Gone
}

pub(crate) async fn live(caller: &Caller, address: Address) -> Result<Option<DynamicObject>, StoreError> {
    caller.find(get(address)).await
}

fn get(address: Address) -> Asked {
    allocations().get(&name::of(address), &GetParams::default())
}

/// That object, unchanged.
pub(crate) fn preconditions(version: &Version) -> Preconditions {
    Preconditions { uid: Some(version.uid.clone()), resource_version: Some(version.resource.clone()) }
}

pub(crate) fn body(object: &Value) -> Vec<u8> {
    object.to_string().into_bytes()
}
