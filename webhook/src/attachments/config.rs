//! One SpiderMultusConfig, as far as the controller needs it.

use crate::injection::Attachment;
use k8s_api::attachment::{NETWORK_NAME, Needs};
use k8s_api::crd::multus_config::{MultusConfigSpec, MultusConfigStatus};
use k8s_api::names::INJECT;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use kube::api::DynamicObject;
use runtime::Chain;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The condition that says whether Multus knows the attachment as it is written.
pub(crate) const READY: &str = "Ready";

/// An attachment and what is known of it. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    /// `metadata.resourceVersion`.
    pub(crate) version: String,
    /// `metadata.generation`: changes with the spec alone.
    pub(crate) generation: i64,
    /// What Multus knows it by.
    pub(crate) network: Arc<str>,
    pub(crate) annotations: Arc<BTreeMap<String, String>>,
    /// The spec, or why it cannot be read; that stops nothing else.
    pub(crate) spec: Result<Arc<MultusConfigSpec>, Arc<str>>,
    /// What was last said of it.
    pub(crate) conditions: Arc<Vec<Condition>>,
    /// The values of [`INJECT`]; the annotation counts, else the label that earlier systems select by.
    pub(crate) inject: [Option<Arc<str>>; 2],
    needs: Arc<Needs>,
}

impl Config {
    /// Reads the object. What it has too much of is ignored.
    pub(crate) fn of(object: &DynamicObject) -> Self {
        let part = |name: &str| object.data.get(name).cloned().unwrap_or_default();
        let spec = serde_json::from_value::<MultusConfigSpec>(part("spec"));
        let spec = spec.map(Arc::new).map_err(|error| Chain(&error).to_string().into());
        let status = serde_json::from_value::<MultusConfigStatus>(part("status")).unwrap_or_default();
        let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
        let network = object.annotations().get(NETWORK_NAME).filter(|network| !network.is_empty()).unwrap_or(&name);
        let inject = |key: &str| object.annotations().get(key).or_else(|| object.labels().get(key));
        Self {
            network: network.as_str().into(),
            uid: object.uid().unwrap_or_default(),
            version: object.resource_version().unwrap_or_default(),
            generation: object.metadata.generation.unwrap_or_default(),
            annotations: Arc::new(object.annotations().clone()),
            needs: Arc::new(spec.as_ref().map(|spec| Needs::of(spec)).unwrap_or_default()),
            conditions: Arc::new(status.conditions),
            inject: INJECT.map(|key| inject(key).map(|value| value.as_str().into())),
            spec,
            namespace,
            name,
        }
    }

    /// Whether Multus knows it as it is written, by what was last said of it.
    pub(crate) fn is_ready(&self) -> bool {
        self.conditions.iter().any(|condition| condition.type_ == READY && condition.status == "True")
    }

    /// What stands behind the config's own name.
    pub(crate) fn by_own_name(&self) -> Attachment {
        if *self.network == *self.name { self.attachment() } else { Attachment::Renamed(Arc::clone(&self.network)) }
    }

    /// What stands behind the name of its network.
    pub(crate) fn attachment(&self) -> Attachment {
        match &self.spec {
            Ok(_) => Attachment::Ours(Arc::clone(&self.needs)),
            Err(error) => Attachment::Unreadable(Arc::clone(error)),
        }
    }
}
