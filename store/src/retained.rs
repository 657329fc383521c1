//! Whether a controller still has a place for a pod of that name.

use crate::call::Caller;
use crate::path;
use crate::pod::Metadata;
use ipam_core::{Owner, StoreError};
use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec};
use kube::api::{GetParams, ObjectMeta};
use std::sync::Arc;

/// Whose pods keep their addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retained {
    /// Those of a StatefulSet, as long as it has their ordinals.
    pub stateful_sets: bool,
    /// Those of KubeVirt's machines, as long as these are there.
    pub machines: bool,
}

/// The same, as it is set now.
pub type Retain = Arc<dyn Fn() -> Retained + Send + Sync>;

impl Default for Retained {
    fn default() -> Self {
        Self { stateful_sets: true, machines: true }
    }
}

impl Retained {
    pub(crate) fn is_for(self, owner: &Owner) -> bool {
        if owner.is_machine() { self.machines } else { self.stateful_sets }
    }
}

pub(crate) async fn retained(caller: &Caller, namespace: &str, owner: &Owner, pod: &str) -> Result<bool, StoreError> {
    let plural = match (owner.api_version.as_str(), owner.kind.as_str()) {
        ("apps/v1", "StatefulSet") => {
            let asked = path::within("apps/v1", namespace, "statefulsets")?
                .get(path::name(&owner.name)?, &GetParams::default());
            let found = caller.find::<StatefulSet>(asked).await?;
            return Ok(
                found.is_some_and(|set| lives(&set.metadata, owner) && has_place(&owner.name, set.spec.as_ref(), pod))
            );
        }
        ("kubevirt.io/v1" | "kubevirt.io/v1alpha3", "VirtualMachine") => "virtualmachines",
        ("kubevirt.io/v1" | "kubevirt.io/v1alpha3", "VirtualMachineInstance") => "virtualmachineinstances",
        _ => return Ok(false),
    };
    // Of a cluster without KubeVirt, too, the answer is 404.
    let asked = path::within(&owner.api_version, namespace, plural)?
        .get_metadata(path::name(&owner.name)?, &GetParams::default());
    let found = caller.find::<Metadata>(asked).await?;
    Ok(found.is_some_and(|found| lives(&found.metadata, owner)))
}

fn lives(metadata: &ObjectMeta, owner: &Owner) -> bool {
    metadata.uid.as_deref() == Some(&owner.uid) && metadata.deletion_timestamp.is_none()
}

/// Whether the ordinal of `pod` is one of the set's.
fn has_place(set: &str, spec: Option<&StatefulSetSpec>, pod: &str) -> bool {
    let Some(ordinal) = pod.strip_prefix(set).and_then(|rest| rest.strip_prefix('-')).and_then(ordinal) else {
        return false;
    };
    let start = spec.and_then(|spec| spec.ordinals.as_ref()?.start).unwrap_or(0);
    let replicas = spec.and_then(|spec| spec.replicas).unwrap_or(1);
    (i64::from(start)..i64::from(start) + i64::from(replicas)).contains(&ordinal)
}

/// As a StatefulSet writes it: no sign, no leading zero.
fn ordinal(text: &str) -> Option<i64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::apps::v1::StatefulSetOrdinals;

    #[test]
    fn ordinals_are_those_of_the_set() {
        let spec = |start: Option<i32>, replicas: Option<i32>| StatefulSetSpec {
            replicas,
            ordinals: start.map(|start| StatefulSetOrdinals { start: Some(start) }),
            ..StatefulSetSpec::default()
        };
        for (start, replicas, pod, has) in [
            (None, None, "db-0", true),
            (None, None, "db-1", false),
            (None, Some(3), "db-2", true),
            (None, Some(3), "db-3", false),
            (None, Some(0), "db-0", false),
            (Some(5), Some(2), "db-4", false),
            (Some(5), Some(2), "db-6", true),
            (Some(5), Some(2), "db-7", false),
            (Some(i32::MAX), Some(i32::MAX), "db-4294967293", true),
            (None, Some(3), "db-01", false),
            (None, Some(3), "db-+1", false),
            (None, Some(3), "db-", false),
            (None, Some(3), "db-1-1", false),
            (None, Some(3), "xdb-1", false),
            (None, Some(3), "db1", false),
            (None, Some(3), "db-99999999999999999999", false),
        ] {
            assert_eq!(has_place("db", Some(&spec(start, replicas)), pod), has, "{start:?} {replicas:?} {pod}");
        }
        assert!(has_place("db", None, "db-0"));
    }
}
