//! SpiderReservedIP.

use super::ip_pool::{self, family_is_on};
use super::{Findings, Object, patch};
use ipam_core::Range;
use k8s_api::conf::Conf;
use k8s_api::crd::reserved_ip::ReservedIpSpec;
use serde_json::{Value, json};

/// `ipVersion` follows from the first address.
pub(crate) fn complete(object: &Object) -> Vec<Value> {
    let ranges = object.spec.get("ips").and_then(Value::as_array).into_iter().flatten();
    let first = ranges.filter_map(Value::as_str).find_map(|text| text.parse::<Range>().ok());
    first.and_then(|range| patch::default(object, "ipVersion", json!(range.family().version()))).into_iter().collect()
}

pub(crate) fn validate(spec: &ReservedIpSpec, conf: &Conf) -> Findings {
    let mut findings = Findings::default();
    let ReservedIpSpec { ip_version, ips } = spec;
    let mut family = ip_version.and_then(ip_pool::family);
    for (at, range) in ip_pool::ranges("spec.ips", ips, &mut findings) {
        let wanted = *family.get_or_insert(range.family());
        if range.family() != wanted {
            let text = format!("all addresses must be {wanted}; write another SpiderReservedIP for the others");
            findings.invalid(at, range.to_string(), text);
        }
    }
    if let Some(family) = family {
        family_is_on(family, conf, &mut findings);
    }
    if ips.is_empty() {
        findings.warn("spec.ips is empty: nothing is reserved");
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(spec: Value, conf: &Conf) -> Vec<String> {
        let spec: ReservedIpSpec = serde_json::from_value(spec).expect("a spec");
        validate(&spec, conf).faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn addresses_are_read_and_of_one_family() {
        let conf = Conf::default();
        assert_eq!(found(json!({"ips": ["10.0.0.1", "10.0.0.5-10.0.0.9"]}), &conf), Vec::<String>::new());
        assert_eq!(found(json!({"ipVersion": 6, "ips": ["fd00::1"]}), &conf), Vec::<String>::new());
        for (spec, text) in [
            (json!({"ips": ["x"]}), r#"spec.ips[0]: Invalid value: "x": it is not an IP address"#),
            (json!({"ips": ["10.0.0.1", ""]}), r#"spec.ips[1]: Invalid value: "": it is empty"#),
            (
                json!({"ips": ["10.0.0.1", "fd00::1"]}),
                "spec.ips[1]: Invalid value: \"fd00::1\": all addresses must be IPv4",
            ),
            (json!({"ipVersion": 6, "ips": ["10.0.0.1"]}), "all addresses must be IPv6"),
        ] {
            let found = found(spec, &conf);
            assert!(found.len() == 1 && found[0].contains(text), "{text}: {found:?}");
        }
        let off = Conf { ipv6: false, ..Conf::default() };
        let text = &found(json!({"ips": ["fd00::1"]}), &off)[0];
        assert!(text.starts_with("spec.ipVersion: Forbidden: IPv6 is disabled"), "{text}");
    }

    #[test]
    fn the_version_follows_from_the_addresses() {
        let patch = |spec: Value| complete(&serde_json::from_value(json!({ "spec": spec })).expect("an object"));
        let set = |version: i64| vec![json!({"op": "add", "path": "/spec/ipVersion", "value": version})];
        assert_eq!(patch(json!({"ips": ["x", "fd00::1"]})), set(6));
        assert_eq!(patch(json!({"ips": ["10.0.0.1"], "ipVersion": null})), set(4));
        assert!(patch(json!({"ips": ["10.0.0.1"], "ipVersion": 4})).is_empty());
        assert!(patch(json!({"ips": "10.0.0.1"})).is_empty() && patch(json!(5)).is_empty());
    }
}
