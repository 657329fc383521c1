//! The top controller of a pod: the Deployment of a `ReplicaSet`, the `CronJob` of a Job, the machine of its instance.

use crate::call::Caller;
use crate::path;
use crate::pod::Metadata;
use ipam_core::{Owner, StoreError};
use kube::api::{GetParams, ObjectMeta};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// All pods of a node have fewer controllers. A full one begins anew.
const MOST: usize = 1024;

/// Controllers of controllers that were asked for, by UID: they do not change.
#[derive(Default)]
pub(crate) struct Owners(Mutex<BTreeMap<String, Owner>>);

/// A controller that may have one itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Between {
    plural: &'static str,
    /// Whether its own controller decides about what the pod keeps. Then not to know is no answer.
    retains: bool,
}

/// The direct controller of an object.
pub(crate) fn controller(metadata: &ObjectMeta) -> Option<Owner> {
    let mut references = metadata.owner_references.iter().flatten();
    let found = references.find(|reference| reference.controller == Some(true))?.clone();
    Some(Owner { api_version: found.api_version, kind: found.kind, name: found.name, uid: found.uid })
}

fn between(owner: &Owner) -> Option<Between> {
    match (owner.api_version.as_str(), owner.kind.as_str()) {
        ("apps/v1", "ReplicaSet") => Some(Between { plural: "replicasets", retains: false }),
        ("batch/v1", "Job") => Some(Between { plural: "jobs", retains: false }),
        ("kubevirt.io/v1" | "kubevirt.io/v1alpha3", "VirtualMachineInstance") => {
            Some(Between { plural: "virtualmachineinstances", retains: true })
        }
        _ => None,
    }
}

impl Owners {
    /// The controller of `direct`, or itself if it has none. One that cannot be asked for is taken for one without.
    pub(crate) async fn top(&self, caller: &Caller, namespace: &str, direct: Owner) -> Result<Owner, StoreError> {
        let Some(Between { plural, retains }) = between(&direct) else { return Ok(direct) };
        if let Some(known) = self.known(&direct.uid) {
            return Ok(known);
        }
        let asked = path::within(&direct.api_version, namespace, plural)
            .and_then(|kind| Ok(kind.get_metadata(path::name(&direct.name)?, &GetParams::default())));
        let found = match asked {
            Ok(asked) => caller.find::<Metadata>(asked).await,
            Err(error) => Err(error),
        };
        match found {
            Ok(Some(Metadata { metadata })) if metadata.uid.as_deref() == Some(&direct.uid) => {
                let top = controller(&metadata).unwrap_or_else(|| direct.clone());
                self.learn(direct.uid, top.clone());
                Ok(top)
            }
            Err(error @ (StoreError::Unknown(_) | StoreError::Throttled { .. })) if retains => Err(error),
            Ok(_) | Err(_) => Ok(direct),
        }
    }

    fn known(&self, uid: &str) -> Option<Owner> {
        // An insertion is whole or not at all.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(uid).cloned()
    }

    fn learn(&self, uid: String, top: Owner) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(uid, top);
    }
}
