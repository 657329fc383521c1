//! Calls of a provider, counted.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use std::time::Duration;

/// How many calls came to what, and how long they took. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Calls {
    made: Family<Call, Counter>,
    took: Family<Operation, Histogram, fn() -> Histogram>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Call {
    operation: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Operation {
    operation: &'static str,
}

/// From a provider next door to the longest that a call may take, in seconds.
const BUCKETS: [f64; 10] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 5.0, 16.0, 48.0, 100.0];

impl Calls {
    /// Under the prefix of the process.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let calls = Self { made: Family::default(), took: Family::new_with_constructor(|| Histogram::new(BUCKETS)) };
        let help = "Calls of the cloud provider, by what came of them (unknown: no complete answer)";
        registry.register("provider_calls", help, calls.made.clone());
        let help = "How long calls of the cloud provider took";
        registry.register_with_unit("provider_call_duration", help, Unit::Seconds, calls.took.clone());
        calls
    }

    /// One more.
    pub fn count(&self, operation: &'static str, outcome: &'static str, took: Duration) {
        self.made.get_or_create(&Call { operation, outcome }).inc();
        self.took.get_or_create(&Operation { operation }).observe(took.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_what_came_of_them() {
        let mut registry = Registry::default();
        let calls = Calls::register(&mut registry);
        calls.count("allocate", "answered", Duration::from_millis(20));
        calls.count("allocate", "answered", Duration::from_secs(3));
        calls.count("release", "unknown", Duration::from_secs(50));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).expect("text");
        for line in [
            "provider_calls_total{operation=\"allocate\",outcome=\"answered\"} 2",
            "provider_calls_total{operation=\"release\",outcome=\"unknown\"} 1",
            "provider_call_duration_seconds_bucket{le=\"0.025\",operation=\"allocate\"} 1",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }
}
