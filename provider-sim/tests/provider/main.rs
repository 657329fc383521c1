//! The provider from outside, over real sockets.

#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test's own parts")]

mod checked;
mod contract;
mod control;
mod faults;
mod openapi;
mod process;
mod refused;
mod stage;
mod tls;
