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
//!
//! CNI plugins ── agent ──> addresses: ipam-core's flows over store (API server) and the machine
//! pools, pods of this node ──┘
//! ```
//!
//! `multus` is another program in the same file, run by a DaemonSet of its own; `install_cni` two that run before and
//! beside the agent.

mod addresses;
mod advertise;
mod agent;
mod args;
mod conf_file;
mod config;
mod events;
mod hash;
mod install_cni;
mod kubelet;
mod metrics;
mod multus;
mod nics;
mod node;
mod pools;
mod report;
mod run;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    runtime::install_crypto();
    let ended = match args::Args::parse().command {
        args::Command::Daemon(daemon) => {
            runtime::log::init(daemon.log_level, daemon.log_format);
            config::Config::try_from(daemon).map_err(anyhow::Error::from).and_then(run::run)
        }
        args::Command::InstallCni(args) => {
            runtime::log::init(args.log_level, args.log_format);
            install_cni::run(&args)
        }
        args::Command::RestoreCni(args) => {
            runtime::log::init(args.log_level, args.log_format);
            install_cni::restore(args)
        }
        args::Command::Multus(args) => {
            runtime::log::init(args.log_level, args.log_format);
            multus::run(*args)
        }
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = %runtime::Chain(error.as_ref()), "the agent ends");
            ExitCode::FAILURE
        }
    }
}
