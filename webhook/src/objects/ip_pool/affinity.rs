//! Who may use a pool.

use crate::objects::Findings;
use k8s_api::crd::ip_pool::IpPoolSpec;
use k8s_api::selector::Requirement;
use k8s_api::syntax;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

pub(super) fn check(spec: &IpPoolSpec, findings: &mut Findings) {
    let IpPoolSpec { pod_affinity, namespace_affinity, node_affinity, namespace_name, node_name, multus_name, .. } =
        spec;
    if pod_affinity.as_ref().is_some_and(is_empty) {
        let text = "empty podAffinity is invalid for SpiderIPPool; name labels of pods, or remove it";
        findings.invalid("spec.podAffinity", serde_json::json!({}), text);
    }
    for (field, affinity) in
        [("podAffinity", pod_affinity), ("namespaceAffinity", namespace_affinity), ("nodeAffinity", node_affinity)]
    {
        if let Some(affinity) = affinity {
            selector(&format!("spec.{field}"), affinity, findings);
        }
    }
    let lists: [(&str, &[String], fn(&str) -> bool, &str); 3] = [
        (
            "namespaceName",
            namespace_name,
            syntax::is_namespace,
            "the name of a namespace: lower-case letters, digits and inner dashes",
        ),
        (
            "nodeName",
            node_name,
            syntax::is_subdomain,
            "the name of a node: lower-case letters, digits, inner dashes and dots",
        ),
        ("multusName", multus_name, is_attachment, "the name of an attachment, as namespace/name"),
    ];
    for (field, names, is_name, wanted) in lists {
        for (n, name) in names.iter().enumerate().filter(|(_, name)| !is_name(name)) {
            findings.invalid(format!("spec.{field}[{n}]"), name, format!("it is not {wanted}"));
        }
    }
}

fn is_empty(selector: &LabelSelector) -> bool {
    let LabelSelector { match_labels, match_expressions } = selector;
    match_labels.as_ref().is_none_or(std::collections::BTreeMap::is_empty)
        && match_expressions.as_ref().is_none_or(Vec::is_empty)
}

/// As an API server checks selectors of its own kinds.
fn selector(field: &str, selector: &LabelSelector, findings: &mut Findings) {
    let LabelSelector { match_labels, match_expressions } = selector;
    for (key, value) in match_labels.iter().flatten() {
        if let Err(error) = Requirement::equals(key, value) {
            findings.invalid(format!("{field}.matchLabels"), format!("{key}={value}"), error.to_string());
        }
    }
    for (n, one) in match_expressions.iter().flatten().enumerate() {
        let values = one.values.iter().flatten().cloned().collect();
        if let Err(error) = Requirement::new(&one.key, &one.operator, values) {
            findings.invalid(format!("{field}.matchExpressions[{n}]"), one, error.to_string());
        }
    }
}

/// `name` or `namespace/name`; without a namespace it is that of the release.
fn is_attachment(text: &str) -> bool {
    match text.split_once('/') {
        None => syntax::is_subdomain(text),
        Some((namespace, name)) => syntax::is_namespace(namespace) && syntax::is_subdomain(name),
    }
}
