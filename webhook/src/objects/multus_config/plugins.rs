//! CNI configuration that users bring themselves.

use crate::objects::{Findings, quoted};
use k8s_api::conf::Conf;
use k8s_api::crd::multus_config::{CniType, MultusConfigSpec};
use serde_json::Value;

/// The plugin that `enableCoordinator` adds.
const COORDINATOR: &str = "coordinator";

pub(super) fn check(spec: &MultusConfigSpec, conf: &Conf, findings: &mut Findings) {
    if let Some(text) = spec.custom_cni.as_deref().filter(|text| !text.is_empty() && spec.cni_type == CniType::Custom) {
        custom(text, findings);
    }
    let mut chained = Vec::new();
    for (n, text) in spec.chain.iter().enumerate() {
        match plugin(text) {
            Ok(name) => chained.push(name),
            Err(error) => {
                findings.forbidden(format!("spec.chainCNIJsonData[{n}]"), format!("invalid {}: {error}", quoted(text)))
            }
        }
    }
    if !spec.chain.is_empty() && spec.cni_type == CniType::Custom {
        findings.warn("spec.chainCNIJsonData is not used with cniType custom; write the plugins into spec.customCNI");
    }
    for name in chained.iter().filter(|name| !conf.plugins.contains(*name)) {
        findings.warn(format!(
            "CNI plugin {} is not part of the chart; pods start only on nodes that have it. Name it in plugins.present if all have",
            quoted(name)
        ));
    }
    if spec.enable_coordinator && !conf.plugins.contains(COORDINATOR) {
        findings.warn(format!(
            "spec.enableCoordinator has no effect: CNI plugin {COORDINATOR} is not part of the chart. Install it on every node and name it in plugins.present"
        ));
    }
}

/// One plugin's configuration; returns the plugin's name.
fn plugin(text: &str) -> Result<String, String> {
    let value = serde_json::from_str::<Value>(text).map_err(|error| error.to_string())?;
    let object = value.as_object().ok_or("it is not a JSON object")?;
    kind(object.get("type")).map(ToOwned::to_owned)
}

fn kind(value: Option<&Value>) -> Result<&str, String> {
    match value {
        Some(Value::String(name)) if !name.is_empty() && !name.contains('/') => Ok(name),
        Some(Value::String(name)) => {
            Err(format!("\"type\" is {}, which is not the name of a CNI plugin", quoted(name)))
        }
        Some(_) => Err("\"type\" is not text".to_owned()),
        None => Err("it has no \"type\", the name of a CNI plugin".to_owned()),
    }
}

/// A configuration, or a list of them under `plugins`.
fn custom(text: &str, findings: &mut Findings) {
    const FIELD: &str = "spec.customCNI";
    let value = match serde_json::from_str::<Value>(text) {
        Ok(value) => value,
        Err(error) => {
            return findings.invalid(FIELD, text, format!("customCniConfig isn't a valid JSON encoding: {error}"));
        }
    };
    let mut wrong =
        |error: String| findings.invalid(FIELD, text, format!("customCniConfig isn't a CNI configuration: {error}"));
    let Some(object) = value.as_object() else { return wrong("it is not a JSON object".to_owned()) };
    match object.get("plugins") {
        None => {
            if let Err(error) = kind(object.get("type")) {
                wrong(error);
            }
        }
        Some(Value::Array(plugins)) if !plugins.is_empty() => {
            for (n, plugin) in plugins.iter().enumerate() {
                if let Err(error) = kind(plugin.get("type")) {
                    wrong(format!("plugins[{n}]: {error}"));
                }
            }
        }
        Some(_) => wrong("\"plugins\" is not a list of plugins".to_owned()),
    }
}
