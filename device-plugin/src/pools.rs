//! The pools of the cluster, and which of them a pod's interface may use.
//!
//! ```text
//! SpiderIPPools ───── prepared: addresses, selectors ──┐
//! SpiderReservedIPs ───────────────────────────────────┼──> Known, in a watch channel ── candidates(pod, interface) ──> Wanted
//! Namespaces (metadata) ── labels, default pools ──────┘
//! ```
//!
//! Whatever can be told once is told when an object changes, not when a pod asks.

mod candidates;
mod known;
mod prepared;
mod watch;
