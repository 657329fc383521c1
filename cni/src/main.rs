//! The CNI plugin `spiderpool`: an IPAM plugin that asks the node agent.
//!
//! ```text
//! environment ── args ──┐
//!                       ├─> verb: one call of the agent ──> result ──> stdout
//! stdin ──── config ────┘            │                      error ───> stdout, exit code 1
//!                                    ├─ agent: gRPC on a unix socket
//!                                    └─ detect: ARP and NDP in the pod's namespace, if the agent says so
//! ```
//!
//! A run ends with exactly one JSON document, or, where CNI wants none, with none; a panic too.

mod agent;
mod args;
mod config;
mod detect;
mod duration;
mod error;
mod log;
mod netns;
mod result;
mod stdin;
mod time;
mod verb;
mod version;

use error::{Code, Fault};
use std::io::Write;
use std::process::ExitCode;
use version::Version;

fn main() -> ExitCode {
    // It is said once, on stdout.
    std::panic::set_hook(Box::new(|_| {}));
    let (text, code) = match std::panic::catch_unwind(verb::run) {
        Ok(Ok(output)) => (output.unwrap_or_default(), ExitCode::SUCCESS),
        Ok(Err((version, fault))) => (fault.text(version), ExitCode::FAILURE),
        Err(panic) => (Fault::new(Code::Plugin, panicked(panic.as_ref())).text(Version::LATEST), ExitCode::FAILURE),
    };
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => code,
        Err(_) => ExitCode::FAILURE,
    }
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a fault of the plugin spiderpool: {}", text.unwrap_or("it panicked"))
}
