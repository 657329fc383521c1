//! Routes that a pod asks for.

use super::fault::{InvalidAnnotation, Owner};
use super::reader::Reader;
use crate::Quoted;
use crate::crd::ip_pool::Route;
use crate::names::POD_ROUTES;
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What a person lists; each is a call to the kernel.
const MOST: usize = 128;

/// Reads [`POD_ROUTES`]: `[{"dst": "10.0.0.0/8", "gw": "172.91.0.2"}]`. Host bits of a destination are dropped, as
/// earlier systems drop them; the kernel would refuse them.
pub fn routes(text: &str) -> Result<Vec<Route>, InvalidAnnotation> {
    let mut reader = Reader::new(Owner::Pod, POD_ROUTES);
    let value = reader.json(text).unwrap_or_default();
    let items = reader.items("", &value, "routes, each with dst and gw", MOST).unwrap_or_default();
    let mut routes = Vec::new();
    for (n, item) in items.iter().enumerate() {
        let at = format!("[{n}]");
        let Some([dst, gw]) = reader.fields(&at, item, ["dst", "gw"]) else { continue };
        let dst = part(&mut reader, format!("{at}.dst"), dst, "a subnet such as 10.0.0.0/8", subnet);
        let gw = part(&mut reader, format!("{at}.gw"), gw, "an address", |text| text.parse::<IpAddr>().ok());
        let (Some((network, prefix)), Some(gw)) = (dst, gw) else { continue };
        if network.is_ipv4() == gw.is_ipv4() {
            routes.push(Route { dst: format!("{network}/{prefix}"), gw: gw.to_string() });
        } else {
            reader.fault(at, format!("dst {network}/{prefix} and gw {gw} must be of one family"));
        }
    }
    reader.end(routes)
}

fn part<T>(
    reader: &mut Reader,
    field: String,
    value: &Value,
    wanted: &str,
    read: impl Fn(&str) -> Option<T>,
) -> Option<T> {
    let text = value.as_str().unwrap_or_default();
    let found = read(text);
    if found.is_none() {
        reader.fault(field, format!("{} is not {wanted}", Quoted(text)));
    }
    found
}

/// A network and the length of its prefix.
fn subnet(text: &str) -> Option<(IpAddr, u32)> {
    let (address, prefix) = text.split_once('/')?;
    let prefix: u32 = prefix.parse().ok()?;
    let network = match address.parse().ok()? {
        IpAddr::V4(v4) => {
            let hosts = 32_u32.checked_sub(prefix)?;
            IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() & u32::MAX.checked_shl(hosts).unwrap_or_default()))
        }
        IpAddr::V6(v6) => {
            let hosts = 128_u32.checked_sub(prefix)?;
            IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & u128::MAX.checked_shl(hosts).unwrap_or_default()))
        }
    };
    Some((network, prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_read_and_masked() {
        for (written, dst) in [("10.1.2.3/8", "10.0.0.0/8"), ("0.0.0.0/0", "0.0.0.0/0"), ("10.0.0.1/32", "10.0.0.1/32")]
        {
            let read = routes(&format!(r#"[{{"dst":"{written}","gw":"172.91.0.2"}}]"#)).expect("legal");
            assert_eq!(read, [Route { dst: dst.to_owned(), gw: "172.91.0.2".to_owned() }]);
        }
        let read = routes(r#"[{"dst":"fd00::7/64","gw":"fd00::1"}]"#).expect("legal");
        assert_eq!(read[0].dst, "fd00::/64");
        assert_eq!(routes("[]"), Ok(Vec::new()));
    }

    #[test]
    fn each_fault_has_its_field_and_its_text() {
        for (text, wanted) in [
            (r#"[{"dst":"10.0.0.0","gw":"10.0.0.1"}]"#, "[0].dst: \"10.0.0.0\" is not a subnet"),
            (r#"[{"dst":"10.0.0.0/33","gw":"10.0.0.1"}]"#, "[0].dst: \"10.0.0.0/33\" is not a subnet"),
            (r#"[{"dst":"10.0.0.0/8"}]"#, "[0].gw: \"\" is not an address"),
            (r#"[{"dst":"10.0.0.0/8","gw":"fd00::1"}]"#, "[0]: dst 10.0.0.0/8 and gw fd00::1 must be of one family"),
            (r#"[{"dst":"10.0.0.0/8","via":"10.0.0.1","gw":"10.0.0.1"}]"#, "[0]: \"via\" is not a known key"),
            ("{}", "it must be a list of routes, each with dst and gw, not \"{}\""),
        ] {
            let said = routes(text).expect_err(text).to_string();
            let start = "wrong input, invalid format of Pod annotation 'ipam.spidernet.io/routes': ";
            assert!(said.starts_with(&format!("{start}{wanted}")), "{said}");
        }
    }
}
