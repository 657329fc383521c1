//! `pools`: how many addresses are free, and who has which.
//!
//! Counted from the allocations as they are now; a pool's status follows within ten seconds and counts published
//! addresses alone, so both are shown where they differ.

mod answer;
mod fits;
mod pool;

use crate::api::Server;
use crate::args::Output;
use crate::fault::{Fault, Seen};
use crate::held::{self, Held};
use crate::output;
use answer::Answer;
pub(crate) use fits::{Subject, unfit};
use k8s_api::crd::ip_pool::SpiderIPPool;
use k8s_api::crd::reserved_ip::SpiderReservedIP;
use k8s_api::syntax;
use k8s_openapi::jiff::Timestamp;
use kube::Resource;
use kube::api::DynamicObject;
pub(crate) use pool::Pool;
use std::collections::BTreeMap;
use std::process::ExitCode;
use store::{Address, Range, Ranges};

/// Runs the command.
pub(crate) async fn run(server: &Server, output: Output, name: Option<&str>) -> Result<ExitCode, Fault> {
    let (pools, wanted) = match name {
        Some(name) => {
            if !syntax::is_subdomain(name) {
                return Err(Fault::Usage(format!("{} is not the name of a pool", k8s_api::Quoted(name))));
            }
            (one(server, name).await?, format!("spec.pool={name}"))
        }
        None => (server.needed("list SpiderIPPools", list(server).await?)?, String::new()),
    };
    let reserved = reserved(server).await?;
    let (taken, addresses) = if name.is_some() {
        let all = server.needed("list SpiderIPAllocations", held::list(server, &wanted).await?)?;
        (tally(&all), Some(all))
    } else {
        (server.needed("list SpiderIPAllocations", taken(server).await?)?, None)
    };
    let answer = Answer::new(&pools, &reserved, &taken, addresses.as_deref(), Timestamp::now());
    output::write(output, &answer, || answer.table())?;
    Ok(if name.is_some() && pools.is_empty() { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

async fn one(server: &Server, name: &str) -> Result<Vec<Pool>, Fault> {
    let found = server.get::<DynamicObject>(&SpiderIPPool::url_path(&(), None), name).await?;
    let found = server.needed("get a SpiderIPPool", found)?;
    if found.is_none() {
        eprintln!("there is no SpiderIPPool {name}; addresses that pods have of it are shown all the same");
    }
    Ok(found.iter().map(Pool::read).collect())
}

/// Every pool, in the order of their names.
pub(crate) async fn list(server: &Server) -> Result<Seen<Vec<Pool>>, Fault> {
    let found = server.list::<DynamicObject>(&SpiderIPPool::url_path(&(), None), "", "").await?;
    Ok(found.map(|found| found.iter().map(Pool::read).collect()))
}

/// Addresses that no pool gives away.
pub(crate) async fn reserved(server: &Server) -> Result<Seen<Ranges>, Fault> {
    let mut all = Vec::new();
    let take = |object: DynamicObject| {
        let texts = object.data.pointer("/spec/ips").and_then(|ips| ips.as_array()).cloned().unwrap_or_default();
        all.extend(texts.iter().filter_map(|text| text.as_str()?.parse::<Range>().ok()));
    };
    let seen = server.each(&SpiderReservedIP::url_path(&(), None), "", "", take).await?;
    Ok(seen.map(|()| all.into_iter().collect()))
}

/// Addresses in use, by pool.
pub(crate) type Taken = BTreeMap<String, Vec<Address>>;

async fn taken(server: &Server) -> Result<Seen<Taken>, Fault> {
    let mut taken = Taken::new();
    let take = |object: DynamicObject| {
        let pool = object.data.pointer("/spec/pool").and_then(|pool| pool.as_str()).unwrap_or_default().to_owned();
        let address = object.metadata.name.as_deref().and_then(store::address_of);
        taken.entry(pool).or_default().extend(address);
    };
    Ok(server.each(&held::path(), "", "", take).await?.map(|()| taken))
}

fn tally(all: &[Held]) -> Taken {
    let mut taken = Taken::new();
    for held in all {
        if let (Ok(one), Some(address)) = (&held.what, store::address_of(&held.name)) {
            taken.entry(one.pool.clone()).or_default().push(address);
        }
    }
    taken
}
