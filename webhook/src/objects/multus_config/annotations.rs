//! Annotations of an attachment, and the names that they give it.

use super::Attachment;
use super::block::Block;
use crate::objects::{Findings, Object};
use k8s_api::attachment::{CNI_VERSION, CNI_VERSIONS, CONFIG_NAME, NETWORK_NAME};
use k8s_api::crd::multus_config::CniType;
use k8s_api::names::INJECT;
use k8s_api::syntax;

/// Where the name of the network is written.
const NETWORK_FIELD: &str = "metadata.annotations[multus.spidernet.io/cr-name]";

/// Annotations that matter here; others may change as they like.
const MATTER: [&str; 5] = [INJECT[0], INJECT[1], NETWORK_NAME, CNI_VERSION, CONFIG_NAME];

/// Whether nothing changed that is checked.
pub(crate) fn same(new: &Object, old: &Object) -> bool {
    let alike = |key: &&str| new.annotations().get(*key) == old.annotations().get(*key);
    new.spec == old.spec && MATTER.iter().all(alike)
}

/// The name by which Multus knows an attachment.
pub(crate) fn network(object: &Object) -> &str {
    let renamed = object.annotations().get(NETWORK_NAME).map(String::as_str);
    renamed.filter(|network| !network.is_empty()).unwrap_or_else(|| object.name())
}

pub(super) fn check(attachment: &Attachment<'_>, block: Option<&Block<'_>>, findings: &mut Findings) {
    let annotation = |key: &str| attachment.annotations.get(key).filter(|value| !value.is_empty());
    let at = |key: &str| format!("metadata.annotations[{key}]");
    if let Some(name) = annotation(NETWORK_NAME).filter(|name| !syntax::is_subdomain(name)) {
        let text = "invalid custom net-attach-def resource name, err: [a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character]";
        findings.invalid(at(NETWORK_NAME), name, text);
    }
    if let Some(version) = annotation(CNI_VERSION).filter(|version| !CNI_VERSIONS.contains(&version.as_str())) {
        let text = format!("unsupported CNI version {version:.40}; use one of {}", CNI_VERSIONS.join(", "));
        findings.invalid(at(CNI_VERSION), version, text);
    }
    if let Some(name) = annotation(CONFIG_NAME).filter(|name| !is_config_name(name)) {
        let text = "it is not the name of a CNI configuration: letters, digits, '_', '.' and '-', beginning with a letter or digit";
        findings.invalid(at(CONFIG_NAME), name, text);
    }
    for key in INJECT {
        let Some(value) = attachment.annotations.get(key) else { continue };
        if !syntax::is_label_value(value) {
            let text = "it becomes a label, so it must be a label value: at most 63 letters, digits, '-', '_' or '.', starting and ending with a letter or digit";
            findings.invalid(at(key), value, text);
        }
    }
    inject(attachment, block, findings);
}

/// CNI specification, section 1: `^[a-zA-Z0-9][a-zA-Z0-9_.\-]*$`
fn is_config_name(name: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
    name.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric()) && name.bytes().all(inner)
}

/// An attachment that pods get by annotation has all that they need.
fn inject(attachment: &Attachment<'_>, block: Option<&Block<'_>>, findings: &mut Findings) {
    let [rdma, network] = INJECT.map(|key| attachment.annotations.contains_key(key));
    if !rdma && !network {
        return;
    }
    let (cni_type, name) = (attachment.spec.cni_type, format!("{}/{}", attachment.namespace, attachment.name));
    if matches!(cni_type, CniType::Ovs | CniType::Custom) {
        let text = format!(
            "the cniType {} does not support RDMA resource or network resource injected; remove the annotation",
            cni_type.name()
        );
        return findings.forbidden("spec.cniType", text);
    }
    let Some(block) = block else { return };
    let named = block.resource.is_some_and(|(_, name)| !name.is_empty());
    if let Some((field, _)) = block.resource.filter(|_| rdma && !named) {
        let text = format!(
            "rdmaResourceName can not empty for spidermultusconfig {name}; set {field}, or remove the annotation {}",
            INJECT[0]
        );
        findings.required(format!("{}.{field}", block.field), text);
    }
    let pools = block.pools.as_ref().is_some_and(|pools| !pools.ipv4.is_empty() || !pools.ipv6.is_empty());
    if (rdma || named) && !pools {
        let text =
            format!("no any ippools configured for spidermultusconfig {name}; name pools, or remove the annotation");
        findings.required(format!("{}.ippools", block.field), text);
    }
}

/// What an update may not change.
pub(crate) fn changed(new: &Object, old: &Object) -> Findings {
    let mut findings = Findings::default();
    let (name, annotation) =
        (new.name(), |object: &Object| object.annotations().get(NETWORK_NAME).cloned().unwrap_or_default());
    let (before, after) = (annotation(old), annotation(new));
    let repair = "create another SpiderMultusConfig, or restore the annotation";
    if after.is_empty() || after == before || (before.is_empty() && after == name) {
        return findings;
    }
    let text = if before.is_empty() {
        format!(
            "it's unsupported to changed Multus net-attach-def '{name}' to customized name '{after:.253}'; {repair}"
        )
    } else {
        format!(
            "it's unsupported to change customized Multus net-attach-def resource name from '{before:.253}' to '{after:.253}'; {repair}"
        )
    };
    findings.invalid(NETWORK_FIELD, after, text);
    findings
}

/// What stands already under the name that Multus would know this one by: another attachment (`other`), or a definition
/// that is not ours.
pub(crate) fn neighbours(object: &Object, namespace: &str, other: Option<&str>, foreign: bool) -> Findings {
    let mut findings = Findings::default();
    let network = network(object);
    if foreign {
        findings.warn(format!(
            "NetworkAttachmentDefinition {namespace}/{network} exists and is not of this system; it is not overwritten. Delete it, or choose another name"
        ));
    }
    if let Some(other) = other {
        let text = format!(
            "the net-attach-def {namespace}/{network} already exists and is managed by SpiderMultusConfig {namespace}/{other}. Choose another name"
        );
        let named = object.annotations().contains_key(NETWORK_NAME);
        findings.invalid(if named { NETWORK_FIELD } else { "metadata.name" }, network, text);
    }
    findings
}
