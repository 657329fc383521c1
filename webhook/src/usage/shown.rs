//! A pool as the API server shows it, beside its addresses.

use crate::objects::ip_pool::recorded;
use k8s_api::names::POOL_FINALIZER;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::Value;

/// What it says of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Shown {
    pub(crate) uid: String,
    pub(super) version: String,
    pub(super) generation: i64,
    /// It has a deletionTimestamp.
    pub(super) deleting: bool,
    /// All of them, ours too.
    pub(super) finalizers: Vec<String>,
    /// `status.allocatedIPCount` and `status.totalIPCount`.
    pub(super) counts: [Option<i64>; 2],
    pub(super) conditions: Vec<Condition>,
    /// Records of an earlier system; that of one that cannot be read is `None`.
    pub(crate) records: Option<usize>,
}

impl Shown {
    pub(crate) fn of(object: &DynamicObject) -> Self {
        let status = object.data.get("status").unwrap_or(&Value::Null);
        let count = |field: &str| status.get(field).and_then(Value::as_i64);
        let conditions = status.get("conditions").cloned().unwrap_or_default();
        Self {
            uid: object.uid().unwrap_or_default(),
            version: object.resource_version().unwrap_or_default(),
            generation: object.metadata.generation.unwrap_or_default(),
            deleting: object.metadata.deletion_timestamp.is_some(),
            finalizers: object.finalizers().to_vec(),
            counts: [count("allocatedIPCount"), count("totalIPCount")],
            conditions: serde_json::from_value(conditions).unwrap_or_default(),
            records: recorded(status).ok().map(|records| records.len()),
        }
    }

    /// Ours holds it.
    pub(super) fn guarded(&self) -> bool {
        self.finalizers.iter().any(|one| one == POOL_FINALIZER)
    }
}
