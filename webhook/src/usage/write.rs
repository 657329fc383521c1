//! Does one step for one pool at the API server.

use super::plan::{RELEASED, Said, Step};
use super::shown::Shown;
use crate::lease::Leading;
use crate::pools::pools;
use k8s_api::names::POOL_FINALIZER;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use runtime::Chain;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;

/// One write.
const ANSWER: Duration = Duration::from_secs(5);
const FIELD_MANAGER: &str = "spiderpool-pools";

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The watch will show it.
    Written,
    /// A consistent list has an address that the watch has not shown yet.
    StillHeld,
    /// Another write was first, or the API server was away or did not want it.
    Failed,
}

/// The resource of `SpiderIPAllocation`s.
pub(super) fn allocations() -> ApiResource {
    let kind = GroupVersionKind::gvk("spiderpool.spidernet.io", "v2beta1", "SpiderIPAllocation");
    ApiResource::from_gvk_with_plural(&kind, "spideripallocations")
}

/// Writes if this controller leads, and for no longer than it is sure to.
pub(super) async fn write(client: Client, pool: &str, shown: &Shown, step: &Step, leading: &Leading) -> Outcome {
    let limit = ANSWER.min(leading.left());
    if limit.is_zero() {
        return Outcome::Failed;
    }
    match timeout(limit, send(client, pool, shown, step)).await {
        Ok(Ok(outcome)) => outcome,
        // What was planned for has changed, or is gone; the watch will show it.
        Ok(Err(kube::Error::Api(status))) if matches!(status.code, 404 | 409) => Outcome::Failed,
        Ok(Err(error)) => {
            tracing::warn!(pool, error = %Chain(&error), "cannot write for a pool; trying again");
            Outcome::Failed
        }
        Err(_) => {
            tracing::warn!(pool, "the API server did not answer within {limit:?}; trying again");
            Outcome::Failed
        }
    }
}

async fn send(client: Client, pool: &str, shown: &Shown, step: &Step) -> Result<Outcome, kube::Error> {
    let api = Api::<DynamicObject>::all_with(client.clone(), &pools());
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    match step {
        Step::Guard => {
            let all: Vec<_> = shown.finalizers.iter().map(String::as_str).chain([POOL_FINALIZER]).collect();
            api.patch_metadata(pool, &params, &finalizers(shown, &all)).await?;
        }
        Step::LetGo => {
            // Not from a cache: whoever created one before this list is in it.
            let of_pool = ListParams::default().fields(&format!("spec.pool={pool}")).limit(1);
            let held = Api::<DynamicObject>::all_with(client, &allocations()).list_metadata(&of_pool).await?;
            if !held.items.is_empty() {
                return Ok(Outcome::StillHeld);
            }
            let others: Vec<_> =
                shown.finalizers.iter().map(String::as_str).filter(|one| *one != POOL_FINALIZER).collect();
            api.patch_metadata(pool, &params, &finalizers(shown, &others)).await?;
        }
        Step::Tell(said) => {
            api.patch_status(pool, &params, &Patch::Merge(status(shown, said, Timestamp::now()))).await?;
        }
    }
    Ok(Outcome::Written)
}

/// A list is replaced whole, so whoever changed it since must be seen first.
fn finalizers(shown: &Shown, all: &[&str]) -> Patch<Value> {
    Patch::Merge(json!({"metadata": {"resourceVersion": shown.version, "finalizers": all}}))
}

/// Counts alone need no version: nobody else writes them. Conditions are a list, of which some are others'.
fn status(shown: &Shown, said: &Said, now: Timestamp) -> Value {
    let counts = json!({"allocatedIPCount": said.allocated, "totalIPCount": said.total});
    let Some(waits) = &said.waits else { return json!({ "status": counts }) };
    let old = shown.conditions.iter().find(|condition| condition.type_ == RELEASED && condition.status == "False");
    let condition = Condition {
        type_: RELEASED.to_owned(),
        status: "False".to_owned(),
        reason: "AddressesInUse".to_owned(),
        message: waits.clone(),
        observed_generation: Some(shown.generation),
        last_transition_time: old.map_or(Time(now), |old| old.last_transition_time.clone()),
    };
    let others = shown.conditions.iter().filter(|condition| condition.type_ != RELEASED);
    let conditions: Vec<_> = others.cloned().chain([condition]).collect();
    json!({
        "metadata": {"resourceVersion": shown.version},
        "status": {"allocatedIPCount": said.allocated, "totalIPCount": said.total, "conditions": conditions},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(conditions: &Value) -> Shown {
        let object = json!({"metadata": {"name": "p", "resourceVersion": "7"}, "status": {"conditions": conditions}});
        Shown::of(&serde_json::from_value(object).expect("an object"))
    }

    #[test]
    fn conditions_of_others_stay_and_ours_keeps_its_time() {
        let now = Timestamp::UNIX_EPOCH;
        let said = Said { allocated: 1, total: 2, waits: None };
        assert_eq!(
            status(&shown(&json!([])), &said, now),
            json!({"status": {"allocatedIPCount": 1, "totalIPCount": 2}})
        );
        let condition = |kind: &str, at: &str| json!({"type": kind, "status": "False", "reason": "R", "message": "m", "lastTransitionTime": at});
        let old =
            shown(&json!([condition("Adopted", "2026-01-01T00:00:00Z"), condition(RELEASED, "2026-01-02T00:00:00Z")]));
        let waits = Said { waits: Some("1 address".to_owned()), ..said };
        let written = status(&old, &waits, now);
        let kinds: Vec<_> = written["status"]["conditions"].as_array().expect("a list").iter().collect();
        assert_eq!((kinds.len(), &kinds[0]["type"]), (2, &json!("Adopted")));
        assert_eq!(kinds[1]["lastTransitionTime"], "2026-01-02T00:00:00Z");
        assert_eq!((&kinds[1]["message"], &written["metadata"]["resourceVersion"]), (&json!("1 address"), &json!("7")));
    }
}
