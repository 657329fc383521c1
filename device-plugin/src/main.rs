//! The node agent.
//!
//! ```text
//! args + conf.yml ──> config ──> run: wires and spawns
//!
//! own Node  ── node ──┐
//! netlink   ── nics ──┼─> advertise: offer() ──> kubelet::session, one task a resource <──> kubelet
//! conf.yml ───────────┘                                ^
//! device-plugins folder ── kubelet::folder ────────────┘
//! ```

mod advertise;
mod args;
mod config;
mod kubelet;
mod metrics;
mod nics;
mod node;
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
