//! The controller.
//!
//! ```text
//! args + conf.yml ──> run: wires and spawns
//!
//! API server ──AdmissionReview──> admission::server ──> admission::review ──> injection: pod x attachments x rules ──> patch
//!                                  ^                                           ^
//! /etc/tls, or authority ── admission::certificate       by_annotation ────────┤ networks that a value selects
//!                                                          attachments: watch ─┤ index, and a lookup for what is not in it
//!                                                          namespaces: watch ──┤ their annotations, as well
//!                                                          nodes: watch ───────┘ what is on offer now
//!            admission::objects ──> objects: completed, checked <── pools: watch, and what was admitted a moment ago
//!
//! lease ── of several controllers one leads ──> definitions: a NetworkAttachmentDefinition for each attachment
//!                                           ──> namespaces::mirror: label of annotated namespaces
//!                                           ──> usage: counts of pools, and pools that wait for their addresses to go
//!                                           ──> authority: certificates and who trusts them, with `--tls-self-secret`
//! ```

mod admission;
mod adoption;
mod args;
mod attachments;
mod authority;
mod by_annotation;
mod check;
mod cni;
mod definitions;
mod events;
mod flights;
mod garbage;
mod injection;
mod lease;
mod metrics;
mod namespaces;
mod nodes;
mod objects;
mod pointer;
mod pools;
mod resilient;
mod run;
mod usage;

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
