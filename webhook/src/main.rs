//! The controller.
//!
//! ```text
//! args + conf.yml ──> run: wires and spawns
//!
//! API server ──AdmissionReview──> admission::server ──> admission::review ──> injection: pod x attachments x rules ──> patch
//!                                  ^                                           ^
//! /etc/tls, or authority ── admission::certificate                       attachments: watch ─┤ index, and a lookup for what is not in it
//!                                                          nodes: watch ───────┘ what is on offer now
//! ```

mod admission;
mod args;
mod attachments;
mod authority;
mod check;
mod injection;
mod lease;
mod metrics;
mod nodes;
mod run;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    runtime::install_crypto();
    let args::Args { command, log_level, log_format } = args::Args::parse();
    runtime::log::init(log_level, log_format);
    let outcome = match command {
        args::Command::Daemon(daemon) => run::run(*daemon),
        args::Command::Check(check) => check::run(check),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = %runtime::Chain(error.as_ref()), "the controller ends");
            ExitCode::FAILURE
        }
    }
}
