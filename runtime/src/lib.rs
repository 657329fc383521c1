//! What every long-running binary shares.
//!
//! A process is a [`Tasks`]: it spawns what must run for as long as the process does, and when a signal comes or one of
//! them ends, it stops them all within a deadline. The [`admin`] port answers `/live`, `/ready` and `/metrics`; it says
//! ready once every [`Hold`] of the [`Gate`] is released. What is read from mounted files is [`follow`]ed.

pub mod admin;
mod calls;
mod chain;
pub mod conf_file;
pub mod follow;
mod gate;
pub mod inotify;
pub mod log;
mod machine;
mod pauses;
mod tasks;

pub use calls::Calls;
pub use chain::Chain;
pub use gate::{Gate, Hold};
pub use machine::{random, since_boot};
pub use pauses::Pauses;
pub use tasks::{Ended, Tasks};

/// Chooses the TLS implementation for the process. First line of every `main`: TLS clients panic without it.
pub fn install_crypto() {
    // An error means that one is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
