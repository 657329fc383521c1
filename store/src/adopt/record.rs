//! The records themselves: a map from addresses to pods, as text.

use crate::path;
use ipam_core::{Address, Pod};
use k8s_api::Quoted;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// An address, and the pod that had it when it was recorded. Of a virtual machine the name is that of its instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The address.
    pub address: Address,
    /// The pod.
    pub pod: Pod,
}

/// What is written there is no record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The whole of it.
    #[error("status.allocatedIPs is no JSON map of addresses: {0}")]
    Text(String),
    /// One of them.
    #[error("the record of {} {why}", Quoted(.address))]
    Record {
        /// As it is written.
        address: String,
        /// What is wrong with it.
        why: &'static str,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    pod: String,
    pod_uid: String,
}

/// All that can be read, and what cannot.
pub(super) fn records(text: &str) -> (Vec<Record>, Vec<Unreadable>) {
    let map = match serde_json::from_str::<Option<BTreeMap<String, Value>>>(text) {
        Ok(map) => map.unwrap_or_default(),
        Err(error) => return (Vec::new(), vec![Unreadable::Text(error.to_string())]),
    };
    let (mut read, mut odd) = (Vec::with_capacity(map.len()), Vec::new());
    for (address, value) in map {
        match record(&address, value) {
            Ok(record) => read.push(record),
            Err(why) => odd.push(Unreadable::Record { address, why }),
        }
    }
    (read, odd)
}

fn record(address: &str, value: Value) -> Result<Record, &'static str> {
    let address = address.parse().map_err(|_| "is of no address")?;
    let Written { pod, pod_uid } = serde_json::from_value(value).map_err(|_| "has not both pod and podUid")?;
    let (namespace, name) = pod.split_once('/').ok_or("has a pod that is not namespace/name")?;
    if path::name(namespace).is_err() || path::name(name).is_err() {
        return Err("has a pod that is not namespace/name");
    }
    if pod_uid.is_empty() {
        return Err("has an empty podUid");
    }
    Ok(Record { address, pod: Pod { namespace: namespace.to_owned(), name: name.to_owned(), uid: pod_uid } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_read_is() {
        let (read, odd) = records(
            r#"{"10.0.0.1": {"pod": "ns/a", "podUid": "u"}, "fd00:0::1": {"pod": "ns/b.c", "podUid": "v", "x": 1}}"#,
        );
        assert_eq!(odd, []);
        let [a, b] = read.as_slice() else { panic!("{read:?}") };
        assert_eq!((a.address.to_string(), a.pod.name.as_str(), a.pod.uid.as_str()), ("10.0.0.1".to_owned(), "a", "u"));
        assert_eq!((b.address.to_string(), b.pod.namespace.as_str()), ("fd00::1".to_owned(), "ns"));
        for nothing in ["null", "{}", " { } "] {
            assert_eq!(records(nothing), (Vec::new(), Vec::new()));
        }
    }

    #[test]
    fn every_odd_one_is_named() {
        for text in ["", "x", "[]", "{", r#"{"10.0.0.1": }"#, "7"] {
            assert!(matches!(records(text).1.as_slice(), [Unreadable::Text(_)]), "{text}");
        }
        let (read, odd) = records(
            r#"{"10.0.0.1": {"pod": "a", "podUid": "u"}, "10.0.0.2": {"pod": "a/b/c", "podUid": "u"}, "10.0.0.3": {"pod": "../b", "podUid": "u"},
                "10.0.0.4": {"pod": "a/b"}, "10.0.0.5": null, "10.0.0.6": {"pod": "a/b", "podUid": ""}, "10.0.0.256": {"pod": "a/b", "podUid": "u"},
                "10.0.0.7": {"pod": "a/b", "podUid": "u"}}"#,
        );
        assert_eq!((read.len(), odd.len()), (1, 7));
        assert!(odd.iter().any(|one| one.to_string() == r#"the record of "10.0.0.256" is of no address"#), "{odd:?}");
    }
}
