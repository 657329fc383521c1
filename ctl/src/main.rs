//! `spiderpoolctl`: who has which address, why a pod has none, and what to do about it.
//!
//! ```text
//! args ──> run ──> api: lists and reads, each with a deadline ──> facts ──> explain (pure) ──> findings, verdict ──> output
//!                                                                 pools, pod, node, leaks, adopt
//!                                                     release: a wish of a person's, written after a look and a question
//! ```

mod adopt;
mod agents;
mod api;
mod args;
mod conf;
mod fault;
mod finding;
mod held;
mod leaks;
mod looker;
mod machines;
mod node;
mod output;
mod plain;
mod pod;
mod pools;
mod progress;
mod providers;
mod quantity;
mod release;
mod requests;
mod run;
mod table;

use std::process::ExitCode;

fn main() -> ExitCode {
    // TLS clients panic without it. An error means that one is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    run::run()
}
