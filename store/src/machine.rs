//! Pods of virtual machines. Source: labels and controllers that KubeVirt's virt-controller gives its virt-launcher pods. (The label
//! of the machine's name has its host name, which may be another one.)

use crate::call::Caller;
use crate::path;
use crate::pod::Metadata;
use ipam_core::{Owner, StoreError};
use kube::api::{ListParams, ObjectMeta};
use serde::Deserialize;

/// On the pod that a running machine is moved to, while its earlier one runs on.
const MIGRATION: &str = "kubevirt.io/migrationJobUID";
/// Kind that controls each of them, of the name of its machine.
const INSTANCE: &str = "VirtualMachineInstance";
/// Names and versions alone are some 500 bytes each.
const PAGE: u32 = 500;

#[derive(Deserialize)]
struct Pods {
    /// Of none: `null`.
    items: Option<Vec<Metadata>>,
    #[serde(default)]
    metadata: Next,
}

#[derive(Deserialize, Default)]
struct Next {
    #[serde(default, rename = "continue")]
    token: String,
}

/// Whether the machine is moved into this pod while it runs: both have their addresses then, and each gives back its own.
pub(crate) fn is_moved_into(metadata: &ObjectMeta) -> bool {
    metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(MIGRATION))
}

/// Names of a machine's pods, ended ones left out.
pub(crate) async fn pods(caller: &Caller, namespace: &str, machine: &Owner) -> Result<Vec<String>, StoreError> {
    let collection = path::within("v1", namespace, "pods")?;
    let mut wanted = ListParams::default()
        .labels(&format!("kubevirt.io=virt-launcher,!{MIGRATION}"))
        .fields("status.phase!=Succeeded,status.phase!=Failed")
        .limit(PAGE);
    let mut found = Vec::new();
    loop {
        let page: Pods = caller.json(collection.list_metadata(&wanted)).await?;
        let of_it = page.items.into_iter().flatten().filter(|pod| is_of(&pod.metadata, machine));
        found.extend(of_it.filter_map(|pod| pod.metadata.name));
        if page.metadata.token.is_empty() {
            return Ok(found);
        }
        wanted = wanted.continue_token(&page.metadata.token);
    }
}

/// By its instance, which has the machine's name.
fn is_of(metadata: &ObjectMeta, machine: &Owner) -> bool {
    let mut owners = metadata.owner_references.iter().flatten();
    owners.any(|owner| owner.kind == INSTANCE && owner.name == machine.name)
}
