//! The controller's side of the flows: it has a clock and chance, but neither sandboxes nor a disk of the node.

use ipam_core::{Allocation, Host, Interface, Kept, Step};
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Elsewhere;

impl Host for Elsewhere {
    fn now(&self) -> Duration {
        runtime::since_boot()
    }

    async fn sleep(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    async fn pause(&self, time: Duration) -> bool {
        // With the lease all of it is dropped.
        tokio::time::sleep(time).await;
        true
    }

    fn unreleased(&self, allocation: &Allocation, why: String) {
        let (address, pod) = (allocation.address, &allocation.pod);
        tracing::warn!(%address, namespace = pod.namespace, name = pod.name, why, "the provider does not release an address; it is asked again");
    }

    fn random(&self) -> u128 {
        runtime::random()
    }

    async fn kept(&self, _: &str, _: &str) -> Kept {
        Kept::Unreadable
    }

    async fn keep(&self, _: &str, _: &Interface) {}

    async fn sandbox_gone(&self, _: &Allocation) -> bool {
        false
    }

    async fn at(&self, step: Step) {
        tracing::debug!(?step, "a flow goes on");
    }
}
