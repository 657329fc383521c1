//! Calls whose outcome is unknown, and when they cannot take effect any more.

use crate::{Allocation, Endpoint, Stored};
use std::time::Duration;

/// What a provider may still do after the caller stopped listening.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// From when on no call that was sent for this allocation can take effect, on the reader's own clock. The time counts from
/// when the reader first saw this version: no clocks are compared. An entry of this binding on the endpoint says that the call
/// was answered, but only as long as the allocation is held.
pub(super) fn settled_at(stored: &Stored<Allocation>, endpoint: Option<&Endpoint>) -> Duration {
    let allocation = &stored.value;
    match &allocation.provider {
        None => Duration::ZERO,
        Some(_) if allocation.held() && endpoint.is_some_and(|endpoint| endpoint.entry(allocation).is_some()) => {
            Duration::ZERO
        }
        Some(binding) => stored.seen.saturating_add(binding.settle),
    }
}

/// The `settle` of a write after which calls are sent for `budget`. Earlier calls may still be on their way.
pub(super) fn settle(allocation: &Allocation, settled: bool, budget: Duration) -> Duration {
    let own = budget.saturating_add(GRACE);
    match &allocation.provider {
        Some(binding) if !settled => own.max(binding.settle),
        _ => own,
    }
}
