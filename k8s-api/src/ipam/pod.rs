//! Pools that a pod names.

use super::fault::{InvalidAnnotation, Owner};
use super::names::{self, Names};
use super::reader::Reader;
use crate::Quoted;
use crate::interface;
use crate::names::{POD_POOL, POD_POOLS};
use serde_json::Value;

/// Interfaces of one pod.
const INTERFACES_MAX: usize = 64;

/// Pools of one interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfacePools {
    /// At least one of a family.
    pub names: Names,
    /// No default route through this interface.
    pub clean_gateway: bool,
}

/// What [`POD_POOLS`] says. Either every entry names its interface, or none does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodPools {
    /// By the name of the interface.
    Named(Vec<(String, InterfacePools)>),
    /// By the order in which the interfaces come: the first entry is for the pod's first interface.
    InOrder(Vec<InterfacePools>),
}

impl PodPools {
    /// The pools of an interface: `name` in the pod, and the `index`th of them, from 0.
    #[must_use]
    pub fn of(&self, name: &str, index: usize) -> Option<&InterfacePools> {
        match self {
            Self::Named(all) => all.iter().find(|(interface, _)| interface == name).map(|(_, pools)| pools),
            Self::InOrder(all) => all.get(index),
        }
    }
}

/// Reads [`POD_POOLS`]: `[{"interface": "eth0", "ipv4": ["pool"], "ipv6": [], "cleangateway": false}]`.
pub fn pod_pools(text: &str) -> Result<PodPools, InvalidAnnotation> {
    let mut reader = Reader::new(Owner::Pod, POD_POOLS);
    let value = reader.json(text);
    let read = value.map(|value| entries(&mut reader, &value));
    reader.end(read.unwrap_or(PodPools::InOrder(Vec::new())))
}

/// Reads [`POD_POOL`]: `{"ipv4": ["pool"], "ipv6": []}`.
pub fn pod_pool(text: &str) -> Result<Names, InvalidAnnotation> {
    let mut reader = Reader::new(Owner::Pod, POD_POOL);
    let mut read = Names::default();
    if let Some(value) = reader.json(text)
        && let Some([ipv4, ipv6]) = reader.fields("", &value, ["ipv4", "ipv6"])
    {
        read = both(&mut reader, "", ipv4, ipv6);
    }
    reader.end(read)
}

fn entries(reader: &mut Reader, value: &Value) -> PodPools {
    let mut all = Vec::new();
    if value.is_null() {
        reader.fault(String::new(), "it must be a list of interfaces and their pools".to_owned());
    }
    let items = reader.items("", value, "interfaces and their pools", INTERFACES_MAX).unwrap_or_default();
    for (n, item) in items.iter().enumerate() {
        let at = format!("[{n}]");
        let keys = ["interface", "ipv4", "ipv6", "cleangateway"];
        let Some([name, ipv4, ipv6, clean]) = reader.fields(&at, item, keys) else { continue };
        let name = self::name(reader, &at, name);
        let names = both(reader, &at, ipv4, ipv6);
        let clean_gateway = match clean {
            Value::Null => false,
            Value::Bool(clean) => *clean,
            other => {
                let text = format!("it must be true or false, not {}", Quoted(&other.to_string()));
                reader.fault(format!("{at}.cleangateway"), text);
                false
            }
        };
        if let Some(name) = &name
            && all.iter().any(|(other, _)| other == &Some(name.clone()))
        {
            reader.fault(format!("{at}.interface"), format!("{} is there more than once", Quoted(name)));
        }
        all.push((name, InterfacePools { names, clean_gateway }));
    }
    if items.is_empty() && !value.is_null() {
        reader.fault(String::new(), "it names no pool; remove the annotation, or add an entry".to_owned());
    }
    let named: Vec<_> = all.iter().filter_map(|(name, pools)| Some((name.clone()?, pools.clone()))).collect();
    if named.is_empty() {
        return PodPools::InOrder(all.into_iter().map(|(_, pools)| pools).collect());
    }
    if named.len() < all.len() {
        let text = "some entries name their interface and others do not; name it in all, or in none";
        reader.fault(String::new(), text.to_owned());
    }
    PodPools::Named(named)
}

/// The name of an interface; left out, or empty as earlier systems write it, is none.
fn name(reader: &mut Reader, at: &str, value: &Value) -> Option<String> {
    let name = match value {
        Value::Null => return None,
        Value::String(name) => name,
        other => {
            let text = format!("it must be the name of an interface, not {}", Quoted(&other.to_string()));
            reader.fault(format!("{at}.interface"), text);
            return None;
        }
    };
    if name.is_empty() {
        return None;
    }
    if let Err(error) = interface::check(name) {
        reader.fault(format!("{at}.interface"), format!("{}: {error}", Quoted(name)));
    }
    Some(name.clone())
}

fn both(reader: &mut Reader, at: &str, ipv4: &Value, ipv6: &Value) -> Names {
    let dot = if at.is_empty() { "" } else { "." };
    let said = reader.faults();
    let names = Names {
        ipv4: names::list(reader, &format!("{at}{dot}ipv4"), ipv4),
        ipv6: names::list(reader, &format!("{at}{dot}ipv6"), ipv6),
    };
    if names.is_empty() && reader.faults() == said {
        reader.fault(at.to_owned(), "it names no pool; name some in ipv4 or ipv6".to_owned());
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(pools: &InterfacePools) -> [Vec<String>; 2] {
        [&pools.names.ipv4, &pools.names.ipv6].map(|names| names.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn interfaces_are_found_by_name() {
        let read = pod_pools(
            r#"[{"interface":"eth0","ipv4":["a","b-*"],"ipv6":null},{"interface":"net1","IPv6":["c"],"cleanGateway":true}]"#,
        );
        let read = read.expect("legal");
        assert_eq!(names(read.of("eth0", 7).expect("there")), [vec!["a".to_owned(), "b-*".to_owned()], vec![]]);
        let second = read.of("net1", 0).expect("there");
        assert_eq!((names(second), second.clean_gateway), ([vec![], vec!["c".to_owned()]], true));
        assert_eq!(read.of("eth1", 0), None);
    }

    #[test]
    fn without_names_the_order_counts() {
        let read = pod_pools(r#"[{"ipv4":["a"]},{"interface":"","ipv4":["b"]}]"#).expect("legal");
        assert_eq!(names(read.of("eth0", 0).expect("there"))[0], ["a"]);
        assert_eq!(names(read.of("net1", 1).expect("there"))[0], ["b"]);
        assert_eq!(read.of("net2", 2), None);
    }

    #[test]
    fn each_fault_has_its_field_and_its_text() {
        for (text, wanted) in [
            ("", "\"\" is not JSON: EOF"),
            ("null", "it must be a list of interfaces"),
            ("[]", "it names no pool; remove the annotation"),
            ("{}", "it must be a list of interfaces and their pools, not \"{}\""),
            ("[5]", "[0]: it must be a map with interface, ipv4, ipv6, cleangateway, not \"5\""),
            (r#"[{"interface":"eth0"}]"#, "[0]: it names no pool; name some in ipv4 or ipv6"),
            (r#"[{"ipv4":"a"}]"#, "[0].ipv4: it must be a list of names of IPPools, not \"\\\"a\\\"\""),
            (r#"[{"ipv4":["a",5]}]"#, "[0].ipv4[1]: it must be the name of an IPPool, in quotes"),
            (r#"[{"ipv4":["A"]}]"#, "[0].ipv4[0]: \"A\" is not the name of an IPPool"),
            (r#"[{"ipv4":["a["]}]"#, "[0].ipv4[0]: \"a[\" is not a pattern"),
            (r#"[{"ipv4":["a"],"ip6":["b"]}]"#, "[0]: \"ip6\" is not a known key; known here: interface, ipv4"),
            (r#"[{"ipv4":["a"],"IPV4":["b"]}]"#, "[0]: ipv4 is there more than once"),
            (r#"[{"interface":5,"ipv4":["a"]}]"#, "[0].interface: it must be the name of an interface, not \"5\""),
            (r#"[{"interface":"a b","ipv4":["a"]}]"#, "[0].interface: \"a b\": an interface name must not contain"),
            (
                r#"[{"interface":"a","ipv4":["a"]},{"interface":"a","ipv4":["b"]}]"#,
                "[1].interface: \"a\" is there more than once",
            ),
            (r#"[{"interface":"a","ipv4":["a"]},{"ipv4":["b"]}]"#, "name it in all, or in none"),
            (r#"[{"ipv4":["a"],"cleangateway":"yes"}]"#, "[0].cleangateway: it must be true or false"),
        ] {
            let said = pod_pools(text).expect_err(text).to_string();
            let start = "wrong input, invalid format of Pod annotation 'ipam.spidernet.io/ippools': ";
            let rest = said.strip_prefix(start).expect(&said);
            assert!(rest.starts_with(wanted) || rest.ends_with(wanted), "{text}: {said}");
        }
    }

    #[test]
    fn one_list_for_all_interfaces() {
        let read = pod_pool(r#"{"ipv4":["a"],"ipv6":["b?"]}"#).expect("legal");
        assert!(matches!(&read.ipv6[..], [names::PoolName::Pattern(_)]));
        for (text, wanted) in [
            (r#"{"interface":"eth0","ipv4":["a"]}"#, "\"interface\" is not a known key"),
            ("{}", "it names no pool; name some in ipv4 or ipv6"),
            ("[]", "it must be a map with ipv4, ipv6, not \"[]\""),
        ] {
            let said = pod_pool(text).expect_err(text).to_string();
            assert!(
                said.starts_with(&format!(
                    "wrong input, invalid format of Pod annotation 'ipam.spidernet.io/ippool': {wanted}"
                )),
                "{said}"
            );
        }
    }

    #[test]
    fn what_is_long_is_bounded() {
        let many = format!(r#"{{"ipv4":[{}"a"]}}"#, "\"a\",".repeat(300));
        assert!(
            pod_pool(&many).expect_err("too many").to_string().ends_with("ipv4: it has 301 entries, more than 256")
        );
        let long = format!(r#"{{"ipv4":["{}"]}}"#, "A".repeat(70_000));
        assert!(pod_pool(&long).expect_err("too long").to_string().len() < 200);
        let faults = format!(r#"{{"ipv4":[{}"A"]}}"#, "\"A\",".repeat(200));
        assert!(pod_pool(&faults).expect_err("many faults").to_string().ends_with("; and 197 more"));
        let deep = "[".repeat(10_000);
        assert!(pod_pools(&deep).expect_err("deep").to_string().len() < 300);
    }
}
