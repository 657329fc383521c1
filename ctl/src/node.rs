//! `node`: what a node offers, who uses it, and which addresses are held there.

mod answer;
mod explain;
mod facts;

use crate::api::Server;
use crate::args::Global;
use crate::fault::Fault;
use crate::{agents, conf, held, machines, output};
use answer::Answer;
use facts::Facts;
use k8s_api::{Quoted, syntax};
use std::process::ExitCode;

/// Runs the command.
pub(crate) async fn run(server: &Server, global: &Global, name: &str) -> Result<ExitCode, Fault> {
    if !syntax::is_subdomain(name) {
        return Err(Fault::Usage(format!("{} is not the name of a node", Quoted(name))));
    }
    let of_node = format!("spec.node.name={name}");
    let (machine, pods, allocations, agents, conf) = futures::try_join!(
        machines::one(server, name),
        machines::pods(server, name),
        held::list(server, &of_node),
        agents::list(server, Some(name)),
        conf::read(server, &global.system),
    )?;
    let agent = agents.map(|mut agents| agents.remove(name));
    let facts = Facts { name: name.to_owned(), machine, pods, allocations, agent, conf };
    let answer = Answer::new(&facts, explain::explain(&facts));
    output::write(global.output, &answer, || answer.table())?;
    Ok(if answer.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
