//! Faults that others had, on the real flows: each test names the public report. What is asked for there of flows alone is
//! here; what takes a real API server is in the scenarios of the crate `tests`. The model test looks for what nobody had yet.

#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test's own parts")]

mod adopted;
mod again;
mod asked;
mod away;
mod budget;
mod ended;
mod endpoint;
mod faults;
mod many;
mod node;
mod outage;
mod scale;
mod side;
mod stale;
mod undo;
mod unserved;
mod vlans;
mod world;
