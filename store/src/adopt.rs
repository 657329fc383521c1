//! Taking over what an earlier system has recorded in the status of its pools.
//!
//! ```text
//! pools, endpoints, pods, nodes, allocations ── gather ──> Gathered ── plans ──> Plan of each pool ──> import, unhold, close
//!                                                                         └──> preview, for people
//! ```
//!
//! What a provider has bound becomes an allocation with a binding of its own; after that its endpoint's entry says the same, in
//! the write that takes the finalizer off. In between nobody frees it while its pod is there.
//!
//! Reads are live and come first; the plan is a function of what they showed. Who writes must know before he reads that nobody
//! changes the records any more. Every write can be repeated: an allocation that is there is not made again, a finalizer that is
//! off stays off, and the records go last, in one write with the condition that says so.

mod due;
mod gather;
mod plan;
mod pods;
mod preview;
mod record;
mod write;

pub use due::Due;
pub use gather::{Gathered, OldEndpoint, OldPool};
pub use plan::{Fault, Plan, plans};
pub use preview::{Import, PoolPreview, Preview, preview};
pub use record::{Record, Unreadable};
pub use write::Imported;

use crate::call::Caller;
use crate::owner::Owners;
use crate::pod::Namespaces;
use kube::Client;
use std::fmt;
use std::time::Duration;

/// Condition of a pool: whether what an earlier system recorded of it has been taken over.
pub const ADOPTED: &str = "Adopted";

/// Reads and writes of an adoption. Each request ends after the deadline that it was made with.
pub struct Adopter {
    caller: Caller,
    owners: Owners,
    namespaces: Namespaces,
}

impl Adopter {
    /// `client` must not repeat requests by itself.
    #[must_use]
    pub fn new(client: Client, deadline: Duration) -> Self {
        Self { caller: Caller::new(client, deadline), owners: Owners::default(), namespaces: Namespaces::default() }
    }
}

impl fmt::Debug for Adopter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adopter").finish_non_exhaustive()
    }
}
