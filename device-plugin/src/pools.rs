//! The pools of the cluster, and which of them a pod's interface may use.
//!
//! ```text
//! SpiderIPPools ───── prepared: addresses, selectors ──┐
//! SpiderReservedIPs ───────────────────────────────────┴──> Known, in a watch channel ── candidates(pod, interface) ──> Chosen
//! ```
//!
//! Whatever can be told once is told when an object changes, not when a pod asks.

mod candidates;
mod known;
mod prepared;
mod watch;

pub(crate) use candidates::Asked;
pub(crate) use known::Known;
pub(crate) use watch::watch;
