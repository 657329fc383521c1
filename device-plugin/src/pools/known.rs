//! What is known of pools and reserved addresses.

use super::prepared::{Asks, prepare};
use ipam_core::{Candidate, Catalog, Range, Ranges};
use k8s_api::crd::ip_pool::SpiderIPPool;
use k8s_api::crd::reserved_ip::SpiderReservedIP;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The latest of everything.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(super) catalog: Catalog,
    pub(super) asks: HashMap<String, Asks>,
    reserved: BTreeMap<String, Ranges>,
    /// Lists that have been seen whole.
    whole: BTreeSet<&'static str>,
}

/// A kind that is followed.
pub(super) trait Followed: Sized {
    /// As the log calls it.
    const WHAT: &'static str;
    fn put(known: &mut Known, name: String, object: Self);
    fn remove(known: &mut Known, name: &str);
    fn names(known: &Known) -> Vec<String>;
}

impl Known {
    /// Whether both lists have been seen: before that, what is not here says nothing.
    pub(crate) fn is_whole(&self) -> bool {
        [Pools::WHAT, Reserved::WHAT].iter().all(|what| self.whole.contains(what))
    }

    /// A pool as it is now, whether or not a pod could choose it.
    pub(crate) fn pool(&self, name: &str) -> Option<Candidate> {
        Some(self.catalog.get(name)?.candidate.clone())
    }

    /// A list has ended: what it did not show is gone.
    pub(super) fn keep<K: Followed>(&mut self, listed: &BTreeSet<String>) {
        for name in K::names(self).into_iter().filter(|name| !listed.contains(name)) {
            K::remove(self, &name);
        }
        self.whole.insert(K::WHAT);
    }

    fn reserve(&mut self) {
        self.catalog.reserve(self.reserved.values().flat_map(Ranges::iter).collect());
    }
}

/// A pool, and the namespace that attachments without one are in.
pub(super) struct Pools(pub(super) SpiderIPPool, pub(super) String);
pub(super) struct Reserved(pub(super) SpiderReservedIP);

impl Followed for Pools {
    const WHAT: &'static str = "SpiderIPPools";

    fn put(known: &mut Known, name: String, Self(pool, own_namespace): Self) {
        match prepare(&pool, &own_namespace) {
            Some((pool, asks)) => {
                known.catalog.put(pool);
                known.asks.insert(name, asks);
            }
            None => Self::remove(known, &name),
        }
    }

    fn remove(known: &mut Known, name: &str) {
        known.catalog.remove(name);
        known.asks.remove(name);
    }

    fn names(known: &Known) -> Vec<String> {
        known.asks.keys().cloned().collect()
    }
}

impl Followed for Reserved {
    const WHAT: &'static str = "SpiderReservedIPs";

    fn put(known: &mut Known, name: String, Self(object): Self) {
        let ranges = object.spec.ips.iter().filter_map(|text| text.parse::<Range>().ok()).collect();
        known.reserved.insert(name, ranges);
        known.reserve();
    }

    fn remove(known: &mut Known, name: &str) {
        known.reserved.remove(name);
        known.reserve();
    }

    fn names(known: &Known) -> Vec<String> {
        known.reserved.keys().cloned().collect()
    }
}
