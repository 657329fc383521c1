//! One pool, made ready: what it has, and what it asks of pods.

use ipam_core::{Address, Candidate, Pool, Range, Ranges, Route, Rule, Rules, Subnet};
use k8s_api::crd::ip_pool::{SpiderIPPool, has_records};
use k8s_api::selector::{Labels, NodeSelector};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// What a pool asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Asks {
    pod: Affinity,
    node: Affinity,
    namespace: Affinity,
    node_names: Vec<String>,
    namespace_names: Vec<String>,
    /// `namespace/name`.
    networks: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Affinity {
    #[default]
    Absent,
    Selects(NodeSelector),
    /// No API server would take it; a pool that was there before the webhooks gives nothing by it.
    Unreadable,
}

/// Whom a pool is asked about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subject<'s> {
    pub(super) labels: &'s Labels,
    pub(super) node: &'s str,
    pub(super) node_labels: Option<&'s Labels>,
    pub(super) namespace: &'s str,
    pub(super) namespace_labels: Option<&'s Labels>,
    pub(super) network: &'s str,
}

/// `None` if its subnet cannot be read: such a pool has a name, and no address.
pub(super) fn prepare(pool: &SpiderIPPool, own_namespace: &str) -> Option<(Pool, Asks)> {
    let spec = &pool.spec;
    let ranges = |texts: &[String]| -> Ranges { texts.iter().filter_map(|text| text.parse::<Range>().ok()).collect() };
    let candidate = Candidate {
        pool: pool.metadata.name.clone()?,
        subnet: spec.subnet.parse::<Subnet>().ok()?,
        addresses: ranges(&spec.ips).difference(&ranges(&spec.exclude_ips)),
        gateway: spec.gateway.as_deref().and_then(|gateway| gateway.parse::<Address>().ok()),
        routes: spec.routes.iter().map(|route| Route { dst: route.dst.clone(), gw: route.gw.clone() }).collect(),
    };
    let network = |name: &String| if name.contains('/') { name.clone() } else { format!("{own_namespace}/{name}") };
    let asks = Asks {
        pod: Affinity::of(spec.pod_affinity.as_ref()),
        node: Affinity::of(spec.node_affinity.as_ref()),
        namespace: Affinity::of(spec.namespace_affinity.as_ref()),
        node_names: spec.node_name.clone(),
        namespace_names: spec.namespace_name.clone(),
        networks: spec.multus_name.iter().map(network).collect(),
    };
    let terminating = pool.metadata.deletion_timestamp.is_some();
    let records = pool.status.as_ref().and_then(|status| status.allocated_ips.as_deref());
    let unadopted = records.is_some_and(has_records);
    Some((Pool { candidate, default: spec.default, disabled: spec.disable, terminating, unadopted }, asks))
}

impl Asks {
    pub(super) fn rules(&self, subject: Subject<'_>) -> Rules {
        let listed = |names: &[String], name: &str| match names {
            [] => Rule::Absent,
            names if names.iter().any(|one| one == name) => Rule::Holds,
            _ => Rule::Fails,
        };
        Rules {
            pod: self.pod.rule(Some(subject.labels)),
            node_name: listed(&self.node_names, subject.node),
            node: self.node.rule(subject.node_labels),
            namespace_name: listed(&self.namespace_names, subject.namespace),
            namespace: self.namespace.rule(subject.namespace_labels),
            network: listed(&self.networks, subject.network),
        }
    }
}

impl Affinity {
    fn of(selector: Option<&LabelSelector>) -> Self {
        selector.map_or(Self::Absent, |selector| selector.try_into().map_or(Self::Unreadable, Self::Selects))
    }

    fn rule(&self, labels: Option<&Labels>) -> Rule {
        match self {
            Self::Absent => Rule::Absent,
            Self::Selects(selector) if selector.matches(labels) => Rule::Holds,
            Self::Selects(_) | Self::Unreadable => Rule::Fails,
        }
    }
}
