//! What an earlier system recorded in the status of pools becomes addresses, while this controller leads.
//!
//! ```text
//! pools with records ──> proof: every API server refuses what that system writes ──> store::adopt: gather, plan
//!                                                 ──> import each record ──> finalizers off endpoints ──> records off, Adopted
//! ```
//!
//! The order is what makes it safe to be cut off anywhere: records stand still from the proof on, agents give nothing from a pool
//! as long as it has any, and they go last.

mod pass;
mod proof;
mod report;
mod run;

pub(crate) use report::Metrics;
pub(crate) use run::{Inputs, adopt};
