//! Which pools a pod's interface may use, and in which order: values in, values out.
//!
//! ```text
//! Source: pod > namespace > CNI configuration > defaults ── expand ──> pools of one family, as the user orders them
//!                                                                        │ Rules: what each asks, as it holds for this pod
//!                                          Wanted <── order by what ── filter ──> a reason for each that is left out
//! ```
//!
//! Selectors and patterns are evaluated by the caller, who knows how Kubernetes reads them; here is what follows from it.

mod catalog;
mod choose;
mod names;
mod refusal;
mod rules;

pub use catalog::{Catalog, Pool};
pub use choose::{Request, choose};
pub use names::{Named, Source};
pub use rules::{Rule, Rules};
