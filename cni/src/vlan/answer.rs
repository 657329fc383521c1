//! What a runtime reads of an ADD of the plugin `vlan`.

use super::given::Given;
use super::links::Link;
use crate::version::Version;
use serde_json::{Map, Value, json};

/// The interface, its addresses, routes and names, in the shape of `version`. `dns` of the configuration goes before that of an
/// IPAM plugin.
pub(super) fn text(version: Version, link: &Link, sandbox: &str, given: &Given, dns: Option<&Value>) -> String {
    let mac = link.mac.map(|mac| mac.to_string()).unwrap_or_default();
    let mut interface = json!({"name": link.name, "mac": mac, "sandbox": sandbox});
    if let (true, Some(interface)) = (version.tells_mtu(), interface.as_object_mut()) {
        interface.insert("mtu".to_owned(), link.mtu.into());
    }
    let ips = given.addresses.iter().map(|address| {
        let mut ip = Map::new();
        if version.names_families() {
            ip.insert("version".to_owned(), if address.ip.is_ipv4() { "4" } else { "6" }.into());
        }
        ip.insert("interface".to_owned(), 0.into());
        ip.insert("address".to_owned(), format!("{}/{}", address.ip, address.prefix).into());
        if let Some(gateway) = address.gateway {
            ip.insert("gateway".to_owned(), gateway.to_string().into());
        }
        Value::from(ip)
    });
    let mut result = json!({"cniVersion": version.text(), "interfaces": [interface], "ips": ips.collect::<Vec<_>>()});
    if let Some(result) = result.as_object_mut() {
        if given.told_routes.as_array().is_some_and(|routes| !routes.is_empty()) {
            result.insert("routes".to_owned(), given.told_routes.clone());
        }
        result.insert("dns".to_owned(), dns.unwrap_or(&given.dns).clone());
    }
    result.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::Mac;

    #[test]
    fn has_the_shape_of_the_version() {
        let told = json!({
            "ips": [{"address": "10.6.0.9/24", "gateway": "10.6.0.1"}, {"address": "fd00::9/64"}],
            "routes": [{"dst": "0.0.0.0/0"}], "dns": {"search": ["a"]},
        });
        let given = Given::by_plugin(7, &told).expect("good");
        let link = Link { name: "net1".into(), mac: Some(Mac([2, 0, 0, 0, 0, 1])), mtu: 1500, ..Link::default() };
        for version in Version::ALL {
            let result: Value = serde_json::from_str(&text(version, &link, "/s", &given, None)).expect("JSON");
            let mut wanted = json!({
                "cniVersion": version.text(),
                "interfaces": [{"name": "net1", "mac": "02:00:00:00:00:01", "sandbox": "/s"}],
                "ips": [{"interface": 0, "address": "10.6.0.9/24", "gateway": "10.6.0.1"}, {"interface": 0, "address": "fd00::9/64"}],
                "routes": [{"dst": "0.0.0.0/0"}], "dns": {"search": ["a"]},
            });
            if version < Version::V1_0_0 {
                wanted["ips"][0]["version"] = "4".into();
                wanted["ips"][1]["version"] = "6".into();
            }
            if version == Version::V1_1_0 {
                wanted["interfaces"][0]["mtu"] = 1500.into();
            }
            assert_eq!(result, wanted);
        }
        let own = json!({"nameservers": ["10.0.0.1"]});
        let result: Value =
            serde_json::from_str(&text(Version::LATEST, &link, "/s", &given, Some(&own))).expect("JSON");
        assert_eq!(result["dns"], own);
    }
}
