//! The CNI plugins. `spiderpool` is an IPAM plugin that asks the node agent; `vlan` makes a pod's VLAN interface, with addresses,
//! VLAN and MAC of the agent or with addresses of any IPAM plugin.
//!
//! ```text
//! environment ── args ──┐
//!                       ├─> run ─> spiderpool: one call of the agent ──> result ──> stdout
//! stdin ──── config ────┘       │        │                              error ───> stdout, exit code 1
//!                               │        ├─ agent: gRPC on a unix socket
//!                               │        └─ detect: ARP and NDP in the pod's namespace, if the agent says so
//!                               └> vlan: one call of the agent or of an IPAM plugin, then the link
//! ```
//!
//! A run ends with exactly one JSON document, or, where CNI wants none, with none; a panic too.

mod agent;
mod args;
mod config;
mod detect;
mod duration;
mod end;
mod error;
mod log;
mod netns;
mod result;
mod run;
mod spiderpool;
mod stdin;
mod time;
mod version;
mod vlan;

use std::process::ExitCode;

/// One run of the plugin `spiderpool`.
#[must_use]
pub fn spiderpool() -> ExitCode {
    end::with("spiderpool", || run::run(spiderpool::serve))
}

/// One run of the plugin `vlan`.
#[must_use]
pub fn vlan() -> ExitCode {
    // Keeps it in the program.
    std::hint::black_box(proto::VLAN_MARK);
    end::with("vlan", || run::run(vlan::serve))
}
