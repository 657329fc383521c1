//! Whether a pool is for a pod, as the agent judges it. What is not known is not judged.

use k8s_api::crd::ip_pool::IpPoolSpec;
use k8s_api::selector::{Labels, NodeSelector};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// Whom a pool is asked about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'s> {
    pub(crate) labels: &'s Labels,
    pub(crate) node: Option<&'s str>,
    pub(crate) node_labels: Option<&'s Labels>,
    pub(crate) namespace: &'s str,
    pub(crate) namespace_labels: Option<&'s Labels>,
    /// `namespace/name`; empty where nobody names it.
    pub(crate) network: &'s str,
    /// Where networks without a namespace are.
    pub(crate) own_namespace: &'s str,
}

/// What of a pool is for others. A name of a node or a namespace counts instead of its affinity.
pub(crate) fn unfit(spec: &IpPoolSpec, subject: Subject<'_>) -> Option<&'static str> {
    let listed = |names: &[String], name: Option<&str>| {
        name.is_some_and(|name| !names.is_empty() && !names.iter().any(|one| one == name))
    };
    let network = |name: &String| {
        let (own, wanted) = (subject.own_namespace, subject.network);
        if name.contains('/') { name == wanted } else { wanted.split_once('/') == Some((own, name)) }
    };
    let (pods, nodes, namespaces) = (&spec.pod_affinity, &spec.node_affinity, &spec.namespace_affinity);
    let faults = [
        (listed(&spec.node_name, subject.node), "spec.nodeName has not the pod's node"),
        (
            spec.node_name.is_empty() && misses(nodes.as_ref(), subject.node_labels),
            "spec.nodeAffinity does not select the pod's node",
        ),
        (listed(&spec.namespace_name, Some(subject.namespace)), "spec.namespaceName has not the pod's namespace"),
        (
            spec.namespace_name.is_empty() && misses(namespaces.as_ref(), subject.namespace_labels),
            "spec.namespaceAffinity does not select the pod's namespace",
        ),
        (misses(pods.as_ref(), Some(subject.labels)), "spec.podAffinity does not select the pod"),
        (
            !spec.multus_name.is_empty() && !spec.multus_name.iter().any(network),
            "spec.multusName has not the interface's network",
        ),
    ];
    faults.into_iter().find(|(unfit, _)| *unfit).map(|(_, why)| why)
}

/// Whether a selector is there and leaves these labels out. One that no API server would take selects nobody.
fn misses(selector: Option<&LabelSelector>, labels: Option<&Labels>) -> bool {
    let (Some(selector), Some(labels)) = (selector, labels) else { return false };
    NodeSelector::try_from(selector).map_or(true, |selector| !selector.matches(Some(labels)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn each_rule_is_judged_and_what_is_not_known_is_not() {
        let labels = |key: &str| Labels::from([(key.to_owned(), "1".to_owned())]);
        let (pod, node, namespace) = (labels("pod"), labels("node"), labels("namespace"));
        let judge = |more: &Value, known: bool| {
            let mut spec = json!({"subnet": "10.0.0.0/24"});
            spec.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
            let subject = Subject {
                labels: &pod,
                node: Some("n").filter(|_| known),
                node_labels: Some(&node).filter(|_| known),
                namespace: "default",
                namespace_labels: Some(&namespace).filter(|_| known),
                network: "spider/net",
                own_namespace: "spider",
            };
            unfit(&serde_json::from_value(spec).expect("a spec"), subject)
        };
        let of = |key: &str| json!({"matchLabels": {key: "1"}});
        for (spec, fault) in [
            (json!({}), None),
            (json!({"podAffinity": of("pod"), "nodeAffinity": of("node"), "namespaceAffinity": of("namespace")}), None),
            (json!({"podAffinity": of("x")}), Some("spec.podAffinity does not select the pod")),
            (
                json!({"podAffinity": {"matchExpressions": [{"key": "x", "operator": "Near"}]}}),
                Some("spec.podAffinity does not select the pod"),
            ),
            (json!({"nodeAffinity": of("x")}), Some("spec.nodeAffinity does not select the pod's node")),
            (json!({"nodeAffinity": of("x"), "nodeName": ["n"]}), None),
            (json!({"nodeName": ["m"]}), Some("spec.nodeName has not the pod's node")),
            (json!({"namespaceAffinity": of("x")}), Some("spec.namespaceAffinity does not select the pod's namespace")),
            (json!({"namespaceAffinity": of("x"), "namespaceName": ["default"]}), None),
            (json!({"namespaceName": ["other"]}), Some("spec.namespaceName has not the pod's namespace")),
            (json!({"multusName": ["net"]}), None),
            (json!({"multusName": ["spider/net"]}), None),
            (json!({"multusName": ["default/net"]}), Some("spec.multusName has not the interface's network")),
        ] {
            assert_eq!(judge(&spec, true), fault, "{spec}");
        }
        assert_eq!(judge(&json!({"nodeName": ["m"], "namespaceAffinity": of("x")}), false), None);
    }
}
