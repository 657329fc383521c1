//! Names, units and labels of the agent's metrics. Labels are resource names, which the rules bound.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Cheap to clone; all clones count together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metrics {
    pub(crate) devices: Family<Resource, Gauge>,
    pub(crate) registered: Family<Resource, Gauge>,
    pub(crate) refused: Family<Resource, Gauge>,
    pub(crate) registrations: Family<Registration, Counter>,
    pub(crate) allocations: Family<Resource, Counter>,
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

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let Self { devices, registered, refused, registrations, allocations } = &metrics;
        registry.register("devices", "Devices offered to the kubelet", devices.clone());
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
        registry.register("registrations", "Attempts to register with the kubelet", registrations.clone());
        registry.register("allocations", "Containers that were given devices", allocations.clone());
        metrics
    }
}

pub(crate) fn resource(name: &impl ToString) -> Resource {
    Resource { resource: name.to_string() }
}
