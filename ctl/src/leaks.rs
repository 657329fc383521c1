//! `leaks`: what is held for nobody, and who will free it when.

mod answer;
mod bound;
mod facts;
mod gather;
mod judge;
#[cfg(test)]
mod tests;

use crate::api::Server;
use crate::args::Global;
use crate::fault::Fault;
use crate::output;
use answer::Answer;
use std::process::ExitCode;

/// Runs the command.
pub(crate) async fn run(server: &Server, global: &Global) -> Result<ExitCode, Fault> {
    let facts = Box::pin(gather::gather(server, &global.system)).await?;
    let answer = Answer::new(judge::judge(&facts), facts.not_seen);
    output::write(global.output, &answer, || answer.table())?;
    Ok(if answer.is_stuck() { ExitCode::from(1) } else { ExitCode::SUCCESS })
}
