//! Addresses and endpoints that were left behind, and addresses whose pod came back elsewhere: what the controller that leads
//! does about them.
//!
//! ```text
//! usage: suspects, by what watches show ──> run: those that are due, a few at a time ──> live reads ──> Flows (ipam-core)
//!                                            └── pauses: looked at and kept, they are due again later
//! ```

mod host;
mod looks;
mod pauses;
mod report;
mod run;

pub(crate) use report::Metrics;
pub(crate) use run::{Inputs, collect};
