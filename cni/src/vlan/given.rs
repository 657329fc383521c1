//! What an interface gets.

use crate::detect::Mac;
use crate::error::{Code, Fault};
use proto::agent::Interface;
use serde::Deserialize;
use serde_json::{Value, json};
use std::net::IpAddr;

/// Of the agent or of an IPAM plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) vlan: u16,
    /// None: the master's.
    pub(super) mac: Option<Mac>,
    pub(super) addresses: Vec<Address>,
    pub(super) routes: Vec<Route>,
    pub(super) dns: Value,
    /// As they came, for the result.
    pub(super) told_routes: Value,
}

/// An address in its subnet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) ip: IpAddr,
    pub(super) prefix: u8,
    pub(super) gateway: Option<IpAddr>,
}

/// Where to send what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) dst: IpAddr,
    pub(super) prefix: u8,
    pub(super) gw: Option<IpAddr>,
    pub(super) mtu: Option<u32>,
    pub(super) advmss: Option<u32>,
    pub(super) priority: Option<u32>,
    pub(super) table: Option<u32>,
    pub(super) scope: Option<u8>,
}

/// A result of CNI 0.3.0 or later; what is not here is somebody else's.
#[derive(Deserialize)]
struct Told {
    ips: Option<Vec<ToldAddress>>,
    routes: Option<Vec<ToldRoute>>,
    dns: Option<Value>,
}

#[derive(Deserialize)]
struct ToldAddress {
    address: String,
    gateway: Option<String>,
}

#[derive(Deserialize)]
struct ToldRoute {
    dst: String,
    gw: Option<String>,
    mtu: Option<u32>,
    advmss: Option<u32>,
    priority: Option<u32>,
    table: Option<u32>,
    scope: Option<u8>,
}

impl Given {
    /// A provider answers VLAN and MAC as well, or there is nothing to make.
    pub(super) fn by_agent(interface: &Interface) -> Result<Self, Fault> {
        let Interface { name: _, addresses, routes, mac, vlan } = interface;
        let vlan = u16::try_from(*vlan).ok().filter(|vlan| (1..=4094).contains(vlan)).ok_or_else(|| {
            unusable(&format!("VLAN {vlan}; a network without vlanId needs one of 1 to 4094 from its provider"))
        })?;
        let device = Mac::of_device(mac).ok_or_else(|| {
            unusable(&format!("MAC {mac:?}; a network without vlanId needs that of a device from its provider"))
        })?;
        let addresses: Result<Vec<_>, _> =
            addresses.iter().map(|address| Address::read(&address.cidr, Some(&address.gateway))).collect();
        let told = routes.iter().map(|route| ToldRoute {
            dst: route.dst.clone(),
            gw: Some(route.gw.clone()),
            mtu: None,
            advmss: None,
            priority: None,
            table: None,
            scope: None,
        });
        let told_routes: Vec<Value> = routes
            .iter()
            .map(|route| match route.gw.as_str() {
                "" => json!({"dst": route.dst}),
                gw => json!({"dst": route.dst, "gw": gw}),
            })
            .collect();
        Self::of(vlan, Some(device), addresses?, &told.collect::<Vec<_>>(), json!({}), told_routes.into())
    }

    /// Before an IPAM plugin gives any.
    pub(super) fn without_addresses(vlan: u16) -> Self {
        let (addresses, routes) = (Vec::new(), Vec::new());
        Self { vlan, mac: None, addresses, routes, dns: Value::Null, told_routes: Value::Null }
    }

    /// By the result of an IPAM plugin.
    pub(super) fn by_plugin(vlan: u16, result: &Value) -> Result<Self, Fault> {
        let told = Told::deserialize(result).map_err(|error| unusable(&error.to_string()))?;
        let Told { ips, routes, dns } = told;
        let ips = ips.unwrap_or_default();
        let addresses: Result<Vec<_>, _> =
            ips.iter().map(|ip| Address::read(&ip.address, ip.gateway.as_deref())).collect();
        let told_routes = result.get("routes").cloned().unwrap_or_default();
        Self::of(vlan, None, addresses?, &routes.unwrap_or_default(), dns.unwrap_or_else(|| json!({})), told_routes)
    }

    fn of(
        vlan: u16,
        mac: Option<Mac>,
        addresses: Vec<Address>,
        routes: &[ToldRoute],
        dns: Value,
        told_routes: Value,
    ) -> Result<Self, Fault> {
        if addresses.is_empty() {
            return Err(unusable("no address"));
        }
        let routes: Result<Vec<_>, _> = routes.iter().map(|route| Route::read(route, &addresses)).collect();
        Ok(Self { vlan, mac, addresses, routes: routes?, dns, told_routes })
    }
}

impl Address {
    fn read(cidr: &str, gateway: Option<&str>) -> Result<Self, Fault> {
        let (ip, prefix) = subnet(cidr)?;
        Ok(Self { ip, prefix, gateway: neighbour(ip, gateway)? })
    }
}

impl Route {
    /// Without a gateway of its own it goes through that of the addresses of its family.
    fn read(told: &ToldRoute, addresses: &[Address]) -> Result<Self, Fault> {
        let ToldRoute { dst, gw, mtu, advmss, priority, table, scope } = told;
        let (dst, prefix) = subnet(dst)?;
        let own = neighbour(dst, gw.as_deref())?;
        let on_link = scope.is_some_and(|scope| scope > 0);
        let of_family = || addresses.iter().find_map(|of| of.gateway.filter(|gw| gw.is_ipv4() == dst.is_ipv4()));
        let gw = own.or_else(|| if on_link { None } else { of_family() });
        let some = |number: &Option<u32>| number.filter(|number| *number > 0);
        Ok(Self {
            dst,
            prefix,
            gw,
            mtu: some(mtu),
            advmss: some(advmss),
            priority: some(priority),
            table: *table,
            scope: *scope,
        })
    }
}

/// An address and the length of its prefix.
pub(super) fn subnet(text: &str) -> Result<(IpAddr, u8), Fault> {
    let parsed = text.split_once('/').and_then(|(address, length)| {
        let address: IpAddr = address.parse().ok()?;
        let length: u8 = length.parse().ok()?;
        (length <= if address.is_ipv4() { 32 } else { 128 }).then_some((address, length))
    });
    parsed.ok_or_else(|| unusable(&format!("{text:?}, which is no address with the length of a prefix")))
}

fn neighbour(of: IpAddr, text: Option<&str>) -> Result<Option<IpAddr>, Fault> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    match text.parse::<IpAddr>() {
        Ok(gateway) if gateway.is_ipv4() == of.is_ipv4() => Ok(Some(gateway)),
        _ => Err(unusable(&format!("{text:?} as the gateway of {of}"))),
    }
}

fn unusable(what: &str) -> Fault {
    Fault::new(Code::Plugin, format!("what was given for the interface cannot be used: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::agent;

    type Spoil = fn(&mut Interface);

    fn interface() -> Interface {
        Interface {
            name: "net1".into(),
            addresses: vec![agent::Address {
                cidr: "10.6.0.9/24".into(),
                gateway: "10.6.0.1".into(),
                pool: "p".into(),
            }],
            routes: vec![agent::Route { dst: "10.0.0.0/8".into(), gw: String::new() }],
            mac: "fa:16:3e:00:00:01".into(),
            vlan: 100,
        }
    }

    #[test]
    fn an_agent_gives_all_of_it() {
        let given = Given::by_agent(&interface()).expect("usable");
        assert_eq!((given.vlan, given.mac), (100, Some(Mac([0xfa, 0x16, 0x3e, 0, 0, 1]))));
        assert_eq!(given.routes[0].gw, Some("10.6.0.1".parse().expect("one")), "the address's");
        assert_eq!(given.told_routes, json!([{"dst": "10.0.0.0/8"}]));
    }

    #[test]
    fn half_an_answer_of_an_agent_is_none() {
        let table: [(Spoil, &str); 9] = [
            (|of| of.vlan = 0, "VLAN 0"),
            (|of| of.vlan = 4095, "VLAN 4095"),
            (|of| of.vlan = 65_636, "VLAN 65636"),
            (|of| of.mac.clear(), "MAC \"\""),
            (|of| of.mac = "01:00:5e:00:00:01".into(), "MAC"),
            (|of| of.addresses.clear(), "no address"),
            (|of| of.addresses[0].cidr = "10.6.0.9".into(), "prefix"),
            (|of| of.addresses[0].gateway = "fd00::1".into(), "gateway"),
            (|of| of.routes[0].dst = "default".into(), "prefix"),
        ];
        for (spoil, text) in table {
            let mut spoilt = interface();
            spoil(&mut spoilt);
            let fault = Given::by_agent(&spoilt).expect_err(text);
            assert!(fault.code == 100 && fault.msg.contains(text), "{fault:?}");
        }
    }

    #[test]
    fn results_of_all_versions_are_read() {
        let result = json!({
            "cniVersion": "0.4.0", "ips": [{"version": "4", "address": "10.6.0.9/24"}, {"address": "fd00::9/64", "gateway": "fd00::1"}],
            "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}, {"dst": "10.9.0.0/16", "gw": "10.6.0.5", "mtu": 1400, "table": 7, "priority": 3, "scope": 253}],
            "dns": {"nameservers": ["10.0.0.1"]}, "interfaces": [],
        });
        let given = Given::by_plugin(7, &result).expect("good");
        assert_eq!(given.routes.iter().map(|route| route.gw.is_some()).collect::<Vec<_>>(), [false, true, true]);
        let last = given.routes[2];
        assert_eq!((last.mtu, last.table, last.priority, last.scope), (Some(1400), Some(7), Some(3), Some(253)));
        assert_eq!(given.dns, json!({"nameservers": ["10.0.0.1"]}));
        for odd in
            [json!(null), json!({}), json!({"ips": []}), json!({"ips": [{}]}), json!({"ip4": {"ip": "10.0.0.1/8"}})]
        {
            assert!(Given::by_plugin(7, &odd).is_err(), "{odd}");
        }
    }
}
