//! `adopt --dry-run`: what would be taken over of an earlier system. The controller does it; nothing is written here.

use crate::api::Server;
use crate::args::{Output, System};
use crate::fault::Fault;
use crate::output;
use crate::table::table;
use crate::{conf, plain};
use std::process::ExitCode;
use store::adopt::{PoolPreview, Preview, preview};

/// Runs the command. Ends with 1 if something cannot be taken over.
pub(crate) async fn run(server: &Server, output: Output, system: &System) -> Result<ExitCode, Fault> {
    let conf = conf::read(server, system).await?;
    if let Err(why) = &conf {
        eprintln!(
            "whether a provider binds addresses here is not known, so it is taken that none does: {}",
            plain::plain(&why.0)
        );
    }
    let provider = conf.ok().and_then(|conf| conf.provider).map(|server| server.id);
    let found = preview(server.client().clone(), provider, server.deadline()).await;
    let found = found.map_err(|error| server.failed("read what an earlier system recorded", error))?;
    output::write(output, &found, || text(&found))?;
    let whole = found.pools.iter().all(|pool| pool.faults.is_empty());
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn text(found: &Preview) -> String {
    if found.pools.is_empty() {
        return "No pool has records of an earlier system: there is nothing to take over.\n".to_owned();
    }
    let rows: Vec<[String; 5]> = found.pools.iter().map(row).collect();
    let mut text = table(["POOL", "RECORDS", "THERE", "TO IMPORT", "FAULTS"], &rows);
    for pool in &found.pools {
        let faults = pool.faults.iter().map(|why| format!("{}: {}\n", pool.pool, plain::plain(why)));
        text.extend(faults);
    }
    let imports = |pool: &PoolPreview| {
        let rows = pool.imports.iter().map(|one| {
            let known = |text: &str| if text.is_empty() { "?".to_owned() } else { text.to_owned() };
            let provider = if one.provider.is_empty() { "-" } else { &one.provider };
            let [node, interface] = [&one.node, &one.interface].map(|text| known(text));
            [one.address.clone(), pool.pool.clone(), one.pod.clone(), node, interface, provider.to_owned()]
        });
        rows.collect::<Vec<_>>()
    };
    let rows: Vec<[String; 6]> = found.pools.iter().flat_map(imports).collect();
    if !rows.is_empty() {
        text.push('\n');
        text += &table(["ADDRESS", "POOL", "POD", "NODE", "INTERFACE", "PROVIDER"], &rows);
    }
    text
}

fn row(pool: &PoolPreview) -> [String; 5] {
    let counts = [pool.records, pool.there, pool.imports.len()].map(|count| count.to_string());
    let [records, there, imports] = counts;
    [pool.pool.clone(), records, there, imports, pool.faults.len().to_string()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::adopt::Import;

    #[test]
    fn what_is_wrong_stands_before_what_would_be_done() {
        let import = Import { address: "10.0.0.1".to_owned(), pod: "a/b".to_owned(), ..Import::default() };
        let pool = PoolPreview {
            pool: "p".to_owned(),
            records: 3,
            there: 1,
            imports: vec![import],
            faults: vec!["10.0.0.9 of a/c\u{7}: no".to_owned()],
        };
        let text = text(&Preview { pools: vec![pool] });
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["p", "3", "1", "1", "1"]);
        assert!(lines[2].starts_with(&["p:", "10.0.0.9"]) && !text.contains('\u{7}'), "{text:?}");
        assert_eq!(lines[5], ["10.0.0.1", "p", "a/b", "?", "?", "-"]);
    }
}
