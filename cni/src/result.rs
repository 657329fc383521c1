//! What a runtime reads of an ADD.

use crate::error::{Code, Fault};
use crate::version::Version;
use proto::agent::Interface;
use serde_json::{Map, Value, json};
use std::net::IpAddr;

/// The result of an IPAM plugin in the shape of `version`: addresses and routes, no interfaces. MAC and VLAN are asked of the
/// agent by who makes the link.
pub(crate) fn text(version: Version, interface: &Interface) -> Result<String, Fault> {
    if interface.addresses.is_empty() {
        return Err(unusable("it names no address"));
    }
    let ips: Result<Vec<Value>, Fault> = interface.addresses.iter().map(|address| ip(version, address)).collect();
    let routes: Result<Vec<Value>, Fault> = interface.routes.iter().map(route).collect();
    let mut result = Map::new();
    result.insert("cniVersion".to_owned(), version.text().into());
    result.insert("ips".to_owned(), ips?.into());
    let routes = routes?;
    if !routes.is_empty() {
        result.insert("routes".to_owned(), routes.into());
    }
    result.insert("dns".to_owned(), json!({}));
    Ok(Value::Object(result).to_string())
}

fn ip(version: Version, address: &proto::agent::Address) -> Result<Value, Fault> {
    let family = subnet(&address.cidr)?;
    let mut ip = Map::new();
    if version.names_families() {
        ip.insert("version".to_owned(), if family.is_ipv4() { "4" } else { "6" }.into());
    }
    ip.insert("address".to_owned(), address.cidr.as_str().into());
    if !address.gateway.is_empty() {
        ip.insert("gateway".to_owned(), gateway(family, &address.gateway)?.into());
    }
    Ok(ip.into())
}

fn route(route: &proto::agent::Route) -> Result<Value, Fault> {
    let family = subnet(&route.dst)?;
    let mut text = Map::new();
    text.insert("dst".to_owned(), route.dst.as_str().into());
    if !route.gw.is_empty() {
        text.insert("gw".to_owned(), gateway(family, &route.gw)?.into());
    }
    Ok(text.into())
}

fn subnet(text: &str) -> Result<IpAddr, Fault> {
    let parsed = text.split_once('/').and_then(|(address, length)| {
        let address: IpAddr = address.parse().ok()?;
        let length: u8 = length.parse().ok()?;
        (length <= if address.is_ipv4() { 32 } else { 128 }).then_some(address)
    });
    parsed.ok_or_else(|| unusable(&format!("{text:?} is no address with the length of a prefix")))
}

fn gateway(family: IpAddr, text: &str) -> Result<&str, Fault> {
    match text.parse::<IpAddr>() {
        Ok(gateway) if gateway.is_ipv4() == family.is_ipv4() => Ok(text),
        Ok(_) => Err(unusable(&format!("gateway {text:?} is of another family than {family}"))),
        Err(_) => Err(unusable(&format!("gateway {text:?} is no address"))),
    }
}

fn unusable(why: &str) -> Fault {
    Fault::new(Code::Plugin, format!("the node agent's answer cannot be used: {why}"))
}

/// The answer to VERSION, in the version that was asked for.
pub(crate) fn versions(asked: Option<&str>) -> String {
    let asked = asked.unwrap_or(Version::LATEST.text());
    json!({"cniVersion": asked, "supportedVersions": Version::ALL.map(Version::text)}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::agent::{Address, Route};

    fn interface() -> Interface {
        let address =
            |cidr: &str, gateway: &str| Address { cidr: cidr.into(), gateway: gateway.into(), pool: "p".into() };
        Interface {
            name: "net1".into(),
            addresses: vec![address("172.91.0.7/24", "172.91.0.1"), address("fd00::7/64", "")],
            routes: vec![Route { dst: "0.0.0.0/0".into(), gw: "172.91.0.1".into() }],
            mac: "02:00:00:00:00:01".into(),
            vlan: 7,
        }
    }

    #[test]
    fn has_the_shape_of_the_version() {
        for version in Version::ALL {
            let mut ips = json!([{"address": "172.91.0.7/24", "gateway": "172.91.0.1"}, {"address": "fd00::7/64"}]);
            if version < Version::V1_0_0 {
                ips[0]["version"] = "4".into();
                ips[1]["version"] = "6".into();
            }
            let wanted = json!({
                "cniVersion": version.text(), "ips": ips, "routes": [{"dst": "0.0.0.0/0", "gw": "172.91.0.1"}], "dns": {},
            });
            let result: Value = serde_json::from_str(&text(version, &interface()).expect("usable")).expect("JSON");
            assert_eq!(result, wanted);
        }
    }

    #[test]
    fn what_no_runtime_could_use_is_an_error() {
        let table: [fn(&mut Interface); 9] = [
            |interface| interface.addresses.clear(),
            |interface| interface.addresses[0].cidr = "172.91.0.7".into(),
            |interface| interface.addresses[0].cidr = "172.91.0.7/33".into(),
            |interface| interface.addresses[1].cidr = "fd00::7/129".into(),
            |interface| interface.addresses[0].gateway = "x".into(),
            |interface| interface.routes[0].dst = "default".into(),
            |interface| interface.routes[0].gw = "x".into(),
            |interface| interface.addresses[0].gateway = "fd00::1".into(),
            |interface| interface.routes[0].gw = "fd00::1".into(),
        ];
        for (at, spoil) in table.into_iter().enumerate() {
            let mut spoilt = interface();
            spoil(&mut spoilt);
            assert_eq!(text(Version::LATEST, &spoilt).expect_err("unusable").code, 100, "{at}");
        }
    }
}
