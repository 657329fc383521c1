//! SpiderIPPool.

mod affinity;
mod in_use;
mod overlap;

pub(crate) use in_use::{Holder, held, recorded};
pub(crate) use overlap::overlap;

use super::{Findings, Object, patch};
use ipam_core::{Address, Family, Range, Ranges, Subnet};
use k8s_api::conf::Conf;
use k8s_api::crd::ip_pool::{IpPoolSpec, Route};
use k8s_api::crd::texts;
use k8s_api::names::POOL_FINALIZER;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Label with the subnet, as users of existing systems select pools.
const CIDR_LABEL: &str = "ipam.spidernet.io/ippool-cidr";
/// What the reference says of addresses, whichever is at odds with them.
const JOINTLY: &str = "total IP addresses of an IPPool are jointly determined by 'spec.ips' and 'spec.excludeIPs'";

/// The addresses of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pool {
    pub(crate) subnet: Subnet,
    /// `spec.ips` without `spec.excludeIPs`.
    pub(crate) addresses: Ranges,
}

impl Pool {
    /// Reads a pool that is there already, as far as it can be read.
    pub(crate) fn of(spec: &Value) -> Option<Self> {
        let subnet = spec.get("subnet")?.as_str()?.parse().ok()?;
        let read = |field: &str| -> Ranges {
            let texts = spec.get(field).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
            texts.filter_map(|text| text.parse::<Range>().ok()).collect()
        };
        Some(Self { subnet, addresses: read("ips").difference(&read("excludeIPs")) })
    }
}

/// The family of `ipVersion`; the definition lets no other number pass.
pub(crate) fn family(version: i64) -> Option<Family> {
    [Family::V4, Family::V6].into_iter().find(|family| family.version() == version)
}

/// `ipVersion` and the label follow from the subnet. `changed` is whether the spec is new: an object that is there stays as it
/// is but for its label. Our finalizer is not lost when somebody writes the object without it; put there it is by the loop
/// that keeps it, since an API server warns whoever adds one of this name.
pub(crate) fn complete(object: &Object, old: Option<&Object>, changed: bool) -> Vec<Value> {
    let subnet = object.spec.get("subnet").and_then(Value::as_str).and_then(|text| text.parse::<Subnet>().ok());
    let held = old.and_then(Object::finalizers).is_some_and(|all| all.iter().any(|one| one == POOL_FINALIZER));
    let finalizer = patch::finalizer(object, POOL_FINALIZER).filter(|_| held);
    let Some(subnet) = subnet else { return finalizer.into_iter().collect() };
    let version = patch::default(object, "ipVersion", &json!(subnet.family().version())).filter(|_| changed);
    let label = subnet.label();
    let labels = patch::labels(object, &BTreeMap::from([(CIDR_LABEL, Some(&*label))]));
    version.into_iter().chain(labels).chain(finalizer).collect()
}

/// Whether nothing changed that is checked. Whether the pool gives addresses, and to whom who asks for no pool, can always
/// be changed: that is how one that has a fault is taken out of use.
pub(crate) fn same(new: &Object, old: &Object) -> bool {
    let checked = |object: &Object| {
        let mut spec = object.spec.clone();
        if let Some(spec) = spec.as_object_mut() {
            spec.retain(|field, _| !matches!(field.as_str(), "disable" | "default"));
        }
        spec
    };
    checked(new) == checked(old)
}

/// Checks one pool by itself. Its addresses, where they can be told.
pub(crate) fn read(spec: &IpPoolSpec, conf: &Conf) -> (Option<Pool>, Findings) {
    let mut findings = Findings::default();
    let IpPoolSpec { ip_version, subnet, ips, exclude_ips, gateway, routes, default: _, disable: _, .. } = spec;
    affinity::check(spec, &mut findings);
    let subnet = match subnet.parse::<Subnet>() {
        Ok(subnet) => subnet,
        Err(error) => {
            findings.invalid("spec.subnet", subnet, error.to_string());
            if ip_version.is_none() {
                let text = "is not generated correctly, 'spec.subnet' may be invalid; correct the subnet";
                findings.invalid("spec.ipVersion", Value::Null, text);
            }
            return (None, findings);
        }
    };
    if let Some(version) = ip_version.filter(|version| family(*version) != Some(subnet.family())) {
        let text = format!("'spec.subnet' {subnet} is {}; leave ipVersion out, and it follows", subnet.family());
        findings.invalid("spec.ipVersion", version, text);
    }
    family_is_on(subnet.family(), conf, &mut findings);
    let listed = inside("spec.ips", ips, subnet, &mut findings);
    let excluded = inside("spec.excludeIPs", exclude_ips, subnet, &mut findings);
    let addresses = listed.difference(&excluded);
    let gateway = gateway.as_deref().filter(|gateway| !gateway.is_empty());
    if let Some(gateway) = gateway {
        self::gateway(gateway, subnet, &addresses, &mut findings);
    }
    self::routes(routes, subnet, gateway.is_some(), &mut findings);
    if addresses.is_empty() && findings.faults.is_empty() {
        findings.warn("the pool has no address: spec.ips is empty, or all of it is in spec.excludeIPs");
    }
    if let Some((network, broadcast)) = subnet.not_for_hosts() {
        for (what, address) in [("network", network), ("broadcast", broadcast)] {
            if addresses.contains(address) {
                findings.warn(format!(
                    "{address} is the {what} address of {subnet}, which no host can have; add it to spec.excludeIPs"
                ));
            }
        }
    }
    (Some(Pool { subnet, addresses }), findings)
}

/// What stays as it was created. The definition says so too, where both are there to compare.
pub(crate) fn changed(new: &Object, old: &Object) -> Findings {
    let mut findings = Findings::default();
    for field in ["ipVersion", "subnet"] {
        let (new, old) = (new.spec.get(field), old.spec.get(field));
        if old.is_some_and(|old| !old.is_null()) && new != old {
            findings.forbidden(format!("spec.{field}"), texts::NOT_CHANGEABLE);
        }
    }
    findings
}

/// Pods can have addresses of the family.
pub(crate) fn family_is_on(family: Family, conf: &Conf, findings: &mut Findings) {
    let on = match family {
        Family::V4 => conf.ipv4,
        Family::V6 => conf.ipv6,
    };
    if !on {
        let text = format!("{family} is disabled; set the chart value ipam.enable{family} to true");
        findings.forbidden("spec.ipVersion", text);
    }
}

/// Reads addresses and ranges, each with its field.
pub(crate) fn ranges(field: &str, texts: &[String], findings: &mut Findings) -> Vec<(String, Range)> {
    let mut read = Vec::new();
    for (n, text) in texts.iter().enumerate() {
        match text.parse::<Range>() {
            Ok(range) => read.push((format!("{field}[{n}]"), range)),
            Err(error) => findings.invalid(format!("{field}[{n}]"), text, error.to_string()),
        }
    }
    read
}

fn outside(subnet: Subnet) -> String {
    format!("not pertains to the 'spec.subnet' {subnet} of IPPool")
}

fn inside(field: &str, texts: &[String], subnet: Subnet, findings: &mut Findings) -> Ranges {
    let read = ranges(field, texts, findings);
    let whole = subnet.range();
    for (at, range) in read.iter().filter(|(_, range)| range.intersection(whole) != Some(*range)) {
        findings.invalid(at.clone(), range.to_string(), outside(subnet));
    }
    read.into_iter().map(|(_, range)| range).collect()
}

fn gateway(text: &str, subnet: Subnet, addresses: &Ranges, findings: &mut Findings) {
    const FIELD: &str = "spec.gateway";
    match text.parse::<Address>() {
        Err(error) => findings.invalid(FIELD, text, error.to_string()),
        Ok(gateway) if !subnet.contains(gateway) => findings.invalid(FIELD, text, outside(subnet)),
        Ok(gateway) => {
            if addresses.contains(gateway) {
                findings.forbidden("spec.ips", format!(
                    "conflicts with 'spec.gateway' {gateway}, add the gateway IP address to 'spec.excludeIPs' or remove it from 'spec.ips'"
                ));
            }
            if subnet.not_for_hosts().is_some_and(|(network, broadcast)| gateway == network || gateway == broadcast) {
                findings.warn(format!(
                    "spec.gateway {gateway} is the network or broadcast address of {subnet}, which no host can have"
                ));
            }
        }
    }
}

fn routes(routes: &[Route], subnet: Subnet, has_gateway: bool, findings: &mut Findings) {
    let mut seen = BTreeSet::new();
    for (n, Route { dst, gw }) in routes.iter().enumerate() {
        let at = |field: &str| format!("spec.routes[{n}].{field}");
        match dst.parse::<Subnet>() {
            Err(error) => findings.invalid(at("dst"), dst, error.to_string()),
            Ok(to) if to.family() != subnet.family() => {
                findings.invalid(at("dst"), dst, format!("the pool is {}", subnet.family()));
            }
            Ok(to) if to.prefix() == 0 => {
                let then = if has_gateway { "remove this route" } else { "set it and remove this route" };
                findings.invalid(
                    at("dst"),
                    dst,
                    format!("please specify 'spec.gateway' to configure the default route; {then}"),
                );
            }
            Ok(to) if !seen.insert(to) => {
                findings.duplicate(at("dst"), dst, "duplicate route with the same dst; leave one of them");
            }
            Ok(_) => {}
        }
        match gw.parse::<Address>() {
            Err(error) => findings.invalid(at("gw"), gw, error.to_string()),
            Ok(gateway) if !subnet.contains(gateway) => findings.invalid(at("gw"), gw, outside(subnet)),
            Ok(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
