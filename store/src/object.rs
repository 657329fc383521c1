//! What every object has: name and version.

use ipam_core::{StoreError, Version};
use kube::api::ObjectMeta;

/// A version that can be ordered. API servers write resourceVersions as numbers that grow over all objects of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Numbered {
    pub(crate) uid: String,
    pub(crate) resource: u64,
}

impl Numbered {
    /// Of an object that an API server sent.
    pub(crate) fn of(metadata: &ObjectMeta) -> Result<Self, StoreError> {
        let uid = metadata.uid.clone().filter(|uid| !uid.is_empty());
        let resource = metadata.resource_version.as_deref().and_then(number);
        match (uid, resource) {
            (Some(uid), Some(resource)) => Ok(Self { uid, resource }),
            (uid, _) => {
                let (name, version) = (&metadata.name, &metadata.resource_version);
                Err(StoreError::Unknown(format!("an object without a version: {name:?} {uid:?} {version:?}")))
            }
        }
    }

    /// As flows hand it on.
    pub(crate) fn version(&self) -> Version {
        Version { uid: self.uid.clone(), resource: self.resource.to_string() }
    }
}

/// A resourceVersion as a number.
pub(crate) fn number(text: &str) -> Option<u64> {
    text.parse().ok()
}
