//! One NetworkAttachmentDefinition, as far as the controller needs it.

use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Who the controller is to the API server (`metadata.managedFields`, `fieldManager`).
pub(crate) const FIELD_MANAGER: &str = "spiderpool-controller";

/// A network as Multus sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Definition {
    /// Another's: that there is one is all that matters.
    Foreign,
    /// One that a SpiderMultusConfig controls.
    Ours(Box<Made>),
}

/// What stands in a definition that was made from a SpiderMultusConfig.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Made {
    /// `metadata.resourceVersion`.
    pub(crate) version: String,
    /// The SpiderMultusConfig: name and uid.
    pub(crate) owner: (String, String),
    pub(crate) config: String,
    pub(crate) annotations: BTreeMap<String, String>,
    /// Annotations that the controller wrote, also those that are not wanted any more.
    pub(crate) written: BTreeSet<String>,
}

impl Definition {
    /// Reads the object. An owner that controls it counts; one that merely holds it, as anybody may add, does not.
    pub(crate) fn of(object: &DynamicObject) -> Self {
        let owners = object.owner_references();
        let owner = owners.iter().find(|owner| {
            let group = owner.api_version.split('/').next().unwrap_or_default();
            owner.kind == "SpiderMultusConfig" && group == "spiderpool.spidernet.io" && owner.controller == Some(true)
        });
        let Some(owner) = owner else { return Self::Foreign };
        let config = object.data.pointer("/spec/config").and_then(Value::as_str).unwrap_or_default();
        Self::Ours(Box::new(Made {
            version: object.resource_version().unwrap_or_default(),
            owner: (owner.name.clone(), owner.uid.clone()),
            config: config.to_owned(),
            annotations: object.annotations().clone(),
            written: written(object),
        }))
    }

    /// The version, of ours.
    pub(crate) fn version(&self) -> &str {
        match self {
            Self::Foreign => "",
            Self::Ours(made) => &made.version,
        }
    }
}

/// Annotations whose field belongs to us (source: server-side apply, `fieldsV1`).
fn written(object: &DynamicObject) -> BTreeSet<String> {
    let entries = object.metadata.managed_fields.iter().flatten();
    let own = entries.filter(|entry| entry.manager.as_deref() == Some(FIELD_MANAGER));
    let fields = own.filter_map(|entry| entry.fields_v1.as_ref()?.0.pointer("/f:metadata/f:annotations")?.as_object());
    fields.flat_map(|fields| fields.keys().filter_map(|key| key.strip_prefix("f:"))).map(ToOwned::to_owned).collect()
}
