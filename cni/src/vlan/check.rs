//! Whether a link is what an ADD answered.

use super::config::{Network, Previous, PreviousInterface, Source};
use super::given::subnet;
use super::links::{Held, Link};
use super::plan::Master;
use crate::detect::Mac;
use crate::error::{Code, Fault};
use proto::agent::Interface;
use std::net::IpAddr;

/// What is there.
pub(super) struct Found<'a> {
    pub(super) link: Option<&'a Link>,
    pub(super) held: &'a [Held],
    pub(super) routes: &'a [(IpAddr, u8, Option<IpAddr>)],
    pub(super) master: Option<&'a Master>,
}

/// The first difference.
pub(super) fn check(network: &Network, interface: &str, netns: &str, found: &Found<'_>) -> Result<(), Fault> {
    let Previous { interfaces, ips, routes } = network.previous.clone().unwrap_or_default();
    let (at, told) = interfaces
        .iter()
        .enumerate()
        .find(|(_, told)| told.name == interface && told.sandbox == netns)
        .ok_or_else(|| differs(format!("prevResult names no interface {interface} in {netns}")))?;
    let link = found.link.ok_or_else(|| differs(format!("interface {interface} is not there")))?;
    of_link(network, link, told, found.master)?;
    for ip in ips.iter().filter(|ip| ip.interface.is_none_or(|of| of == at)) {
        let (address, prefix) = subnet(&ip.address)?;
        if !found.held.iter().any(|held| (held.ip, held.prefix) == (address, prefix)) {
            return Err(differs(format!("interface {interface} has no address {}", ip.address)));
        }
    }
    for route in &routes {
        let (dst, prefix) = subnet(&route.dst)?;
        if !found.routes.iter().any(|(known, length, _)| (*known, *length) == (dst, prefix)) {
            return Err(differs(format!("the pod has no route to {}", route.dst)));
        }
    }
    Ok(())
}

/// Whether the link is what a provider bound.
pub(super) fn bound(link: &Link, bound: &Interface) -> Result<(), Fault> {
    let (name, Interface { mac, vlan, .. }) = (&link.name, bound);
    if link.vlan.map(u32::from) != Some(*vlan) {
        let own = link.vlan.unwrap_or_default();
        return Err(differs(format!("interface {name} is of VLAN {own}, and the provider bound {vlan}")));
    }
    if Mac::of_device(mac) != link.mac {
        let own = link.mac.map(|mac| mac.to_string()).unwrap_or_default();
        return Err(differs(format!("interface {name} has MAC {own}, and the provider bound {mac}")));
    }
    Ok(())
}

fn of_link(network: &Network, link: &Link, told: &PreviousInterface, master: Option<&Master>) -> Result<(), Fault> {
    let name = &link.name;
    let Some(vlan) = link.vlan else { return Err(differs(format!("interface {name} is no VLAN link"))) };
    match network.source {
        Source::Manual { vlan: wanted, .. } if wanted != vlan => {
            return Err(differs(format!("interface {name} is of VLAN {vlan}, and {wanted} is configured")));
        }
        Source::Manual { .. } | Source::Provider => {}
    }
    match master {
        None => return Err(differs(format!("master {} is not there", network.master))),
        Some(master) if !master.carries(link) => {
            return Err(differs(format!("interface {name} is on another master than {}", network.master)));
        }
        Some(_) => {}
    }
    if !told.mac.is_empty() && Mac::of_device(&told.mac) != link.mac {
        let mac = link.mac.map(|mac| mac.to_string()).unwrap_or_default();
        return Err(differs(format!("interface {name} has MAC {mac}, and {} was given", told.mac)));
    }
    for mtu in [network.mtu, told.mtu].into_iter().filter(|mtu| *mtu > 0) {
        if mtu != link.mtu {
            return Err(differs(format!("interface {name} has MTU {}, and {mtu} was given", link.mtu)));
        }
    }
    if link.up { Ok(()) } else { Err(differs(format!("interface {name} is down"))) }
}

fn differs(msg: String) -> Fault {
    Fault::new(Code::Plugin, msg)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Verb;
    use crate::version::Version;
    use serde_json::{Value, json};

    type Change<T> = fn(&mut T);

    fn previous() -> Value {
        json!({
            "interfaces": [{"name": "net1", "mac": "02:00:00:00:00:01", "sandbox": "/s", "mtu": 1400}],
            "ips": [{"address": "10.6.0.9/24", "interface": 0}], "routes": [{"dst": "0.0.0.0/0", "gw": "10.6.0.1"}],
        })
    }

    #[test]
    fn what_a_provider_bound_is_compared() {
        let link = Link { mac: Some(Mac([2, 0, 0, 0, 0, 1])), vlan: Some(7), ..Link::default() };
        let of = |vlan, mac: &str| Interface { vlan, mac: mac.into(), ..Interface::default() };
        assert_eq!(bound(&link, &of(7, "02:00:00:00:00:01")), Ok(()));
        assert!(bound(&link, &of(8, "02:00:00:00:00:01")).expect_err("another").msg.contains("VLAN 7"));
        assert!(
            bound(&link, &of(7, "02:00:00:00:00:02")).expect_err("another").msg.contains("bound 02:00:00:00:00:02")
        );
    }

    /// With one change of what was told and one of what is there.
    fn checked(told: impl Fn(&mut Value), there: impl Fn(&mut Link)) -> Result<(), String> {
        let mut previous = previous();
        told(&mut previous);
        let text =
            json!({"name": "n", "master": "eth1", "vlanId": 7, "ipam": {"type": "static"}, "prevResult": previous});
        let network = Network::parse(Verb::Check, Version::LATEST, &text).expect("good");
        let mut link = Link {
            index: 2,
            name: "net1".into(),
            mac: Some(Mac([2, 0, 0, 0, 0, 1])),
            mtu: 1400,
            up: true,
            alias: String::new(),
            vlan: Some(7),
            parent: 3,
            parent_in: Some(0),
        };
        there(&mut link);
        let address = |ip: &str| ip.parse::<IpAddr>().expect("one");
        let held =
            [Held { ip: address("10.6.0.9"), prefix: 24, is_of_kernel: false, is_tentative: false, is_taken: false }];
        let routes = [(address("0.0.0.0"), 0, Some(address("10.6.0.1")))];
        let master = Master { index: 3, namespace: Some(0) };
        let found = Found { link: Some(&link), held: &held, routes: &routes, master: Some(&master) };
        check(&network, "net1", "/s", &found).map_err(|fault| fault.msg)
    }

    #[test]
    fn each_difference_is_told() {
        assert_eq!(checked(|_| {}, |_| {}), Ok(()));
        let told: [(Change<Value>, &str); 6] = [
            (|told| told["interfaces"][0]["sandbox"] = "/t".into(), "prevResult names no interface net1 in /s"),
            (|told| told["interfaces"][0]["name"] = "net2".into(), "prevResult names no interface"),
            (|told| told["interfaces"][0]["mac"] = "02:00:00:00:00:02".into(), "has MAC 02:00:00:00:00:01"),
            (|told| told["interfaces"][0]["mtu"] = 1500.into(), "has MTU 1400"),
            (|told| told["ips"][0]["address"] = "10.6.0.8/24".into(), "no address 10.6.0.8/24"),
            (|told| told["routes"][0]["dst"] = "10.0.0.0/8".into(), "no route to 10.0.0.0/8"),
        ];
        for (change, text) in told {
            assert!(checked(change, |_| {}).expect_err(text).contains(text));
        }
        let there: [(Change<Link>, &str); 4] = [
            (|link| link.vlan = None, "no VLAN link"),
            (|link| link.vlan = Some(8), "is of VLAN 8, and 7"),
            (|link| link.parent = 4, "another master"),
            (|link| link.up = false, "is down"),
        ];
        for (change, text) in there {
            assert!(checked(|_| {}, change).expect_err(text).contains(text));
        }
    }
}
