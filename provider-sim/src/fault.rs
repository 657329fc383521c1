//! Faults that a test asks for: which calls they hit, and what then goes wrong.
//!
//! ```text
//! JSON ──> Spec ──> Rule { operation, match, times, probability, Fault } ──> Faults ── first that matches ──> Fault ──> Plan
//! ```

mod alter;
mod kind;
mod plan;
mod rule;
mod rules;

pub(crate) use alter::Alteration;
pub use kind::{Kind, Spec};
pub(crate) use plan::{Plan, Shape, Work};
pub(crate) use rule::Rule;
pub use rule::{InvalidRule, Match, On, RuleSpec};
pub(crate) use rules::Faults;
pub use rules::{Hit, TooMany};
