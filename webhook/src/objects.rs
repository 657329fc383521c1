//! The objects that users write: completed and checked. Values in, values out: nothing here waits or asks.
//!
//! ```text
//! SpiderMultusConfig ──> multus_config::{complete, validate, changed, neighbours} ──┐
//! SpiderIPPool ────────> ip_pool::{complete, read, overlap, in_use} ────────────────┼──> Findings: faults and warnings
//! SpiderReservedIP ────> reserved_ip::{complete, validate} ─────────────────────────┘
//! ```
//!
//! What is missing and follows from the rest is completed by a JSON patch; what cannot be completed is left as it is, and
//! the check that comes after says why. The same checks serve whoever meets an object that was there before the webhook.

mod fault;
pub(crate) mod ip_pool;
pub(crate) mod multus_config;
mod object;
mod patch;
pub(crate) mod reserved_ip;

pub(crate) use fault::{Findings, quoted, status};
pub(crate) use object::Object;
