//! How full pools are, and who keeps one from going: what the controller that leads says of pools and does for them.
//!
//! ```text
//! SpiderIPAllocations, SpiderEndpoints ──> ledger: tallies ──┬──> plan: one step for a pool, or when ──> write
//! pools ─────────────────────────────────────────────────────┘                                            │
//!   ^───────────────────────────────── what the watch shows of it ────────────────────────────────────────┘
//! ```

mod facts;
mod ledger;
mod plan;
mod run;
mod shown;
mod write;

pub(crate) use run::{Inputs, keep};
pub(crate) use shown::Shown;
