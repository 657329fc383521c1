//! The parts of a pod that matter here, read from the API server's JSON; all else stays unread.

use k8s_api::Quoted;
use k8s_api::conf::Multus;
use k8s_api::multus::{self, Reference};
use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// A pod, as it is sent.
#[derive(Debug, Deserialize)]
pub(crate) struct Pod<'a> {
    #[serde(borrow)]
    metadata: Option<Metadata<'a>>,
    spec: Option<Spec>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    generate_name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    annotations: Option<Annotations<'a>>,
}

#[derive(Debug, Default, Deserialize)]
struct Annotations<'a> {
    #[serde(borrow, rename = "k8s.v1.cni.cncf.io/networks")]
    networks: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "v1.multus-cni.io/default-network")]
    default_network: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "kubernetes.io/config.mirror")]
    mirror: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "cni.spidernet.io/rdma-resource-inject")]
    inject_rdma: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "cni.spidernet.io/network-resource-inject")]
    inject_network: Option<Cow<'a, str>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    host_network: Option<bool>,
    #[serde(default)]
    containers: Containers,
    #[serde(default)]
    init_containers: Containers,
}

/// No more than a pod can have; `null` is none.
#[derive(Debug, Default)]
struct Containers(Vec<Container>);

/// The extended resources among the quantities of a container; nothing else matters here.
#[derive(Debug, Default)]
pub(crate) struct Quantities(BTreeMap<String, Value>);

/// Far above what anybody writes: a request of 3 MiB could else take a hundred times as much memory.
const MOST: usize = 1000;

impl<'de> Deserialize<'de> for Containers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bounded;
        impl<'de> Visitor<'de> for Bounded {
            type Value = Containers;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of containers")
            }
            fn visit_unit<E>(self) -> Result<Containers, E> {
                Ok(Containers::default())
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Containers, A::Error> {
                let mut containers = Vec::new();
                while let Some(container) = items.next_element()? {
                    if containers.len() == MOST {
                        return Err(A::Error::custom(format_args!("more than {MOST} containers")));
                    }
                    containers.push(container);
                }
                Ok(Containers(containers))
            }
        }
        deserializer.deserialize_any(Bounded)
    }
}

impl<'de> Deserialize<'de> for Quantities {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Extended;
        impl<'de> Visitor<'de> for Extended {
            type Value = Quantities;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of quantities")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Quantities, A::Error> {
                let mut quantities = BTreeMap::new();
                while let Some(name) = map.next_key::<Cow<'de, str>>()? {
                    if !name.contains('/') {
                        map.next_value::<IgnoredAny>()?;
                        continue;
                    }
                    if quantities.len() == MOST {
                        return Err(A::Error::custom(format_args!("more than {MOST} resources")));
                    }
                    quantities.insert(name.into_owned(), map.next_value()?);
                }
                Ok(Quantities(quantities))
            }
        }
        deserializer.deserialize_map(Extended)
    }
}

/// A container; `null` and absent are the same everywhere.
#[derive(Debug, Deserialize)]
pub(crate) struct Container {
    pub(crate) resources: Option<Resources>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Resources {
    pub(crate) limits: Option<Quantities>,
    pub(crate) requests: Option<Quantities>,
}

impl Resources {
    fn wrote(&self, resource: &str) -> Option<&Value> {
        [&self.requests, &self.limits].into_iter().flatten().find_map(|quantities| quantities.0.get(resource))
    }
}

/// The networks that a pod names, and what could not be read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Mentions {
    pub(crate) references: Vec<Reference>,
    pub(crate) faults: Vec<String>,
}

impl Pod<'_> {
    /// Why the pod is none of ours, if so.
    pub(crate) fn left_alone(&self) -> Option<&'static str> {
        let mirror = self.annotations().is_some_and(|annotations| annotations.mirror.is_some());
        let host_network = self.spec.as_ref().is_some_and(|spec| spec.host_network == Some(true));
        match (mirror, host_network) {
            (true, _) => Some("mirror-pod"),
            (_, true) => Some("host-network"),
            _ => None,
        }
    }

    /// What the annotations name: the first interface, then the others. `namespace` is that of the request; the object
    /// itself may have none yet. `networks` stands in for the pod's own, where it is about to be changed.
    pub(crate) fn mentions(&self, namespace: &str, networks: Option<&str>, multus: &Multus) -> Mentions {
        let annotations = self.annotations();
        let (mut mentions, mut apart) = (Mentions::default(), Vec::new());
        let mut read = |key: &str, outcome: Result<Vec<Reference>, multus::InvalidNetworks>| match outcome {
            Ok(references) => mentions.references.extend(references),
            Err(error) => {
                mentions.faults.push(format!("annotation {key} is not used, and Multus will refuse it: {error}"));
            }
        };
        match (annotations.and_then(|found| found.default_network.as_deref()), &multus.cluster_network) {
            (Some(text), _) => {
                let found = multus::default_network(text, &multus.namespace);
                read(multus::DEFAULT_NETWORK, found.map(|reference| vec![reference]));
            }
            (None, Some((namespace, name))) => {
                let (namespace, name) = (namespace.clone(), name.clone());
                read(multus::DEFAULT_NETWORK, Ok(vec![Reference { namespace, name, interface: String::new() }]));
            }
            (None, None) => {}
        }
        if let Some(text) = networks.or(self.networks()) {
            read(
                multus::NETWORKS,
                multus::networks(text, namespace).map(|all| reached(all, namespace, multus, &mut apart)),
            );
        }
        mentions.faults.extend(apart);
        mentions
    }

    /// What names the pod's further networks.
    pub(crate) fn networks(&self) -> Option<&str> {
        self.annotations()?.networks.as_deref()
    }

    /// The values of [`k8s_api::names::INJECT`].
    pub(crate) fn inject(&self) -> [Option<&str>; 2] {
        let annotations = self.annotations();
        [
            annotations.and_then(|found| found.inject_rdma.as_deref()),
            annotations.and_then(|found| found.inject_network.as_deref()),
        ]
    }

    pub(super) fn has_metadata(&self) -> bool {
        self.metadata.is_some()
    }

    pub(super) fn has_annotations(&self) -> bool {
        self.annotations().is_some()
    }

    /// The container that is given what the pod needs.
    pub(crate) fn first_container(&self) -> Option<&Container> {
        self.spec.as_ref()?.containers.0.first()
    }

    /// What users wrote for a resource, for each container that takes part in scheduling: its request, or its limit.
    pub(crate) fn wrote(&self, resource: &str) -> Vec<&Value> {
        let Some(spec) = &self.spec else { return Vec::new() };
        let containers = spec.containers.0.iter().chain(&spec.init_containers.0);
        let resources = containers.filter_map(|container| container.resources.as_ref());
        resources.filter_map(|resources| resources.wrote(resource)).collect()
    }

    /// How the pod is called, or will be.
    pub(crate) fn called(&self) -> &str {
        let metadata = self.metadata.as_ref();
        let name = metadata.and_then(|metadata| metadata.name.as_deref().or(metadata.generate_name.as_deref()));
        name.unwrap_or_default()
    }

    fn annotations(&self) -> Option<&Annotations<'_>> {
        self.metadata.as_ref()?.annotations.as_ref()
    }
}

/// Those that Multus lets a pod of `namespace` have; the others are told. It does not hold for the default network.
fn reached(references: Vec<Reference>, namespace: &str, multus: &Multus, apart: &mut Vec<String>) -> Vec<Reference> {
    let (reached, others) = references.into_iter().partition(|one| multus.reaches(namespace, &one.namespace));
    let others: Vec<Reference> = others;
    apart.extend(others.iter().map(|Reference { namespace: other, name, .. }| {
        format!(
            "Multus keeps namespaces apart and will refuse {} to a pod of {namespace}; it gets no requests for it",
            Quoted(&format!("{other}/{name}"))
        )
    }));
    reached
}
