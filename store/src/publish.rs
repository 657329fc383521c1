//! Endpoints: read live, and written at exactly one version.

use crate::call::Caller;
use crate::endpoint::{read, written};
use crate::path;
use crate::pod::Metadata;
use crate::write::{body, preconditions};
use ipam_core::{Endpoint, StoreError, Version};
use k8s_api::crd::endpoint::SpiderEndpoint;
use kube::Resource;
use kube::api::{DeleteParams, DynamicObject, GetParams, Patch, PatchParams, PostParams};
use kube::core::Request;
use serde_json::Value;

fn endpoints(namespace: &str) -> Result<Request, StoreError> {
    path::within(&SpiderEndpoint::api_version(&()), namespace, &SpiderEndpoint::plural(&()))
}

pub(crate) async fn find(
    caller: &Caller,
    namespace: &str,
    name: &str,
) -> Result<Option<(Endpoint, Version)>, StoreError> {
    let asked = endpoints(namespace)?.get(path::name(name)?, &GetParams::default());
    caller.find::<DynamicObject>(asked).await?.as_ref().map(read).transpose()
}

/// Whether it has finalizers, or is being deleted.
pub(crate) async fn is_held(caller: &Caller, namespace: &str, name: &str) -> Result<bool, StoreError> {
    let asked = endpoints(namespace)?.get_metadata(path::name(name)?, &GetParams::default());
    let found = caller.find::<Metadata>(asked).await?.map(|found| found.metadata).unwrap_or_default();
    Ok(found.deletion_timestamp.is_some() || found.finalizers.is_some_and(|all| !all.is_empty()))
}

/// Deletes, at exactly that version. After an unknown outcome nobody knows.
pub(crate) async fn remove(caller: &Caller, namespace: &str, name: &str, version: &Version) -> Result<(), StoreError> {
    let params = DeleteParams::default().preconditions(preconditions(version));
    let asked = endpoints(namespace)?.delete(path::name(name)?, &params);
    caller.json::<Value>(asked).await.map(drop)
}

/// An unknown outcome is followed by one live read: what is there, and is the same, was written.
pub(crate) async fn publish(
    caller: &Caller,
    replaces: Option<&Version>,
    endpoint: &Endpoint,
) -> Result<Version, StoreError> {
    let object = written(endpoint, replaces).map_err(StoreError::Refused)?;
    let (namespace, name) = (&endpoint.pod.namespace, path::name(&endpoint.pod.name)?);
    let collection = endpoints(namespace)?;
    let asked = match replaces {
        None => collection.create(&PostParams::default(), body(&object)),
        Some(_) => collection.patch(name, &PatchParams::default(), &Patch::Merge(&object)),
    };
    match caller.object(asked).await {
        Ok(object) => read(&object).map(|(_, version)| version),
        Err(StoreError::Unknown(why)) => match find(caller, namespace, name).await {
            Ok(Some((found, version))) => found_out(endpoint, &found, version, replaces, why),
            Ok(None) if replaces.is_some() => Err(StoreError::Gone),
            Ok(None) | Err(_) => Err(StoreError::Unknown(why)),
        },
        Err(error) => Err(error),
    }
}

fn found_out(
    wanted: &Endpoint,
    found: &Endpoint,
    version: Version,
    replaces: Option<&Version>,
    why: String,
) -> Result<Version, StoreError> {
    if replaces == Some(&version) {
        // It may still be on its way.
        return Err(StoreError::Unknown(why));
    }
    // Of the controller the object keeps kind and name alone.
    let same = Endpoint { owner: None, ..found.clone() } == Endpoint { owner: None, ..wanted.clone() };
    if same { Ok(version) } else { Err(StoreError::Conflict) }
}
