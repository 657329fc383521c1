//! Pools that a namespace names for its pods.

use super::fault::{InvalidAnnotation, Owner};
use super::names::{self, Names, PoolName};
use super::reader::Reader;
use crate::names::NAMESPACE_POOLS;
use std::collections::BTreeMap;

/// Reads both of [`NAMESPACE_POOLS`], each `["pool"]`; one that is absent, or empty, names none.
pub fn namespace_pools(annotations: &BTreeMap<String, String>) -> Result<Names, InvalidAnnotation> {
    let [ipv4, ipv6] = NAMESPACE_POOLS;
    Ok(Names { ipv4: one(annotations, ipv4)?, ipv6: one(annotations, ipv6)? })
}

fn one(annotations: &BTreeMap<String, String>, key: &'static str) -> Result<Vec<PoolName>, InvalidAnnotation> {
    let Some(text) = annotations.get(key).filter(|text| !text.trim().is_empty()) else { return Ok(Vec::new()) };
    let mut reader = Reader::new(Owner::Namespace, key);
    let value = reader.json(text);
    let names = value.map(|value| names::list(&mut reader, "", &value));
    reader.end(names.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(ipv4: &str) -> Result<Names, String> {
        let annotations = BTreeMap::from([(NAMESPACE_POOLS[0].to_owned(), ipv4.to_owned())]);
        namespace_pools(&annotations).map_err(|error| error.to_string())
    }

    #[test]
    fn each_family_has_its_list() {
        assert_eq!(read(r#"["a","b*"]"#).expect("legal").ipv4.len(), 2);
        for none in ["", " ", "[]", "null"] {
            assert_eq!(read(none), Ok(Names::default()));
        }
        let start = "wrong input, invalid format of Namespace annotation 'ipam.spidernet.io/default-ipv4-ippool': ";
        assert!(read("a").expect_err("no JSON").starts_with(&format!("{start}\"a\" is not JSON")));
        assert!(read(r#"["A"]"#).expect_err("no name").starts_with(&format!("{start}[0]: \"A\" is not the name")));
        assert!(read("{}").expect_err("no list").starts_with(&format!("{start}it must be a list of names")));
    }
}
