//! `provider-sim`: a provider to try things with, and a check for those who write one.

mod args;
mod run;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    runtime::install_crypto();
    let args::Args { command, log_level, log_format } = args::Args::parse();
    runtime::log::init(log_level, log_format);
    let outcome = match command {
        args::Command::Serve(serve) => run::serve(serve).map(|()| ExitCode::SUCCESS),
        args::Command::Check(check) => run::check(check),
    };
    outcome.unwrap_or_else(|error| {
        tracing::error!(error = %runtime::Chain(error.as_ref()), "provider-sim ends");
        ExitCode::FAILURE
    })
}
