//! What the definition of an attachment should say.

use super::network::{Unusable, chain};
use crate::attachments::Config;
use k8s_api::attachment::{CNI_VERSION, CONFIG_NAME};
use k8s_api::conf::Conf;
use serde_json::json;
use std::collections::BTreeMap;

const DEFAULT_CNI_VERSION: &str = "0.3.1";
/// Annotation of a definition: whose device Multus hands to the plugin.
const DEVICE: &str = "k8s.v1.cni.cncf.io/resourceName";
/// Annotations that belong to whatever applied the attachment, and would make it think that it applied the definition.
const APPLIERS: [&str; 4] = ["kubectl.kubernetes.io/", "meta.helm.sh/", "helm.sh/", "argocd.argoproj.io/"];

/// A definition as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Desired {
    /// `spec.config`.
    pub(super) config: String,
    pub(super) annotations: BTreeMap<String, String>,
    /// Plugins that the attachment asks for and no node has.
    pub(super) omitted: Vec<&'static str>,
}

/// The attachment cannot become a definition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Invalid {
    #[error("the attachment cannot be read: {0}")]
    Unreadable(String),
    #[error("the attachment cannot be used")]
    Unusable(#[source] Unusable),
}

/// What the definition of `config` says under `conf`.
pub(super) fn desired(config: &Config, conf: &Conf) -> Result<Desired, Invalid> {
    let spec = config.spec.as_ref().map_err(|error| Invalid::Unreadable(error.to_string()))?;
    let chain = chain(spec, &conf.plugins).map_err(Invalid::Unusable)?;
    let annotation = |key: &str| config.annotations.get(key).map(String::as_str).filter(|value| !value.is_empty());
    let network = json!({
        "cniVersion": annotation(CNI_VERSION).unwrap_or(DEFAULT_CNI_VERSION),
        "name": annotation(CONFIG_NAME).unwrap_or(&config.network),
        "plugins": chain.plugins,
    });
    let others = |key: &&String| !APPLIERS.iter().any(|prefix| key.starts_with(prefix));
    let mut annotations: BTreeMap<_, _> = config
        .annotations
        .iter()
        .filter(|(key, _)| others(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if let Some(device) = chain.device {
        annotations.entry(DEVICE.to_owned()).or_insert(device);
    }
    Ok(Desired { config: network.to_string(), annotations, omitted: chain.omitted })
}
