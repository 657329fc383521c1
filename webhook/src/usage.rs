//! How full pools are, who keeps one from going, and what may have been left behind: what the controller that leads knows of
//! addresses, and does for pools.
//!
//! ```text
//! SpiderIPAllocations, SpiderEndpoints ──> ledger: tallies ──┬──> plan: one step for a pool, or when ──> write
//! pools ─────────────────────────────────────────────────────┘                                            │
//!   ^───────────────────────────────── what the watch shows of it ────────────────────────────────────────┘
//! Nodes x ledger ──> suspects ──> garbage
//! ```

mod facts;
mod ledger;
mod plan;
mod run;
mod shown;
mod suspects;
mod write;

pub(crate) use run::{Inputs, keep};
pub(crate) use shown::Shown;
pub(crate) use suspects::{Suspect, Suspects, Suspicion, Wanted};
