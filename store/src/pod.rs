//! What a pod says about itself, read live.
//!
//! A pod costs one read. Whether its namespace is going is asked at most once in a few seconds for each namespace: a pod of
//! one that goes is marked itself a moment later, so that what is a little old does no harm. Watching all namespaces on every
//! node would cost far more than these reads.

use crate::call::Caller;
use crate::machine;
use crate::object::Numbered;
use crate::owner::{Owners, controller};
use crate::path;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use ipam_core::{NamespaceFacts, PodFacts, StoreError};
use kube::api::{GetParams, ObjectMeta};
use kube::core::Request;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

const CONFIG_HASH: &str = "kubernetes.io/config.hash";
const NAMESPACE_KNOWN: Duration = Duration::from_secs(5);

#[derive(Deserialize)]
struct Pod {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Spec {
    #[serde(default)]
    node_name: String,
}

#[derive(Deserialize, Default)]
struct Status {
    #[serde(default)]
    phase: String,
}

/// An object of which its metadata are enough.
#[derive(Deserialize)]
pub(crate) struct Metadata {
    pub(crate) metadata: ObjectMeta,
}

/// Namespaces as of a moment ago, with when each read began.
#[derive(Default)]
pub(crate) struct Namespaces(Mutex<BTreeMap<String, (Instant, Read)>>);

type Read = Shared<BoxFuture<'static, Result<Arc<NamespaceFacts>, StoreError>>>;

pub(crate) async fn facts(
    caller: &Caller,
    namespaces: &Namespaces,
    owners: &Owners,
    namespace: &str,
    name: &str,
) -> Result<Option<PodFacts>, StoreError> {
    let asked = path::within("v1", namespace, "pods")?.get(path::name(name)?, &GetParams::default());
    let (pod, facts) = tokio::join!(caller.find::<Pod>(asked), namespaces.facts(caller, namespace));
    let (Some(Pod { metadata, spec, status }), facts) = (pod?, facts?) else { return Ok(None) };
    let uid = Numbered::of(&metadata)?.uid;
    let generated = metadata.generate_name.as_deref().is_some_and(|prefix| is_generated(name, prefix));
    let owner = match controller(&metadata).filter(|_| !machine::is_moved_into(&metadata)) {
        Some(direct) => Some(owners.top(caller, namespace, direct).await?),
        None => None,
    };
    let annotations = metadata.annotations.unwrap_or_default();
    Ok(Some(PodFacts {
        uid,
        config_hash: annotations.get(CONFIG_HASH).cloned(),
        generated,
        node: spec.node_name,
        labels: metadata.labels.unwrap_or_default(),
        annotations,
        terminating: metadata.deletion_timestamp.is_some(),
        terminal: ["Succeeded", "Failed"].contains(&status.phase.as_str()),
        namespace: facts,
        owner,
    }))
}

/// Whether the API server chose the end of the name. (Pods of a StatefulSet have a prefix, too, and names without chance.)
fn is_generated(name: &str, prefix: &str) -> bool {
    const CHOSEN: usize = 5;
    name.strip_prefix(prefix).is_some_and(|rest| !prefix.is_empty() && rest.len() == CHOSEN)
}

impl Namespaces {
    /// All who want to know it at a time share one request.
    async fn facts(&self, caller: &Caller, namespace: &str) -> Result<Arc<NamespaceFacts>, StoreError> {
        let name = path::name(namespace)?.to_owned();
        let read = {
            // An insertion is whole or not at all.
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let failed = |read: &Read| matches!(read.peek(), Some(Err(_)));
            known.retain(|_, (began, read)| began.elapsed() < NAMESPACE_KNOWN && !failed(read));
            let begin = || (Instant::now(), read(caller.clone(), name.clone()).boxed().shared());
            known.entry(name.clone()).or_insert_with(begin).1.clone()
        };
        read.await
    }
}

async fn read(caller: Caller, name: String) -> Result<Arc<NamespaceFacts>, StoreError> {
    let asked = Request::new("/api/v1/namespaces").get_metadata(&name, &GetParams::default());
    let gone = || NamespaceFacts { terminating: true, ..NamespaceFacts::default() };
    let found = caller.find::<Metadata>(asked).await?;
    Ok(Arc::new(found.map_or_else(gone, |Metadata { metadata }| NamespaceFacts {
        terminating: metadata.deletion_timestamp.is_some(),
        labels: metadata.labels.unwrap_or_default(),
        annotations: metadata.annotations.unwrap_or_default(),
    })))
}
