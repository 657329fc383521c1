//! Nobody is asked to bind.

use ipam_core::{Bound, Call, Outcome, Provider};

/// Networks whose addresses a cloud binds are refused before anything is reserved, so nothing ever comes here; if it does (an
/// object of a later version), it is kept.
#[derive(Debug)]
pub(super) struct Nobody;

const WHY: &str = "this agent asks no provider";

impl Provider for Nobody {
    async fn allocate(&self, _: &Call) -> Outcome<Bound> {
        Outcome::Rejected(WHY.to_owned())
    }

    async fn release(&self, _: &Call) -> Outcome<()> {
        Outcome::Unknown(WHY.to_owned())
    }
}
