//! One pool, as far as its users care.

use k8s_api::crd::ip_pool::{IpPoolSpec, IpPoolStatus, has_records};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::DynamicObject;
use serde_json::Value;
use store::{Address, Family, Range, Ranges};

/// What a pool says of itself.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each by itself, as the object says it")]
pub(crate) struct Pool {
    pub(crate) name: String,
    pub(crate) subnet: String,
    pub(crate) family: Option<Family>,
    /// `ips` without `excludeIPs`, as the status counts them.
    pub(crate) addresses: Ranges,
    pub(crate) default: bool,
    pub(crate) disabled: bool,
    pub(crate) terminating: bool,
    /// It gives nothing before the records of an earlier system are taken over.
    pub(crate) unadopted: bool,
    /// Whom it is for, each in a few words; empty for everybody.
    pub(crate) restrictions: Vec<String>,
    /// As it is written.
    pub(crate) spec: IpPoolSpec,
    /// `status.allocatedIPCount` and `status.totalIPCount`.
    pub(crate) status: [Option<i64>; 2],
    /// Why it cannot be read, so that it gives nothing.
    pub(crate) fault: Option<String>,
}

/// So many names are shown of a list.
const SHOWN: usize = 3;

impl Pool {
    pub(crate) fn read(object: &DynamicObject) -> Self {
        let name = object.metadata.name.clone().unwrap_or_default();
        let terminating = object.metadata.deletion_timestamp.is_some();
        let part = |key: &str| object.data.get(key).cloned().unwrap_or(Value::Null);
        let spec = match serde_json::from_value::<IpPoolSpec>(part("spec")) {
            Ok(spec) => spec,
            Err(error) => return Self { name, terminating, fault: Some(error.to_string()), ..Self::default() },
        };
        let status = serde_json::from_value::<IpPoolStatus>(part("status")).unwrap_or_default();
        let ranges =
            |texts: &[String]| -> Ranges { texts.iter().filter_map(|text| text.parse::<Range>().ok()).collect() };
        let network = spec.subnet.split('/').next().unwrap_or_default().parse::<Address>();
        Self {
            name,
            family: network.as_ref().ok().map(|network| network.family()),
            fault: network.err().map(|error| format!("spec.subnet {}: {error}", spec.subnet)),
            addresses: ranges(&spec.ips).difference(&ranges(&spec.exclude_ips)),
            default: spec.default,
            disabled: spec.disable,
            terminating,
            unadopted: status.allocated_ips.as_deref().is_some_and(has_records),
            restrictions: restrictions(&spec),
            status: [status.allocated_ip_count, status.total_ip_count],
            subnet: spec.subnet.clone(),
            spec,
        }
    }

    /// How many of its addresses nobody has.
    pub(crate) fn free(&self, reserved: &Ranges, taken: &[Address]) -> u128 {
        let taken: Ranges = taken.iter().copied().map(Range::from).collect();
        self.addresses.difference(reserved).difference(&taken).count()
    }

    /// What keeps it from giving addresses, whoever asks.
    pub(crate) fn stopped(&self) -> Option<&'static str> {
        if self.fault.is_some() {
            Some("cannot be read")
        } else if self.terminating {
            Some("is being deleted")
        } else if self.disabled {
            Some("is disabled")
        } else if self.unadopted {
            Some("waits until records of an earlier system are taken over: see its condition Adopted")
        } else {
            None
        }
    }
}

fn restrictions(spec: &IpPoolSpec) -> Vec<String> {
    let names = |what: &str, names: &[String]| {
        let shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(",");
        let more = names.len().saturating_sub(SHOWN);
        let more = if more == 0 { String::new() } else { format!(",+{more}") };
        (!names.is_empty()).then(|| format!("{what}={shown}{more}"))
    };
    // A name counts instead of the affinity beside it.
    let node = names("node", &spec.node_name).or_else(|| selector("nodes", spec.node_affinity.as_ref()));
    let namespace =
        names("namespace", &spec.namespace_name).or_else(|| selector("namespaces", spec.namespace_affinity.as_ref()));
    let pod = selector("pods", spec.pod_affinity.as_ref());
    [pod, namespace, node, names("network", &spec.multus_name)].into_iter().flatten().collect()
}

fn selector(what: &str, selector: Option<&LabelSelector>) -> Option<String> {
    let LabelSelector { match_labels, match_expressions } = selector?;
    let labels = match_labels.iter().flatten().map(|(key, value)| format!("{key}={value}"));
    let expressions = match_expressions.iter().flatten().map(|one| {
        let values = one.values.iter().flatten().cloned().collect::<Vec<_>>().join(",");
        format!("{} {} [{values}]", one.key, one.operator)
    });
    let all: Vec<_> = labels.chain(expressions).collect();
    Some(format!("{what}({})", all.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(spec: &Value) -> Pool {
        status(spec, &json!({"allocatedIPCount": 1}))
    }

    fn status(spec: &Value, status: &Value) -> Pool {
        let object = json!({"metadata": {"name": "p"}, "spec": spec, "status": status});
        Pool::read(&serde_json::from_value(object).expect("an object"))
    }

    #[test]
    fn what_is_free_is_in_the_pool_and_nobodys() {
        let pool = read(
            &json!({"subnet": "10.0.0.0/24", "ips": ["10.0.0.1-10.0.0.10"], "excludeIPs": ["10.0.0.2"], "disable": true}),
        );
        let at = |text: &str| text.parse::<Address>().expect("an address");
        assert_eq!(pool.addresses.count(), 9);
        let reserved = Ranges::from(Range::from(at("10.0.0.3")));
        assert_eq!(pool.free(&reserved, &[at("10.0.0.4"), at("10.0.0.2"), at("10.9.9.9")]), 7);
        assert_eq!((pool.family, pool.status), (Some(Family::V4), [Some(1), None]));
        assert_eq!(pool.stopped(), Some("is disabled"));
    }

    #[test]
    fn restrictions_are_short() {
        let pool = read(&json!({
            "subnet": "fd00::/64", "nodeName": ["a", "b", "c", "d"], "nodeAffinity": {"matchLabels": {"x": "y"}},
            "podAffinity": {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]},
            "multusName": ["team-a/net"],
        }));
        assert_eq!(pool.restrictions, ["pods(app=web; k In [v])", "node=a,b,c,+1", "network=team-a/net"]);
        assert_eq!(pool.family, Some(Family::V6));
    }

    #[test]
    fn what_cannot_be_read_says_so() {
        assert!(read(&json!({"ips": []})).fault.expect("no subnet").contains("subnet"));
        assert_eq!(read(&json!({"subnet": "x/24"})).stopped(), Some("cannot be read"));
        let old = status(&json!({"subnet": "10.0.0.0/24"}), &json!({"allocatedIPs": r#"{"10.0.0.1": {}}"#}));
        assert!(old.stopped().is_some_and(|why| why.contains("earlier system")));
    }
}
