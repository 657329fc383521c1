//! The pools of the cluster, as this node's pods may use them.

mod prepared;
mod source;
mod watch;

pub(crate) use prepared::Who;
pub(crate) use source::{Named, sources};

use ipam_core::{Candidate, Catalog, NoPool, Request, Wanted, choose};
use kube::Client;
use prepared::Asks;
use runtime::Hold;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use tokio::sync::watch::{Receiver, Sender};

/// All that is known of pools.
#[derive(Debug, Default)]
pub(crate) struct Known {
    catalog: Catalog,
    asks: BTreeMap<String, Asks>,
}

impl Known {
    fn remove(&mut self, name: &str) {
        self.catalog.remove(name);
        self.asks.remove(name);
    }

    fn retain(&mut self, listed: &BTreeSet<String>) {
        self.catalog.retain(|name| listed.contains(name));
        self.asks.retain(|name, _| listed.contains(name));
    }

    pub(crate) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    pub(crate) fn candidate(&self, pool: &str) -> Option<Candidate> {
        Some(self.catalog.get(pool)?.candidate.clone())
    }

    /// The choice for one interface of one pod.
    pub(crate) fn choose(&self, request: &Request<'_>, who: &Who<'_>, own_namespace: &str) -> Result<Vec<Wanted>, NoPool> {
        choose(request, &self.catalog, |pool| {
            self.asks.get(&pool.candidate.pool).map(|asks| asks.rules(who, own_namespace)).unwrap_or_default()
        })
    }
}

/// What is known, and the tasks that keep it.
pub(crate) fn watch(
    client: &Client,
    seen: [Hold; 2],
) -> (Receiver<Known>, [std::pin::Pin<Box<dyn Future<Output = Result<(), Infallible>> + Send>>; 2]) {
    let known = Sender::new(Known::default());
    let latest = known.subscribe();
    let [pools, reserved] = seen;
    let tasks = [
        Box::pin(watch::pools(client.clone(), known.clone(), pools)) as std::pin::Pin<Box<dyn Future<Output = _> + Send>>,
        Box::pin(watch::reserved(client.clone(), known, reserved)),
    ];
    (latest, tasks)
}
