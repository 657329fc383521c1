//! Names, units and labels of the agent's metrics. Labels are resource names, which the rules bound.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

/// Cheap to clone; all clones count together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metrics {
    pub(crate) devices: Family<Resource, Gauge>,
    pub(crate) in_use: Family<Resource, Gauge>,
    pub(crate) in_use_known: Gauge,
    pub(crate) bindings_without_pod: Gauge,
    pub(crate) registered: Family<Resource, Gauge>,
    pub(crate) refused: Family<Resource, Gauge>,
    pub(crate) last_contact: Family<Resource, Gauge>,
    pub(crate) registrations: Family<Registration, Counter>,
    pub(crate) allocations: Family<Resource, Counter>,
    pub(crate) kubelet_restarts: Counter,
    pub(crate) kubelet_listens: Gauge,
    pub(crate) malformed: Counter,
    pub(crate) reloads: Family<Reload, Counter>,
    pub(crate) conf_valid: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Resource {
    pub(crate) resource: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Registration {
    pub(crate) resource: String,
    pub(crate) outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Reload {
    pub(crate) outcome: &'static str,
}

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let Self {
            devices,
            in_use,
            in_use_known,
            bindings_without_pod,
            registered,
            refused,
            last_contact,
            registrations,
            allocations,
            kubelet_restarts,
            kubelet_listens,
            malformed,
            reloads,
            conf_valid,
        } = &metrics;
        registry.register("devices", "Devices offered to the kubelet", devices.clone());
        registry.register("devices_in_use", "Devices that pods hold, as the kubelet says", in_use.clone());
        registry.register(
            "in_use_known",
            "0 while the kubelet does not say which devices pods hold; what it said before counts",
            in_use_known.clone(),
        );
        registry.register(
            "bindings_without_pod",
            "Sub-interfaces that the cloud has, or may have, bound on this node and that no live pod holds",
            bindings_without_pod.clone(),
        );
        registry.register(
            "registered",
            "1 while the kubelet has accepted the resource and reads its list",
            registered.clone(),
        );
        registry.register(
            "refused",
            "1 for a resource that a rule selects and that cannot be offered",
            refused.clone(),
        );
        registry.register_with_unit(
            "last_contact_timestamp",
            "When the kubelet last asked something of the resource, since the epoch",
            Unit::Seconds,
            last_contact.clone(),
        );
        registry.register("registrations", "Attempts to register with the kubelet", registrations.clone());
        registry.register("allocations", "Containers that were given devices", allocations.clone());
        registry.register(
            "kubelet_restarts",
            "Times that a new kubelet.sock took the place of another",
            kubelet_restarts.clone(),
        );
        registry.register(
            "kubelet_listens",
            "1 while a kubelet listens in one of its folders",
            kubelet_listens.clone(),
        );
        registry.register(
            "malformed_requests",
            "HTTP/2 requests refused before they reached the agent, as those of kubelets before 1.26",
            malformed.clone(),
        );
        registry.register("configuration_reloads", "Changes of conf.yml by outcome", reloads.clone());
        registry.register(
            "configuration_valid",
            "0 while conf.yml has a fault and an older one is in force",
            conf_valid.clone(),
        );
        metrics
    }
}

pub(crate) fn resource(name: &impl ToString) -> Resource {
    Resource { resource: name.to_string() }
}
