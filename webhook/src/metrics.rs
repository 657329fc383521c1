//! Names, units and labels of the controller's metrics.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// Cheap to clone; all clones count together.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    pub(crate) admissions: Family<Outcome, Counter>,
    pub(crate) object_admissions: Family<KindOutcome, Counter>,
    pub(crate) duration: Histogram,
    pub(crate) warnings: Counter,
    pub(crate) connections_refused: Counter,
    pub(crate) lookups: Family<Outcome, Counter>,
    pub(crate) namespace_lookups: Family<Outcome, Counter>,
    pub(crate) namespace_labels: Family<Outcome, Counter>,
    pub(crate) configs: Gauge,
    pub(crate) definitions: Gauge,
    pub(crate) not_ready: Gauge,
    pub(crate) definition_writes: Family<Outcome, Counter>,
    pub(crate) leads: Gauge,
    pub(crate) certificate_not_after: Gauge,
    pub(crate) certificate_reloads: Family<Outcome, Counter>,
    pub(crate) reloads: Family<Outcome, Counter>,
    pub(crate) conf_valid: Gauge,
}

/// One of a few words that are written in the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Outcome {
    pub(crate) outcome: &'static str,
}

/// A kind of ours, and what was said of an object of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct KindOutcome {
    pub(crate) kind: &'static str,
    pub(crate) outcome: &'static str,
}

/// From what a known pod takes to the webhook's time-out, in seconds.
const BUCKETS: [f64; 9] = [0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.05, 0.35, 1.0, 5.0];

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            admissions: Family::default(),
            object_admissions: Family::default(),
            duration: Histogram::new(BUCKETS),
            warnings: Counter::default(),
            connections_refused: Counter::default(),
            lookups: Family::default(),
            namespace_lookups: Family::default(),
            namespace_labels: Family::default(),
            configs: Gauge::default(),
            definitions: Gauge::default(),
            not_ready: Gauge::default(),
            definition_writes: Family::default(),
            leads: Gauge::default(),
            certificate_not_after: Gauge::default(),
            certificate_reloads: Family::default(),
            reloads: Family::default(),
            conf_valid: Gauge::default(),
        };
        let found = metrics.clone();
        registry.register("admissions", "Pods that the API server asked about, by outcome", found.admissions);
        registry.register(
            "object_admissions",
            "Objects of this system that the API server asked about, by kind and outcome",
            found.object_admissions,
        );
        registry.register_with_unit(
            "admission_duration",
            "Time to answer the API server",
            Unit::Seconds,
            found.duration,
        );
        registry.register("admission_warnings", "Warnings given to authors of pods", found.warnings);
        registry.register(
            "connections_refused",
            "Connections that were closed for others, or not let in, because there were too many",
            found.connections_refused,
        );
        registry.register("lookups", "Attachments that had to be asked for, by outcome", found.lookups);
        registry.register(
            "namespace_lookups",
            "Namespaces that had to be asked for, by outcome",
            found.namespace_lookups,
        );
        registry.register(
            "namespace_labels",
            "Labels of namespaces that follow their annotations, by outcome",
            found.namespace_labels,
        );
        registry.register("multus_configs", "SpiderMultusConfigs that are known", found.configs);
        registry.register(
            "network_attachment_definitions",
            "NetworkAttachmentDefinitions that are known",
            found.definitions,
        );
        registry.register(
            "attachments_not_ready",
            "SpiderMultusConfigs whose definition is not as they want it, as the controller that leads sees it",
            found.not_ready,
        );
        registry.register("leads", "1 on the one controller that works for the whole cluster", found.leads);
        registry.register(
            "definition_writes",
            "NetworkAttachmentDefinitions made, mended and removed, and writes that failed",
            found.definition_writes,
        );
        registry.register_with_unit(
            "certificate_not_after_timestamp",
            "When the certificate in use expires, since the epoch",
            Unit::Seconds,
            found.certificate_not_after,
        );
        registry.register("certificate_reloads", "Changes of the certificate by outcome", found.certificate_reloads);
        registry.register("configuration_reloads", "Changes of conf.yml by outcome", found.reloads);
        registry.register(
            "configuration_valid",
            "0 while conf.yml has a fault and an older one is in force",
            found.conf_valid,
        );
        for outcome in ["applied", "refused"] {
            // Shown as 0, so that the first change is an increase.
            drop(metrics.reloads.get_or_create(&Outcome { outcome }));
            drop(metrics.certificate_reloads.get_or_create(&Outcome { outcome }));
        }
        metrics.conf_valid.set(1);
        metrics
    }
}

/// Counts one.
pub(crate) fn count(family: &Family<Outcome, Counter>, outcome: &'static str) {
    family.get_or_create(&Outcome { outcome }).inc();
}
