//! The node agent.
//!
//! ```text
//! args + conf.yml ──> config ──> run: wires and spawns
//!
//! conf.yml  ── conf_file ──────┐
//! own Node  ── node ───────────┼─> advertise: offer() ──> kubelet::session, one task a resource <──> kubelet
//! netlink   ── nics ───────────┤                                ^          │
//! PodResources ── kubelet::in_use                               │          v
//! device-plugins folder ── kubelet::folder ─────────────────────┘   report: /registrations, metrics, events
//! ```

mod advertise;
mod args;
mod conf_file;
mod config;
mod events;
mod hash;
mod kubelet;
mod metrics;
mod nics;
mod node;
mod pauses;
mod report;
mod run;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    runtime::install_crypto();
    let args::Args { command: args::Command::Daemon(daemon) } = args::Args::parse();
    runtime::log::init(daemon.log_level, daemon.log_format);
    match config::Config::try_from(daemon).map_err(anyhow::Error::from).and_then(run::run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = %runtime::Chain(error.as_ref()), "the agent ends");
            ExitCode::FAILURE
        }
    }
}
