//! Frees one address that was left behind, after live reads have shown that nobody can be using it.

use super::facts::{Allocation, Owner};
use super::write::allocations;
use crate::lease::Leading;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, DynamicObject, Preconditions};
use kube::{Api, Client};
use runtime::Chain;

/// Deletes the allocation if its pod is gone or done, and will not come back under its name.
pub(super) async fn collect(client: Client, one: &Allocation, leading: &Leading) {
    let (address, pod) = (&one.address, format!("{}/{}", one.pod.namespace, one.pod.name));
    let freed = match may_be_used(&client, one).await {
        Ok(false) if leading.now() => delete(client, one).await,
        Ok(_) => return,
        Err(error) => Err(error),
    };
    match freed {
        Ok(()) => {
            tracing::info!(%address, pod, node = one.node, pool = one.pool, "freed an address of a node that is gone");
        }
        // Somebody wrote it since, or was first.
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
        Err(error) => {
            tracing::warn!(%address, pod, error = %Chain(&error), "cannot free an address of a node that is gone");
        }
    }
}

async fn may_be_used(client: &Client, one: &Allocation) -> Result<bool, kube::Error> {
    let pods = Api::<Pod>::namespaced(client.clone(), &one.pod.namespace);
    if pods.get_opt(&one.pod.name).await?.is_some_and(|pod| is_alive(&pod, &one.pod.uid)) {
        return Ok(true);
    }
    match &one.owner {
        Some(owner) if owner.retains() => retained(client, one, owner).await,
        Some(_) | None => Ok(false),
    }
}

fn is_alive(pod: &Pod, uid: &str) -> bool {
    // The kubelet knows a static pod by its hash.
    const HASH: &str = "kubernetes.io/config.hash";
    let hash = pod.metadata.annotations.as_ref().and_then(|all| all.get(HASH)).map(String::as_str);
    let same = pod.metadata.uid.as_deref() == Some(uid) || hash == Some(uid);
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    same && !matches!(phase, Some("Succeeded" | "Failed"))
}

/// Whether the pod's controller has a place for it still. One that this controller cannot read is taken to have.
async fn retained(client: &Client, one: &Allocation, owner: &Owner) -> Result<bool, kube::Error> {
    if owner.kind != "StatefulSet" {
        return Ok(true);
    }
    let sets = Api::<StatefulSet>::namespaced(client.clone(), &one.pod.namespace);
    Ok(sets.get_opt(&owner.name).await?.is_some_and(|set| has_place(&set, owner, &one.pod.name)))
}

fn has_place(set: &StatefulSet, owner: &Owner, pod: &str) -> bool {
    let ordinal = pod.strip_prefix(&owner.name).and_then(|rest| rest.strip_prefix('-')).and_then(|n| n.parse().ok());
    let spec = set.spec.as_ref();
    let start = spec.and_then(|spec| spec.ordinals.as_ref()?.start).unwrap_or_default();
    let replicas = spec.and_then(|spec| spec.replicas).unwrap_or(1);
    set.metadata.uid.as_deref() == Some(&owner.uid)
        && ordinal.is_some_and(|n: i32| n >= start && n < start.saturating_add(replicas))
}

async fn delete(client: Client, one: &Allocation) -> Result<(), kube::Error> {
    let preconditions = Preconditions { uid: Some(one.uid.clone()), resource_version: Some(one.version.clone()) };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    Api::<DynamicObject>::all_with(client, &allocations()).delete(&one.name, &params).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pod_lives_under_its_uid_until_it_is_done() {
        let pod = |uid: &str, phase: &str, hash: &str| {
            let metadata = json!({"uid": uid, "annotations": {"kubernetes.io/config.hash": hash}});
            serde_json::from_value(json!({"metadata": metadata, "status": {"phase": phase}})).expect("a pod")
        };
        assert!(is_alive(&pod("u", "Running", "h"), "u") && is_alive(&pod("x", "Pending", "u"), "u"));
        assert!(!is_alive(&pod("x", "Running", "h"), "u") && !is_alive(&pod("u", "Failed", "h"), "u"));
    }

    #[test]
    fn a_stateful_set_has_places_by_number() {
        let owner =
            Owner { api_version: "apps/v1".into(), kind: "StatefulSet".into(), name: "db".into(), uid: "u".into() };
        let set = json!({"metadata": {"uid": "u"}, "spec": {"replicas": 2, "ordinals": {"start": 3}, "selector": {}, "serviceName": "", "template": {}}});
        let set: StatefulSet = serde_json::from_value(set).expect("a set");
        let places = ["db-2", "db-3", "db-4", "db-5", "db-x", "other-3"];
        assert_eq!(places.map(|pod| has_place(&set, &owner, pod)), [false, true, true, false, false, false]);
        assert!(!has_place(&set, &Owner { uid: "other".into(), ..owner }, "db-3"), "another set of the name");
    }
}
