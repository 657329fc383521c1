//! Names, units and labels of what the controller says of its own authority; without one, nothing is said.

use crate::metrics::{Outcome, count};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

/// Cheap to clone; all clones count together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metrics {
    pub(super) authority_not_after: Gauge,
    rotations: Family<Outcome, Counter>,
}

/// What is counted.
#[derive(Clone, Copy, Debug)]
pub(super) enum Done {
    Issued,
    Published,
    Retired,
    Trusted,
    Failed,
}

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register_with_unit(
            "authority_not_after_timestamp",
            "When the authority that signs expires, since the epoch",
            Unit::Seconds,
            metrics.authority_not_after.clone(),
        );
        registry.register(
            "certificate_rotations",
            "What this controller did to the certificate and its authority, by outcome",
            metrics.rotations.clone(),
        );
        for outcome in [Done::Issued, Done::Published, Done::Retired, Done::Trusted, Done::Failed] {
            // Shown as 0, so that the first one is an increase.
            drop(metrics.rotations.get_or_create(&Outcome { outcome: outcome.word() }));
        }
        metrics
    }

    pub(super) fn count(&self, done: Done) {
        count(&self.rotations, done.word());
    }
}

impl Done {
    fn word(self) -> &'static str {
        match self {
            Self::Issued => "issued",
            Self::Published => "published",
            Self::Retired => "retired",
            Self::Trusted => "trusted",
            Self::Failed => "failed",
        }
    }
}
