//! A provider of the IaaS contract that binds nothing, and a check of real ones.
//!
//! ```text
//! server: POST allocate-ips, release-ip ──> ask (what keeps the contract) ──> cloud (who has what) ──> answer
//!                                             fault: what tests want to go wrong ──────────────────────^
//! check:  named checks ──> any provider ──> report
//! ```
//!
//! Pure: `ask`, `bucket`, `budget`, `cloud`, `fault`, `mac`, `record`, `wire`.

mod ask;
mod bucket;
mod budget;
pub mod check;
mod cloud;
mod fault;
mod mac;
mod record;
mod server;
pub mod wire;

pub use cloud::View;
pub use fault::{Hit, InvalidRule, Kind, Match, On, RuleSpec, Spec, TooMany};
pub use record::{Outcome, Record};
pub use server::{CannotServe, GRACE, Handle, Identity, InvalidIdentity, Options, Settings, Sim, Token};
