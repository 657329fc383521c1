//! The pools of a cluster, made ready for choices.

use crate::{Candidate, Family, Ranges};
use std::collections::BTreeMap;

/// One pool. What can be told once for all pods has been.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each by itself, as the object says it")]
pub struct Pool {
    /// What a pod would get; its addresses are those of the object, reserved ones too.
    pub candidate: Candidate,
    /// Used by pods that name no pool.
    pub default: bool,
    /// Gives no address any more.
    pub disabled: bool,
    /// Being deleted.
    pub terminating: bool,
    /// It has records of an earlier system, so that nobody knows what is free.
    pub unadopted: bool,
}

/// Every pool by its name. What is reserved is taken off when a pool or the reservation changes, not for each pod: a choice
/// costs the same whatever the sizes of pools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalog {
    pools: BTreeMap<String, Entry>,
    reserved: Ranges,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    pool: Pool,
    /// All addresses, for when the reservation changes.
    whole: Ranges,
}

impl Catalog {
    /// Puts a pool in place of what was there under its name.
    pub fn put(&mut self, mut pool: Pool) {
        let free = pool.candidate.addresses.difference(&self.reserved);
        let whole = std::mem::replace(&mut pool.candidate.addresses, free);
        self.pools.insert(pool.candidate.pool.clone(), Entry { pool, whole });
    }

    /// Forgets a pool.
    pub fn remove(&mut self, name: &str) {
        self.pools.remove(name);
    }

    /// Forgets all pools but these.
    pub fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.pools.retain(|name, _| keep(name));
    }

    /// Addresses that no pool gives away.
    pub fn reserve(&mut self, reserved: Ranges) {
        if self.reserved == reserved {
            return;
        }
        for entry in self.pools.values_mut() {
            entry.pool.candidate.addresses = entry.whole.difference(&reserved);
        }
        self.reserved = reserved;
    }

    /// A pool, without what is reserved.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Pool> {
        self.pools.get(name).map(|entry| &entry.pool)
    }

    /// The pools of a family, in the order of their names.
    pub fn of(&self, family: Family) -> impl Iterator<Item = &Pool> {
        self.pools.values().map(|entry| &entry.pool).filter(move |pool| pool.candidate.subnet.family() == family)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Range;

    fn ranges(text: &str) -> Ranges {
        text.split_whitespace().map(|range| range.parse::<Range>().expect("a range")).collect()
    }

    #[test]
    fn what_is_reserved_comes_and_goes() {
        let candidate = Candidate {
            pool: "a".to_owned(),
            subnet: "10.0.0.0/8".parse().expect("a subnet"),
            addresses: ranges("10.0.0.1-10.255.255.254"),
            gateway: None,
            routes: Vec::new(),
        };
        let pool = Pool { candidate, default: false, disabled: false, terminating: false, unadopted: false };
        let mut catalog = Catalog::default();
        catalog.reserve(ranges("10.0.0.5 11.0.0.0-11.1.0.0"));
        catalog.put(pool.clone());
        let free = |catalog: &Catalog| catalog.get("a").expect("there").candidate.addresses.clone();
        assert_eq!(free(&catalog), ranges("10.0.0.1-10.0.0.4 10.0.0.6-10.255.255.254"));
        catalog.reserve(ranges("10.0.0.1"));
        assert_eq!(free(&catalog), ranges("10.0.0.2-10.255.255.254"));
        catalog.reserve(Ranges::default());
        assert_eq!(catalog.get("a"), Some(&pool));
        catalog.remove("a");
        assert_eq!(catalog, Catalog::default());
    }
}
