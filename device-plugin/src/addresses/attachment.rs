//! Which of a pod's interfaces is asked for, and for which attachment.

use ipam_core::PodFacts;
use k8s_api::conf::Multus;
use k8s_api::multus::{DEFAULT_NETWORK, NETWORKS, default_network, networks};

/// One interface of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Attachment {
    /// From 0, in the order in which Multus makes them.
    pub(super) index: usize,
    /// `namespace/name`; empty when no annotation names it.
    pub(super) network: String,
}

/// By the pod's annotations, as Multus reads them: the first interface is of the default network, number n of the n-th of the
/// list, under the name that stands there or `net<n>`. What cannot be read, Multus has refused before.
pub(super) fn attachment(pod: &PodFacts, namespace: &str, interface: &str, multus: &Multus) -> Attachment {
    let annotation = |key: &str| pod.annotations.get(key).map(String::as_str);
    let listed = annotation(NETWORKS).and_then(|text| networks(text, namespace).ok()).unwrap_or_default();
    let found = listed.iter().enumerate().find(|(n, reference)| match reference.interface.as_str() {
        "" => interface == format!("net{}", n + 1),
        name => interface == name,
    });
    if let Some((n, reference)) = found {
        return Attachment { index: n + 1, network: format!("{}/{}", reference.namespace, reference.name) };
    }
    let default = annotation(DEFAULT_NETWORK).and_then(|text| default_network(text, &multus.namespace).ok());
    let default =
        default.map(|reference| (reference.namespace, reference.name)).or_else(|| multus.cluster_network.clone());
    Attachment { index: 0, network: default.map(|(namespace, name)| format!("{namespace}/{name}")).unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(annotations: &[(&str, &str)], interface: &str) -> (usize, String) {
        let annotations = annotations.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let pod = PodFacts { annotations, ..PodFacts::default() };
        let found = attachment(&pod, "ns", interface, &Multus::default());
        (found.index, found.network)
    }

    #[test]
    fn interfaces_are_counted_as_multus_makes_them() {
        let pod = [(NETWORKS, "a,other/b@rdma0,a"), (DEFAULT_NETWORK, "first")];
        assert_eq!(of(&pod, "eth0"), (0, "kube-system/first".to_owned()));
        assert_eq!(of(&pod, "net1"), (1, "ns/a".to_owned()));
        assert_eq!(of(&pod, "rdma0"), (2, "other/b".to_owned()));
        assert_eq!(of(&pod, "net3"), (3, "ns/a".to_owned()));
        assert_eq!(of(&[], "eth0"), (0, String::new()));
    }
}
