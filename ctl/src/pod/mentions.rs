//! Which networks a pod names, by its annotations as Multus reads them.

use k8s_api::conf::Multus;
use k8s_api::multus::{DEFAULT_NETWORK, NETWORKS, Reference, default_network, networks};
use k8s_openapi::api::core::v1::Pod;

/// One network of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mention {
    /// Interface in the pod.
    pub(super) interface: String,
    /// Which of the pod's interfaces, from 0.
    pub(super) index: usize,
    pub(super) reference: Reference,
}

impl Mention {
    /// `namespace/name`.
    pub(super) fn network(&self) -> String {
        format!("{}/{}", self.reference.namespace, self.reference.name)
    }
}

/// What can be read, and what cannot: which annotation, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Mentions {
    pub(super) all: Vec<Mention>,
    pub(super) faults: Vec<(&'static str, String)>,
}

pub(super) fn mentions(pod: &Pod, namespace: &str, multus: &Multus) -> Mentions {
    let mut found = Mentions::default();
    let annotation = |key: &str| pod.metadata.annotations.as_ref()?.get(key).map(String::as_str);
    let first = match annotation(DEFAULT_NETWORK).map(|text| default_network(text, &multus.namespace)) {
        Some(Ok(reference)) => Some(reference),
        Some(Err(error)) => {
            found.faults.push((DEFAULT_NETWORK, error.to_string()));
            None
        }
        None => multus.cluster_network.clone().map(|(namespace, name)| Reference {
            namespace,
            name,
            interface: String::new(),
        }),
    };
    found.all.extend(first.map(|reference| Mention { interface: named(&reference, "eth0"), index: 0, reference }));
    match annotation(NETWORKS).map(|text| networks(text, namespace)) {
        Some(Ok(listed)) => {
            let mention = |(n, reference)| {
                let index = n + 1;
                Mention { interface: named(&reference, &format!("net{index}")), index, reference }
            };
            found.all.extend(listed.into_iter().enumerate().map(mention));
        }
        Some(Err(error)) => found.faults.push((NETWORKS, error.to_string())),
        None => {}
    }
    found
}

fn named(reference: &Reference, default: &str) -> String {
    if reference.interface.is_empty() { default.to_owned() } else { reference.interface.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn interfaces_are_counted_as_multus_makes_them() {
        let read = |annotations: serde_json::Value| {
            let pod = serde_json::from_value(json!({"metadata": {"annotations": annotations}})).expect("a pod");
            mentions(&pod, "team-a", &Multus::default())
        };
        let found = read(json!({NETWORKS: "a,b/c@rdma0", DEFAULT_NETWORK: "first"}));
        let shown = found.all.iter().map(|one| format!("{} {} {}", one.index, one.interface, one.network()));
        let shown: Vec<_> = shown.collect();
        assert_eq!(shown, ["0 eth0 kube-system/first", "1 net1 team-a/a", "2 rdma0 b/c"]);
        let odd = read(json!({NETWORKS: "a b"}));
        assert!(odd.all.is_empty() && odd.faults[0].1.contains("lower-case letters"), "{odd:?}");
    }
}
