//! Pods of records: by their names, and those of virtual machines by their UIDs.

use super::Adopter;
use super::gather::pages;
use crate::{path, pod};
use futures::{StreamExt, TryStreamExt, stream};
use ipam_core::{Owner, Pod, PodFacts, StoreError};
use kube::ResourceExt;
use std::collections::{BTreeMap, BTreeSet};

/// Reads at a time.
const AT_ONCE: usize = 16;
/// Pods are large.
const PAGE: u32 = 100;

/// A pod that is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LivePod {
    /// With the UID by which its kubelet knows it.
    pub(super) pod: Pod,
    pub(super) node: String,
    pub(super) owner: Option<Owner>,
}

pub(super) struct Pods<'a>(&'a Adopter);

impl<'a> Pods<'a> {
    pub(super) fn of(adopter: &'a Adopter) -> Self {
        Self(adopter)
    }

    /// Those that are there, by the UIDs in the records.
    pub(super) async fn find(&self, recorded: &[Pod]) -> Result<BTreeMap<String, LivePod>, StoreError> {
        let distinct: BTreeMap<String, Pod> = recorded.iter().map(|pod| (pod.uid.clone(), pod.clone())).collect();
        let reads = distinct.into_values().map(|pod| async move {
            let facts = self.read(&pod).await?;
            Ok::<_, StoreError>((pod, facts))
        });
        let read: Vec<_> = stream::iter(reads).buffer_unordered(AT_ONCE).try_collect().await?;
        let mut found = BTreeMap::new();
        let mut missed: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (pod, facts) in read {
            match facts {
                Some(facts) if facts.is(&pod.uid) => drop(found.insert(pod.uid.clone(), live(&pod, facts))),
                // Another one has the name: the recorded one is gone.
                Some(_) => {}
                None => drop(missed.entry(pod.namespace).or_default().insert(pod.uid)),
            }
        }
        for (namespace, uids) in missed {
            let mut named = Vec::new();
            pages(&self.0.caller, &path::within("v1", &namespace, "pods")?, PAGE, |object| {
                let uid = object.uid().filter(|uid| uids.contains(uid));
                named.extend(uid.map(|uid| Pod { namespace: namespace.clone(), name: object.name_any(), uid }));
            })
            .await?;
            for pod in named {
                if let Some(facts) = self.read(&pod).await?.filter(|facts| facts.is(&pod.uid)) {
                    found.insert(pod.uid.clone(), live(&pod, facts));
                }
            }
        }
        Ok(found)
    }

    async fn read(&self, Pod { namespace, name, .. }: &Pod) -> Result<Option<PodFacts>, StoreError> {
        let Adopter { caller, owners, namespaces } = self.0;
        pod::facts(caller, namespaces, owners, namespace, name).await
    }
}

fn live(named: &Pod, facts: PodFacts) -> LivePod {
    let uid = facts.config_hash.unwrap_or_else(|| named.uid.clone());
    let pod = Pod { uid, ..named.clone() };
    LivePod { pod, node: facts.node, owner: facts.owner }
}
