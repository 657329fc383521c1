//! Attachments become what Multus reads: a NetworkAttachmentDefinition for each SpiderMultusConfig.
//!
//! ```text
//! index ──> queue: what may have to be done ──> plan: one step ──> write, while this controller leads
//!   ^                                                                │
//!   └────────────────── what the watches show of it ─────────────────┘
//! ```

mod desired;
mod network;
mod plan;
mod queue;
mod run;
mod status;
mod write;

#[cfg(test)]
pub(crate) use network::chain;
pub(crate) use run::keep;
