//! Faults that others had, on the real flows: each test names the public report. What is asked for there of flows alone is
//! here; what takes a real API server is in the scenarios of the crate `tests`. The model test looks for what nobody had yet.

#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test's own parts")]

mod again;
mod ended;
mod endpoint;
mod faults;
mod many;
mod node;
mod scale;
mod side;
mod stale;
mod undo;
mod world;
