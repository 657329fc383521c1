//! An object as it is sent: what matters of its metadata, and the rest as it is.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Annotations or labels.
pub(crate) type Texts = BTreeMap<String, String>;

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Object {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    pub(crate) spec: Value,
    #[serde(default)]
    pub(crate) status: Value,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: Option<String>,
    generate_name: Option<String>,
    namespace: Option<String>,
    labels: Option<Texts>,
    annotations: Option<Texts>,
    deletion_timestamp: Option<String>,
    finalizers: Option<Vec<String>>,
}

static NONE: Texts = Texts::new();

impl Object {
    /// How it is called, or will be.
    pub(crate) fn name(&self) -> &str {
        self.metadata.name.as_deref().or(self.metadata.generate_name.as_deref()).unwrap_or_default()
    }

    pub(crate) fn namespace(&self) -> &str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }

    pub(crate) fn annotations(&self) -> &Texts {
        self.metadata.annotations.as_ref().unwrap_or(&NONE)
    }

    /// `None` where there is no map that something could be added to.
    pub(crate) fn labels(&self) -> Option<&Texts> {
        self.metadata.labels.as_ref()
    }

    /// `None` where there is no list that one could be added to.
    pub(crate) fn finalizers(&self) -> Option<&[String]> {
        self.metadata.finalizers.as_deref()
    }

    /// Whether it is on its way out, and only waits for finalizers.
    pub(crate) fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }
}
