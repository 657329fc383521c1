//! Reads the command line, runs one command, and says by the exit code what came of it.

use crate::api::connect;
use crate::args::{Args, Command, Global};
use crate::fault::{Fault, chain};
use crate::plain::plain;
use crate::{adopt, leaks, node, output, pod, pools, release};
use clap::{CommandFactory, FromArgMatches};
use std::path::Path;
use std::process::ExitCode;

/// What could not be asked, as opposed to what is wrong.
const UNASKED: u8 = 2;

/// kubectl runs a program of this name for `kubectl spiderpool`.
const PLUGIN: &str = "kubectl-spiderpool";

pub(crate) fn run() -> ExitCode {
    let Args { global, command } = match args() {
        Ok(args) => args,
        Err(error) => {
            // Help ends with 0, all else with 2.
            let code = u8::try_from(error.exit_code()).unwrap_or(UNASKED);
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Fault::Start);
    let done = runtime.and_then(|runtime| runtime.block_on(one(&global, command)));
    done.unwrap_or_else(|error| {
        eprintln!("error: {}", plain(&chain(&error)));
        ExitCode::from(UNASKED)
    })
}

/// Help and usage say what was typed.
fn args() -> Result<Args, clap::Error> {
    let called = std::env::args_os().next().unwrap_or_default();
    let is_plugin = Path::new(&called).file_stem().is_some_and(|name| name == PLUGIN);
    let mut command = Args::command();
    if is_plugin {
        command = command.display_name("kubectl spiderpool").bin_name("kubectl spiderpool");
    }
    Args::from_arg_matches_mut(&mut command.try_get_matches()?)
}

async fn one(global: &Global, command: Command) -> Result<ExitCode, Fault> {
    if let Command::Completion { shell } = command {
        return completion(shell);
    }
    let server = connect(&global.cluster).await?;
    match command {
        Command::Pools { name } => pools::run(&server, global.output, name.as_deref()).await,
        Command::Pod(which) => pod::run(&server, global, &which).await,
        Command::Node { name } => node::run(&server, global, &name).await,
        Command::Leaks => leaks::run(&server, global).await,
        Command::Release(wish) => release::run(&server, global, &wish).await,
        Command::Adopt { dry_run: _ } => adopt::run(&server, global.output, &global.system).await,
        Command::Completion { shell } => completion(shell),
    }
}

fn completion(shell: clap_complete::Shell) -> Result<ExitCode, Fault> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "spiderpoolctl", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
