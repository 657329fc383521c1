//! Whether a provider that may have an address bound can be asked to let go of it.

use crate::held::{Held, age};
use k8s_api::conf::Conf;
use k8s_openapi::jiff::Timestamp;
use std::collections::BTreeSet;
use store::{Allocation, State};

/// Identities of those that agents and controller ask; nothing where the configuration is not seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Providers(Option<BTreeSet<String>>);

impl Providers {
    pub(crate) fn of(conf: Option<&Conf>) -> Self {
        let named = |conf: &Conf| {
            let former = conf.former_servers.iter().map(|former| former.id.clone());
            conf.provider.iter().map(|server| server.id.clone()).chain(former).collect()
        };
        Self(conf.map(named))
    }

    /// Whose word is needed to free it, if nobody may ask there.
    pub(crate) fn unserved<'a>(&self, one: &'a Allocation) -> Option<&'a str> {
        let server = &one.provider.as_ref()?.server;
        self.0.as_ref().is_some_and(|named| !named.contains(server)).then_some(server)
    }
}

/// What is wrong with an address that is bound at such a one.
pub(crate) fn nobody_asks(server: &str) -> String {
    format!(
        "it may be bound at provider {server}, which is neither iaasNetworkProvider.serverUrl nor one of its formerServers"
    )
}

/// What to do about it.
pub(crate) fn remedy(server: &str, one: &Allocation) -> String {
    format!(
        "name {server} in iaasNetworkProvider.formerServers; or, if it is known to be free there: spiderpoolctl release \
         --abandon {}",
        one.address
    )
}

/// Who releases an address, and when it was last seen to; nothing of one that is held.
pub(crate) fn releasing(held: &Held, one: &Allocation, now: Timestamp) -> Option<String> {
    let State::Releasing(releasing) = &one.state else { return None };
    let by: String = releasing.releaser.chars().take(8).collect();
    let last = held.since_written(now).map(|seconds| format!(", last tried {} ago", age(seconds))).unwrap_or_default();
    Some(format!("process {by}{last}"))
}

/// For how many seconds at most calls that were sent for it may still take effect; nothing if for none.
pub(crate) fn settles(held: &Held, one: &Allocation, now: Timestamp) -> Option<i64> {
    let whole = i64::try_from(one.provider.as_ref()?.settle.as_secs()).unwrap_or(i64::MAX);
    // Each process counts by itself, from when it first sees the version.
    let left = whole.saturating_sub(held.since_written(now).unwrap_or_default().max(0));
    (left > 0).then_some(left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn held(more: &Value) -> Held {
        let mut spec = json!({
            "pool": "a", "address": "10.0.0.1", "node": {"name": "n"}, "state": "Held", "interface": "net1",
            "pod": {"namespace": "default", "name": "web-0", "uid": "u"},
            "provider": {"server": "https://p/x", "subnet": "10.0.0.0/24", "bindId": "b", "settleMilliseconds": 52000},
        });
        spec.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
        let written = |time: &str| json!({"manager": "m", "operation": "Update", "time": time});
        let metadata = json!({"name": "10.0.0.1", "uid": "x", "resourceVersion": "1", "managedFields": [
            written("1970-01-01T00:00:20Z"), written("1970-01-01T00:00:50Z"), written("1970-01-01T00:00:10Z")]});
        Held::read(&serde_json::from_value(json!({"metadata": metadata, "spec": spec})).expect("an object"))
    }

    fn after(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).expect("a time")
    }

    #[test]
    fn a_provider_is_known_by_its_identity() {
        let one = held(&json!({})).what.expect("readable");
        let unserved = |text: &str| {
            let conf = Conf::parse(text).expect("legal");
            Providers::of(Some(&conf)).unserved(&one).is_some()
        };
        for (text, expected) in [
            ("{}", true),
            ("iaasNetworkProvider: {serverUrl: 'https://p'}", true),
            ("iaasNetworkProvider: {serverUrl: 'HTTPS://ann:secret@P:443/x/'}", false),
            ("iaasNetworkProvider: {serverUrl: 'http://q', formerServers: [{url: 'https://p/x'}]}", false),
            ("iaasNetworkProvider: {formerServers: [{url: 'https://p/x', useUrl: 'http://q'}]}", false),
            ("iaasNetworkProvider: {formerServers: [{url: 'http://q', useUrl: 'https://p/x'}]}", true),
        ] {
            assert_eq!(unserved(text), expected, "{text}");
        }
        assert_eq!(Providers::default().unserved(&one), None, "not seen is not known");
        let mut free = one.clone();
        free.provider = None;
        assert_eq!(Providers::of(Some(&Conf::default())).unserved(&free), None);
    }

    #[test]
    fn the_last_write_says_since_when() {
        let one = held(&json!({"state": "Releasing", "releasing": {"releaser": "0123456789abcdef", "then": "Delete"}}));
        let what = one.what.clone().expect("readable");
        assert_eq!(releasing(&one, &what, after(70)).as_deref(), Some("process 01234567, last tried 20s ago"));
        assert_eq!((settles(&one, &what, after(70)), settles(&one, &what, after(102))), (Some(32), None));
        let held = held(&json!({}));
        assert_eq!(releasing(&held, &held.what.clone().expect("readable"), after(70)), None);
    }
}
