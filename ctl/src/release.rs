//! `release`: a person's wish that an address be freed. The controller carries it out.
//!
//! ```text
//! addresses ──> look: who has it, does the pod live ──> a question ──> ask: spec.releaseRequest ──> follow until it is gone
//! ```

mod answer;
mod ask;
mod follow;
mod look;

use crate::api::Server;
use crate::args::{Global, Wish};
use crate::fault::{Fault, chain};
use crate::plain::plain;
use crate::providers::{self, Providers};
use crate::{conf, output};
use answer::{Answer, Handled, Outcome};
use look::Looked;
use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use store::Address;

/// Runs the command.
pub(crate) async fn run(server: &Server, global: &Global, wish: &Wish) -> Result<ExitCode, Fault> {
    let addresses = read(&wish.addresses)?;
    let providers = Providers::of(conf::read(server, &global.system).await?.as_ref().ok());
    let (mut results, mut targets) = (Vec::new(), Vec::new());
    for address in addresses {
        match look::look(server, address).await? {
            Looked::Nobody => results.push(Handled::new(address, Outcome::Free, "nobody has it".to_owned())),
            Looked::Refused(why) => {
                eprintln!("{address}: refused: {}", plain(&why));
                results.push(Handled::new(address, Outcome::Refused, why));
            }
            Looked::Target(target) => {
                // The controller asks whoever bound it; here nobody could be asked.
                if let Some(server) = providers.unserved(&target.one).filter(|_| !wish.abandon) {
                    let (why, todo) = (providers::nobody_asks(server), providers::remedy(server, &target.one));
                    let why = format!("{why}: {todo}");
                    eprintln!("{address}: refused: {}", plain(&why));
                    results.push(Handled::new(address, Outcome::Refused, why));
                } else {
                    eprintln!("{}", plain(&target.shown()));
                    targets.push(*target);
                }
            }
        }
    }
    if !targets.is_empty() {
        confirm(wish, targets.len())?;
        let by = ask::user(server).await?;
        let mut asked = Vec::new();
        for target in targets {
            match ask::ask(server, &by, wish.abandon, &target).await {
                Ok(None) => asked.push(target),
                Ok(Some(result)) => results.push(result),
                // The others are answered all the same.
                Err(fault) => {
                    let text = format!("nobody knows whether it was asked for: {}", chain(&fault));
                    results.push(Handled::new(target.address, Outcome::Failed, text));
                }
            }
        }
        results.extend(follow::follow(server, &by, asked, wish.timeout.into()).await);
    }
    results.sort_by_key(|result| result.address);
    let answer = Answer::new(results);
    output::write(global.output, &answer, || answer.table())?;
    Ok(if answer.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// All of them, or what is wrong with each that is none.
fn read(texts: &[String]) -> Result<BTreeSet<Address>, Fault> {
    let (mut addresses, mut wrong) = (BTreeSet::new(), Vec::new());
    for text in texts {
        // The name of the object is as good.
        match text.parse::<Address>().or_else(|error| store::address_of(text).ok_or(error)) {
            Ok(address) => {
                addresses.insert(address);
            }
            Err(error) => wrong.push(format!("{} is no address: {error}", k8s_api::Quoted(text))),
        }
    }
    if wrong.is_empty() { Ok(addresses) } else { Err(Fault::Usage(wrong.join("; "))) }
}

fn confirm(wish: &Wish, count: usize) -> Result<(), Fault> {
    if wish.abandon {
        eprintln!(
            "--abandon: the provider is not asked. Where it still has the address bound, two pods may come to have it."
        );
    }
    if wish.yes {
        return Ok(());
    }
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(Fault::Usage("nobody can be asked whether this is meant: add --yes".to_owned()));
    }
    eprint!("release {count} {}? [y/N] ", if count == 1 { "address" } else { "addresses" });
    std::io::stderr().flush().map_err(Fault::Output)?;
    let mut line = String::new();
    stdin.read_line(&mut line).map_err(Fault::Input)?;
    if matches!(line.trim(), "y" | "Y" | "yes") { Ok(()) } else { Err(Fault::Usage("nothing was done".to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_that_is_none_is_named() {
        let all = |texts: &[&str]| read(&texts.iter().map(ToString::to_string).collect::<Vec<_>>());
        let two = all(&["10.0.0.1", "fd00-0000-0000-0000-0000-0000-0000-0001", "fd00::1"]).expect("addresses");
        assert_eq!(two.len(), 2, "each once");
        let said = all(&["10.0.0.1", "10.0.0.0/24", "x\x1b"]).expect_err("none").to_string();
        assert!(
            said.contains("\"10.0.0.0/24\" is no address: it is a subnet") && said.contains("\"x\\u{1b}\""),
            "{said}"
        );
    }
}
