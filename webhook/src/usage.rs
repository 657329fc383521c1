//! How full pools are, who keeps one from going, and addresses that were left behind: what the controller that leads says of
//! pools and does for them.
//!
//! ```text
//! SpiderIPAllocations, SpiderEndpoints ──> ledger: tallies ──┬──> plan: one step for a pool, or when ──> write
//! pools ─────────────────────────────────────────────────────┘                                            │
//!   ^───────────────────────────────── what the watch shows of it ────────────────────────────────────────┘
//! Nodes x ledger ──> garbage: suspects ──> collect: live reads, then a deletion with preconditions
//! ```

mod collect;
mod facts;
mod garbage;
mod ledger;
mod plan;
mod run;
mod shown;
mod write;

pub(crate) use run::{Inputs, keep};
pub(crate) use shown::Shown;
