//! CNI configuration that users bring themselves.

use crate::cni::{self, COORDINATOR, NotCni};
use crate::objects::{Findings, quoted};
use k8s_api::conf::Conf;
use k8s_api::crd::multus_config::{CniType, MultusConfigSpec};

pub(super) fn check(spec: &MultusConfigSpec, conf: &Conf, findings: &mut Findings) {
    if let Some(text) = spec.custom_cni.as_deref().filter(|text| !text.is_empty() && spec.cni_type == CniType::Custom) {
        custom(text, findings);
    }
    let mut chained = Vec::new();
    for (n, text) in spec.chain.iter().enumerate() {
        match cni::plugin(text).and_then(|plugin| cni::kind(&plugin).map(ToOwned::to_owned)) {
            Ok(name) => chained.push(name),
            Err(error) => {
                findings.forbidden(format!("spec.chainCNIJsonData[{n}]"), format!("invalid {}: {error}", quoted(text)));
            }
        }
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

/// A configuration, or a list of them under `plugins`.
fn custom(text: &str, findings: &mut Findings) {
    if let Err(fault) = cni::plugins(text) {
        let what = if matches!(fault, NotCni::Json(_)) { "a valid JSON encoding" } else { "a CNI configuration" };
        findings.invalid("spec.customCNI", text, format!("customCniConfig isn't {what}: {fault}"));
    }
}
