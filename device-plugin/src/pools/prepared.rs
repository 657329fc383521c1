//! A pool as its object says, made ready for choices.

use ipam_core::{Candidate, Pool, Range, Ranges, Route, Rule, Rules, Subnet};
use k8s_api::crd::ip_pool::SpiderIPPool;
use k8s_api::selector::{Labels, NodeSelector, Requirement};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::ResourceExt;
use std::collections::BTreeSet;

/// What a pool asks of those who use it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asks {
    pod: Option<NodeSelector>,
    node: Option<NodeSelector>,
    node_names: Vec<String>,
    namespace: Option<NodeSelector>,
    namespace_names: Vec<String>,
    networks: Vec<String>,
}

/// Who asks for an address.
#[derive(Debug)]
pub(crate) struct Who<'w> {
    pub(crate) pod: &'w Labels,
    pub(crate) node: &'w str,
    pub(crate) node_labels: &'w Labels,
    pub(crate) namespace: &'w str,
    pub(crate) namespace_labels: &'w Labels,
    /// `namespace/name` of the attachment; none when no attachment is known.
    pub(crate) network: Option<&'w str>,
}

/// Why an object is no pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unusable(pub(crate) String);

/// Reads one. Admission keeps faults out; one that was there before is left out whole, and said so.
pub(crate) fn prepare(object: &SpiderIPPool) -> Result<(Pool, Asks), Unusable> {
    let spec = &object.spec;
    let fault = |what: &str, why: &dyn std::fmt::Display| Unusable(format!("{what}: {why}"));
    let subnet: Subnet = spec.subnet.parse().map_err(|why| fault("spec.subnet", &why))?;
    let ranges = |what: &str, texts: &[String]| -> Result<Ranges, Unusable> {
        texts.iter().map(|text| text.parse::<Range>().map_err(|why| fault(what, &why))).collect()
    };
    let within = |ranges: Ranges| ranges.intersection(&std::iter::once(subnet.range()).collect());
    let addresses = within(ranges("spec.ips", &spec.ips)?.difference(&ranges("spec.excludeIPs", &spec.exclude_ips)?));
    let gateway = spec.gateway.as_deref().filter(|text| !text.is_empty());
    let gateway = gateway.map(str::parse).transpose().map_err(|why| fault("spec.gateway", &why))?;
    let routes = spec.routes.iter().map(|route| Route { dst: route.dst.clone(), gw: route.gw.clone() }).collect();
    let selector = |what: &str, selector: &Option<LabelSelector>| {
        selector.as_ref().map(|selector| compile(selector).map_err(|why| fault(what, &why))).transpose()
    };
    let asks = Asks {
        pod: selector("spec.podAffinity", &spec.pod_affinity)?,
        node: selector("spec.nodeAffinity", &spec.node_affinity)?,
        node_names: spec.node_name.clone(),
        namespace: selector("spec.namespaceAffinity", &spec.namespace_affinity)?,
        namespace_names: spec.namespace_name.clone(),
        networks: spec.multus_name.clone(),
    };
    let pool = Pool {
        candidate: Candidate { pool: object.name_any(), subnet, addresses, gateway, routes },
        default: spec.default,
        disabled: spec.disable,
        terminating: object.metadata.deletion_timestamp.is_some(),
    };
    Ok((pool, asks))
}

fn compile(selector: &LabelSelector) -> Result<NodeSelector, k8s_api::selector::InvalidRequirement> {
    let labels = selector.match_labels.iter().flatten().map(|(key, value)| Requirement::equals(key, value));
    let expressions = selector.match_expressions.iter().flatten().map(|one| {
        let values: BTreeSet<String> = one.values.iter().flatten().cloned().collect();
        Requirement::new(&one.key, &one.operator, values)
    });
    Ok(NodeSelector::new(labels.chain(expressions).collect::<Result<_, _>>()?))
}

impl Asks {
    /// How it stands to somebody. `own_namespace`: where an attachment is that is written without one.
    pub(crate) fn rules(&self, who: &Who<'_>, own_namespace: &str) -> Rules {
        let label = |selector: &Option<NodeSelector>, labels: &Labels| match selector {
            None => Rule::Absent,
            Some(selector) => holds(selector.matches(Some(labels))),
        };
        let listed = |names: &[String], name: &str| {
            if names.is_empty() { Rule::Absent } else { holds(names.iter().any(|one| one == name)) }
        };
        let network = |written: &String| {
            who.network.is_some_and(|network| match written.contains('/') {
                true => written == network,
                false => network.split_once('/') == Some((own_namespace, written)),
            })
        };
        Rules {
            pod: label(&self.pod, who.pod),
            node_name: listed(&self.node_names, who.node),
            node: label(&self.node, who.node_labels),
            namespace_name: listed(&self.namespace_names, who.namespace),
            namespace: label(&self.namespace, who.namespace_labels),
            network: if self.networks.is_empty() { Rule::Absent } else { holds(self.networks.iter().any(network)) },
        }
    }
}

fn holds(yes: bool) -> Rule {
    if yes { Rule::Holds } else { Rule::Fails }
}
