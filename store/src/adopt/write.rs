//! The writes. Each may be repeated, by whoever goes on.

use super::{ADOPTED, Adopter, Due, OldPool};
use crate::shared::Shared;
use crate::{path, write};
use ipam_core::{Allocation, Binding, Reserved, StoreError};
use k8s_api::crd::endpoint::SpiderEndpoint;
use k8s_api::crd::ip_pool::SpiderIPPool;
use k8s_api::names::{POOL_FINALIZER, REPLACES};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::api::{DynamicObject, GetParams, Patch, PatchParams};
use kube::core::Request;
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Others write the counts of a pool meanwhile.
const TRIES: usize = 5;

/// What became of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Imported {
    /// The allocation was made.
    Made,
    /// Something is there; the next plan says whose it is.
    Taken,
}

impl Adopter {
    /// Makes the allocation of a record, with ids that nobody has had before.
    pub async fn import(&self, allocation: Allocation, fresh: impl Fn() -> String) -> Result<Imported, StoreError> {
        let shared = Shared::new(None, Arc::new(|| Duration::ZERO));
        let provider = allocation.provider.map(|binding| Binding { bind_id: fresh(), ..binding });
        let new = Allocation { flow_id: fresh(), provider, ..allocation };
        match write::reserve(&self.caller, &shared, new).await? {
            Reserved::Created(_) => Ok(Imported::Made),
            Reserved::Taken => Ok(Imported::Taken),
        }
    }

    /// Takes the earlier system's finalizer off an endpoint and has it show its bindings, at the version that was read.
    pub async fn unhold(&self, Due { endpoint, ips }: &Due) -> Result<(), StoreError> {
        let others: Vec<_> = endpoint.finalizers.iter().filter(|one| *one != POOL_FINALIZER).collect();
        let version = &endpoint.version;
        let metadata = json!({"resourceVersion": version, "finalizers": others, "annotations": {REPLACES: version}});
        let change = Patch::Merge(match ips {
            Some(ips) => json!({"metadata": metadata, "status": {"current": {"ips": ips}}}),
            None => json!({"metadata": metadata}),
        });
        let kind = path::within(&SpiderEndpoint::api_version(&()), &endpoint.namespace, &SpiderEndpoint::plural(&()))?;
        let asked = kind.patch(path::name(&endpoint.name)?, &PatchParams::default(), &change);
        match self.caller.json::<Value>(asked).await {
            // It went meanwhile, and nobody held it.
            Ok(_) | Err(StoreError::Gone) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Removes the records of a pool, if they are the same as those that were read, in one write with a condition that is
    /// `True`. Before that each must have become an allocation.
    pub async fn close(&self, pool: &OldPool, reason: &str, message: &str, now: Time) -> Result<(), StoreError> {
        self.tell(pool, &Said { closes: true, reason, message, now }).await
    }

    /// Says on a pool why it is not adopted yet, unless it says so already.
    pub async fn say(&self, pool: &OldPool, reason: &str, message: &str, now: Time) -> Result<(), StoreError> {
        self.tell(pool, &Said { closes: false, reason, message, now }).await
    }

    async fn tell(&self, pool: &OldPool, said: &Said<'_>) -> Result<(), StoreError> {
        let kind = Request::new(SpiderIPPool::url_path(&(), None));
        let own = path::name(&pool.name)?;
        for _ in 0..TRIES {
            let found: Option<DynamicObject> = self.caller.find(kind.get(own, &GetParams::default())).await?;
            let Some(found) = found.filter(|found| found.uid().as_deref() == Some(&pool.uid)) else {
                return Err(StoreError::Gone);
            };
            let text = found.data.pointer("/status/allocatedIPs").and_then(Value::as_str);
            if said.closes && text != Some(&pool.text) {
                return Err(StoreError::Conflict);
            }
            let Some(change) = said.change(&found) else { return Ok(()) };
            let asked = kind.patch_subresource("status", own, &PatchParams::default(), &Patch::Merge(change));
            match self.caller.json::<Value>(asked).await {
                Err(StoreError::Conflict) => {}
                other => return other.map(drop),
            }
        }
        Err(StoreError::Conflict)
    }
}

/// What the condition says from now on.
struct Said<'a> {
    /// The pool is adopted: its records go.
    closes: bool,
    reason: &'a str,
    message: &'a str,
    now: Time,
}

impl Said<'_> {
    /// Conditions are a list, of which some are others'; it is replaced whole, so at exactly this version. None if all of it
    /// is said.
    fn change(&self, found: &DynamicObject) -> Option<Value> {
        let Self { closes, reason, message, now } = self;
        let status = if *closes { "True" } else { "False" };
        let conditions = found.data.pointer("/status/conditions").cloned().unwrap_or_default();
        let mut conditions: Vec<Condition> = serde_json::from_value(conditions).unwrap_or_default();
        let same = |one: &&Condition| one.type_ == ADOPTED && one.status == status;
        let before = conditions.iter().find(same);
        if !closes && before.is_some_and(|one| (one.reason.as_str(), one.message.as_str()) == (*reason, *message)) {
            return None;
        }
        let since = before.map_or_else(|| now.clone(), |one| one.last_transition_time.clone());
        conditions.retain(|one| one.type_ != ADOPTED);
        conditions.push(Condition {
            type_: ADOPTED.to_owned(),
            status: status.to_owned(),
            reason: (*reason).to_owned(),
            message: (*message).to_owned(),
            observed_generation: found.metadata.generation,
            last_transition_time: since,
        });
        let metadata = json!({"resourceVersion": found.metadata.resource_version});
        Some(if *closes {
            json!({"metadata": metadata, "status": {"allocatedIPs": null, "conditions": conditions}})
        } else {
            json!({"metadata": metadata, "status": {"conditions": conditions}})
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::jiff::Timestamp;

    fn found(conditions: &Value) -> DynamicObject {
        let object = json!({
            "metadata": {"name": "p", "resourceVersion": "7", "generation": 3},
            "status": {"allocatedIPs": "x", "conditions": conditions},
        });
        serde_json::from_value(object).expect("an object")
    }

    #[test]
    fn nothing_is_said_twice_and_conditions_of_others_stay() {
        let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "reason": "R", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let said = |closes, message| Said { closes, reason: "R", message, now: Time(Timestamp::UNIX_EPOCH) };
        let before = found(&json!([condition("Other", "True"), condition(ADOPTED, "False")]));
        assert_eq!(said(false, "m").change(&before), None);
        let change = said(false, "n").change(&before).expect("news");
        assert_eq!(change["status"]["conditions"][0], condition("Other", "True"));
        assert_eq!(change["status"]["conditions"][1]["lastTransitionTime"], "2026-01-01T00:00:00Z");
        assert_eq!((&change["metadata"]["resourceVersion"], change["status"].get("allocatedIPs")), (&json!("7"), None));
        let closed = said(true, "m").change(&before).expect("news");
        assert_eq!(closed["status"].get("allocatedIPs"), Some(&Value::Null));
        assert_eq!(closed["status"]["conditions"][1]["lastTransitionTime"], "1970-01-01T00:00:00Z");
        assert_eq!(closed["status"]["conditions"][1]["observedGeneration"], 3);
        // Taken over once, rolled back, and taken over again: the records go all the same.
        assert!(said(true, "m").change(&found(&json!([condition(ADOPTED, "True")]))).is_some());
    }
}
