//! Who has how many addresses of which pool, kept up to date change by change.

use super::facts::{Allocation, Endpoint};
#[cfg(test)]
use std::collections::BTreeMap;
use std::collections::{BTreeSet, HashMap};

/// Namespace and name of a pod.
type Key = (String, String);

/// Everything that is in use.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    allocations: HashMap<String, Kept>,
    of_pod: HashMap<Key, BTreeSet<String>>,
    endpoints: HashMap<Key, Endpoint>,
    tallies: HashMap<String, Tally>,
}

#[derive(Debug)]
struct Kept {
    allocation: Allocation,
    published: bool,
}

/// What is in use of one pool.
#[derive(Debug, Default)]
struct Tally {
    names: BTreeSet<String>,
    published: usize,
}

impl Ledger {
    /// A new or changed allocation.
    pub(super) fn put(&mut self, allocation: Allocation) {
        let name = allocation.name.clone();
        self.remove(&name);
        let key = (allocation.pod.namespace.clone(), allocation.pod.name.clone());
        let published = allocation.is_shown(self.endpoints.get(&key));
        let tally = self.tallies.entry(allocation.pool.clone()).or_default();
        tally.names.insert(name.clone());
        tally.published += usize::from(published);
        self.of_pod.entry(key).or_default().insert(name.clone());
        self.allocations.insert(name, Kept { allocation, published });
    }

    /// An allocation is gone.
    pub(super) fn remove(&mut self, name: &str) {
        let Some(Kept { allocation, published }) = self.allocations.remove(name) else { return };
        if let Some(tally) = self.tallies.get_mut(&allocation.pool) {
            tally.names.remove(name);
            tally.published -= usize::from(published);
            if tally.names.is_empty() {
                self.tallies.remove(&allocation.pool);
            }
        }
        let key = (allocation.pod.namespace, allocation.pod.name);
        if let Some(names) = self.of_pod.get_mut(&key) {
            names.remove(name);
            if names.is_empty() {
                self.of_pod.remove(&key);
            }
        }
    }

    /// What the endpoint of a pod shows now; `None` when it is gone.
    pub(super) fn show(&mut self, key: Key, endpoint: Option<Endpoint>) {
        for name in self.of_pod.get(&key).into_iter().flatten() {
            let Some(kept) = self.allocations.get_mut(name) else { continue };
            let published = kept.allocation.is_shown(endpoint.as_ref());
            if let Some(tally) = self.tallies.get_mut(&kept.allocation.pool) {
                tally.published = tally.published - usize::from(kept.published) + usize::from(published);
            }
            kept.published = published;
        }
        match endpoint {
            Some(endpoint) => drop(self.endpoints.insert(key, endpoint)),
            None => drop(self.endpoints.remove(&key)),
        }
    }

    /// A list has ended: what it did not show is gone.
    pub(super) fn keep(&mut self, listed: &BTreeSet<String>) {
        let gone: Vec<_> = self.allocations.keys().filter(|name| !listed.contains(*name)).cloned().collect();
        for name in gone {
            self.remove(&name);
        }
    }

    /// The same of endpoints.
    pub(super) fn keep_shown(&mut self, listed: &BTreeSet<Key>) {
        let gone: Vec<_> = self.endpoints.keys().filter(|key| !listed.contains(*key)).cloned().collect();
        for key in gone {
            self.show(key, None);
        }
    }

    /// Addresses of a pool that endpoints show.
    pub(super) fn published(&self, pool: &str) -> usize {
        self.tallies.get(pool).map_or(0, |tally| tally.published)
    }

    /// How many addresses of a pool somebody has, shown or not.
    pub(super) fn count(&self, pool: &str) -> usize {
        self.tallies.get(pool).map_or(0, |tally| tally.names.len())
    }

    /// Allocations of a pool, in the order of their names.
    pub(super) fn of_pool(&self, pool: &str) -> impl Iterator<Item = &Allocation> {
        let names = self.tallies.get(pool).into_iter().flat_map(|tally| &tally.names);
        names.filter_map(|name| self.allocations.get(name)).map(|kept| &kept.allocation)
    }

    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = &Allocation> {
        self.allocations.values().map(|kept| &kept.allocation)
    }

    /// Whether the endpoint of its pod shows it.
    pub(super) fn is_shown(&self, name: &str) -> bool {
        self.allocations.get(name).is_some_and(|kept| kept.published)
    }

    /// Whether the endpoint of its name is that of another pod, on another node.
    pub(super) fn is_astray(&self, one: &Allocation) -> bool {
        let endpoint = self.endpoints.get(&(one.pod.namespace.clone(), one.pod.name.clone()));
        endpoint.is_some_and(|endpoint| one.held && endpoint.pod_uid != one.pod.uid && endpoint.node != one.node)
    }

    /// Endpoints under whose name nobody holds an address.
    pub(super) fn lonely(&self) -> impl Iterator<Item = (&Key, &Endpoint)> {
        self.endpoints.iter().filter(|(key, _)| !self.of_pod.contains_key(*key))
    }

    /// How many pods have an address of each pool; for tests that the books balance.
    #[cfg(test)]
    fn pools(&self) -> BTreeMap<&str, (usize, usize)> {
        self.tallies.iter().map(|(pool, tally)| (pool.as_str(), (tally.names.len(), tally.published))).collect()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use kube::api::DynamicObject;
    use serde_json::{Value, json};

    fn object(value: Value) -> DynamicObject {
        serde_json::from_value(value).expect("an object")
    }

    /// An allocation of pod `ns/POD`, whose UID is `u-POD`.
    pub(in super::super) fn allocation(address: &str, pool: &str, pod: &str, more: &Value) -> Allocation {
        let mut spec = json!({
            "pool": pool, "address": address, "interface": "eth0", "state": "Held",
            "pod": {"namespace": "ns", "name": pod, "uid": format!("u-{pod}")},
        });
        spec.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
        Allocation::of(&object(json!({"metadata": {"name": address}, "spec": spec})))
    }

    fn endpoint(pod: &str, addresses: &[&str], bind_id: &Value) -> Endpoint {
        let ips: Vec<_> = addresses
            .iter()
            .map(|address| json!({"interface": "eth0", "ipv4": format!("{address}/24"), "bindId": bind_id}))
            .collect();
        let status = json!({"current": {"uid": format!("u-{pod}"), "ips": ips}});
        Endpoint::of(&object(json!({"metadata": {"name": pod}, "status": status})))
    }

    fn key(pod: &str) -> Key {
        ("ns".to_owned(), pod.to_owned())
    }

    #[test]
    fn only_what_an_endpoint_shows_is_published() {
        let mut ledger = Ledger::default();
        let none = json!({});
        ledger.put(allocation("10.0.0.1", "p", "a", &none));
        assert_eq!(ledger.pools(), BTreeMap::from([("p", (1, 0))]));
        ledger.show(key("a"), Some(endpoint("a", &["10.0.0.1"], &Value::Null)));
        assert_eq!((ledger.published("p"), ledger.count("p")), (1, 1));
        ledger.put(allocation("10.0.0.1", "p", "a", &json!({"provider": {"bindId": "b"}})));
        assert_eq!(ledger.published("p"), 0, "an entry of another binding is none");
        ledger.show(key("a"), Some(endpoint("a", &["10.0.0.1"], &json!("b"))));
        assert_eq!(ledger.published("p"), 1);
        ledger.show(key("a"), Some(endpoint("b", &["10.0.0.1"], &json!("b"))));
        assert_eq!(ledger.published("p"), 0, "nor of another pod of the name");
        ledger.show(key("a"), Some(endpoint("a", &["10.0.0.1"], &json!("b"))));
        ledger.put(allocation("10.0.0.1", "p", "a", &json!({"provider": {"bindId": "b"}, "state": "Releasing"})));
        assert_eq!(ledger.published("p"), 0, "nor of what is being released");
        ledger.remove("10.0.0.1");
        assert_eq!(ledger.pools(), BTreeMap::new());
    }

    #[test]
    fn the_endpoint_may_be_there_first_and_lists_end_what_they_do_not_show() {
        let mut ledger = Ledger::default();
        ledger.show(key("a"), Some(endpoint("a", &["10.0.0.1", "10.0.0.2"], &Value::Null)));
        for address in ["10.0.0.1", "10.0.0.2", "10.0.0.3"] {
            ledger.put(allocation(address, "p", "a", &json!({})));
        }
        assert_eq!(ledger.pools(), BTreeMap::from([("p", (3, 2))]));
        ledger.keep(&["10.0.0.2".to_owned(), "10.0.0.3".to_owned()].into());
        assert_eq!(ledger.pools(), BTreeMap::from([("p", (2, 1))]));
        ledger.keep_shown(&BTreeSet::new());
        assert_eq!(ledger.pools(), BTreeMap::from([("p", (2, 0))]));
        assert_eq!(ledger.of_pool("p").map(|one| &*one.address).collect::<Vec<_>>(), ["10.0.0.2", "10.0.0.3"]);
    }
}
