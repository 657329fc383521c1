//! Endpoints that have to be written before their pools are adopted.

use super::gather::{Existing, Gathered, OldEndpoint};
use serde_json::Value;

/// An endpoint, and what it is to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// As it was read.
    pub endpoint: OldEndpoint,
    /// Its entries, each with the binding of its allocation; nothing if they have these already.
    pub(super) ips: Option<Vec<Value>>,
}

impl Gathered {
    /// Those that an earlier system holds, or that do not say yet which binding they show. Bindings are those of allocations
    /// that were there when all of this was read: one that has changed since has changed its endpoint, too.
    #[must_use]
    pub fn due(&self) -> Vec<Due> {
        let due = self.endpoints.values().map(|endpoint| Due { endpoint: endpoint.clone(), ips: self.bound(endpoint) });
        due.filter(|due| due.endpoint.is_held() || due.ips.is_some()).collect()
    }

    fn bound(&self, endpoint: &OldEndpoint) -> Option<Vec<Value>> {
        let mut ips = endpoint.ips.clone();
        let mut changed = false;
        for (entry, value) in endpoint.entries.iter().zip(&mut ips) {
            let found = entry.addresses.iter().find_map(|address| match self.existing.get(address)? {
                Existing::Held { pod, bind_id: Some(id), .. } if pod.uid == endpoint.pod_uid => Some(id),
                Existing::Held { .. } | Existing::Unreadable => None,
            });
            if let (Some(id), Some(fields)) = (found.filter(|id| **id != entry.bind_id), value.as_object_mut()) {
                fields.insert("bindId".to_owned(), id.clone().into());
                changed = true;
            }
        }
        changed.then_some(ips)
    }
}

#[cfg(test)]
mod tests {
    use super::super::gather::Entry;
    use super::*;
    use ipam_core::Pod;
    use serde_json::json;

    fn gathered(uid: &str, bind_id: Option<&str>, shown: &str) -> Gathered {
        let address = "10.0.0.1".parse().expect("an address");
        let ips = vec![
            json!({"interface": "net1", "ipv4": "10.0.0.1/24", "vlan": 7, "bindId": shown, "later": true}),
            json!({"interface": "net2", "ipv4": "10.1.0.1/24"}),
        ];
        let entry = |address: &str, bind_id: &str| Entry {
            addresses: vec![address.parse().expect("an address")],
            bind_id: bind_id.to_owned(),
            ..Entry::default()
        };
        let endpoint = OldEndpoint {
            pod_uid: "u".to_owned(),
            entries: vec![entry("10.0.0.1", shown), entry("10.1.0.1", "")],
            ips,
            ..OldEndpoint::default()
        };
        let pod = Pod { uid: uid.to_owned(), ..Pod::default() };
        let held = Existing::Held { pool: "p".to_owned(), pod, bind_id: bind_id.map(str::to_owned) };
        let endpoints = [(("ns".to_owned(), "a".to_owned()), endpoint)].into();
        Gathered { endpoints, existing: [(address, held)].into(), ..Gathered::default() }
    }

    #[test]
    fn an_entry_shows_the_binding_of_its_allocation_and_keeps_all_else() {
        let due = gathered("u", Some("b"), "").due();
        let [Due { ips: Some(ips), .. }] = due.as_slice() else { panic!("{due:?}") };
        assert_eq!(
            ips[0],
            json!({"interface": "net1", "ipv4": "10.0.0.1/24", "vlan": 7, "bindId": "b", "later": true})
        );
        assert_eq!(ips[1], json!({"interface": "net2", "ipv4": "10.1.0.1/24"}));
        assert_eq!(gathered("u", Some("b"), "b").due(), [], "once");
        assert_eq!(gathered("other", Some("b"), "").due(), [], "of another pod of the name");
        assert_eq!(gathered("u", None, "").due(), [], "nothing is bound");
        let mut held = gathered("u", None, "");
        for endpoint in held.endpoints.values_mut() {
            endpoint.finalizers = vec![k8s_api::names::POOL_FINALIZER.to_owned()];
        }
        assert!(matches!(held.due().as_slice(), [Due { ips: None, .. }]), "the finalizer goes");
    }
}
