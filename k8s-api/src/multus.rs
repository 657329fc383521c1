//! The two annotations in which pods name their networks, read as Multus v4 reads them.
//!
//! Source: `parsePodNetworkAnnotation` of Multus: JSON as soon as one of `[`, `{` or `"` occurs, else a list with commas.
//! A test feeds one corpus to both readers. Where Multus crashes (`[null]`, an empty default network), this is an error.

mod merge;

use crate::Quoted;
use crate::syntax;
pub use merge::with;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use std::fmt;
use std::net::IpAddr;

/// The pod's further networks.
pub const NETWORKS: &str = "k8s.v1.cni.cncf.io/networks";
/// The network of the pod's first interface.
pub const DEFAULT_NETWORK: &str = "v1.multus-cni.io/default-network";

/// One mention of a network.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// Namespace of the attachment.
    pub namespace: String,
    /// Its name; Multus does not check it in JSON, so it may be one that no object can have.
    pub name: String,
    /// Interface in the pod; empty if Multus chooses.
    pub interface: String,
}

impl Reference {
    /// Whether an object can have this namespace and name at all.
    #[must_use]
    pub fn is_possible(&self) -> bool {
        self.namespace.len() <= syntax::NAME_MAX
            && syntax::is_label(&self.namespace)
            && syntax::is_subdomain(&self.name)
    }
}

/// Multus refuses the annotation, and the pod would not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidNetworks {
    /// No text at all.
    #[error("it is empty")]
    Empty,
    /// JSON that is none, or not a list of networks.
    #[error("{} is not a JSON list of networks: {error}", Quoted(text))]
    Json {
        /// The whole.
        text: String,
        /// What the reader says.
        error: String,
    },
    /// More than one slash or at sign.
    #[error("{} is not of the form [namespace/]name[@interface]", Quoted(.0))]
    Shape(String),
    /// Not a DNS label.
    #[error("{} must be lower-case letters, digits and inner dashes", Quoted(.0))]
    Label(String),
    /// Not a name of an interface.
    #[error("{} is not an interface name: at most 15 bytes, no blanks, no '/'", Quoted(.0))]
    Interface(String),
    /// A field of one network.
    #[error("{} is not {wanted}", Quoted(text))]
    Field {
        /// What is there.
        text: String,
        /// What belongs there.
        wanted: &'static str,
    },
    /// More than an API server lets annotations be.
    #[error("it has {0} bytes, and all annotations together may have {BYTES_MAX}")]
    TooLong(usize),
    /// More than any node carries.
    #[error("it names more than {NETWORKS_MAX} networks")]
    TooMany,
    /// A pod has one first interface.
    #[error("it names {0} networks, and a pod has one default network")]
    SeveralDefaults(usize),
    /// A list with commas has no way of writing the name.
    #[error("a list with commas cannot name {0}, which has a dot; write the annotation as JSON")]
    Dot(String),
}

/// Most bytes of all annotations of an object (source: apimachinery `TotalAnnotationSizeLimitB`). An API server checks it
/// after its webhooks.
const BYTES_MAX: usize = 256 * 1024;
/// Most networks of one pod.
const NETWORKS_MAX: usize = 1024;

/// Reads the value of [`NETWORKS`]. An empty one names nothing.
pub fn networks(text: &str, pod_namespace: &str) -> Result<Vec<Reference>, InvalidNetworks> {
    if text.is_empty() { Ok(Vec::new()) } else { read(text, pod_namespace) }
}

/// Reads the value of [`DEFAULT_NETWORK`]. A bare name is looked up where Multus lives, not where the pod does.
pub fn default_network(text: &str, multus_namespace: &str) -> Result<Reference, InvalidNetworks> {
    let mut found = read(text, multus_namespace)?;
    match (found.pop(), found.len()) {
        (Some(only), 0) => Ok(only),
        (Some(_), more) => Err(InvalidNetworks::SeveralDefaults(more + 1)),
        (None, _) => Err(InvalidNetworks::Empty),
    }
}

fn read(text: &str, namespace: &str) -> Result<Vec<Reference>, InvalidNetworks> {
    if text.is_empty() {
        return Err(InvalidNetworks::Empty);
    }
    if text.len() > BYTES_MAX {
        return Err(InvalidNetworks::TooLong(text.len()));
    }
    let mut references = if text.contains(['[', '{', '"']) { json(text)? } else { list(text)? };
    for reference in references.iter_mut().filter(|reference| reference.namespace.is_empty()) {
        namespace.clone_into(&mut reference.namespace);
    }
    Ok(references)
}

/// `[namespace/]name[@interface]`, with commas between. Multus lets empty items pass and fails on them later.
fn list(text: &str) -> Result<Vec<Reference>, InvalidNetworks> {
    if text.split(',').nth(NETWORKS_MAX).is_some() {
        return Err(InvalidNetworks::TooMany);
    }
    text.split(',').map(|item| item_of_list(item.trim())).collect()
}

fn item_of_list(item: &str) -> Result<Reference, InvalidNetworks> {
    let shape = || InvalidNetworks::Shape(item.to_owned());
    let (namespace, rest) = match item.split_once('/') {
        Some((_, rest)) if rest.contains('/') => return Err(shape()),
        Some((namespace, rest)) => (namespace.trim(), rest),
        None => ("", item),
    };
    let (name, interface) = match rest.split_once('@') {
        Some((_, interface)) if interface.contains('@') => return Err(shape()),
        Some((name, interface)) => (name.trim(), interface.trim()),
        None => (rest.trim(), ""),
    };
    if let Some(bad) = [namespace, name].into_iter().find(|part| !part.is_empty() && !syntax::is_label(part)) {
        return Err(InvalidNetworks::Label(bad.to_owned()));
    }
    let blank_or_slash = |c: char| matches!(c, ' ' | '\t' | '\n' | '\u{b}' | '\u{c}' | '\r' | '/');
    if interface.len() > 15 || interface.contains(blank_or_slash) {
        return Err(InvalidNetworks::Interface(interface.to_owned()));
    }
    Ok(Reference { namespace: namespace.to_owned(), name: name.to_owned(), interface: interface.to_owned() })
}

/// The fields of a JSON object in their order: Go takes names in any case, and the last of several.
struct Fields(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with the name of a network")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

fn json(text: &str) -> Result<Vec<Reference>, InvalidNetworks> {
    let elements: Vec<Fields> = serde_json::from_str(text)
        .map_err(|error| InvalidNetworks::Json { text: text.to_owned(), error: error.to_string() })?;
    if elements.len() > NETWORKS_MAX {
        return Err(InvalidNetworks::TooMany);
    }
    elements.into_iter().map(element).collect()
}

/// One network. Every field is checked as Multus does, although three of them are enough to know what it is.
fn element(Fields(fields): Fields) -> Result<Reference, InvalidNetworks> {
    let mut element = Reference { namespace: String::new(), name: String::new(), interface: String::new() };
    let mut deprecated = String::new();
    let (mut mac, mut guid, mut ips) = (String::new(), String::new(), Vec::new());
    for (key, value) in &fields {
        match key.to_lowercase().as_str() {
            "name" => set(&mut element.name, value)?,
            "namespace" => set(&mut element.namespace, value)?,
            "interface" => set(&mut element.interface, value)?,
            "interfacerequest" => set(&mut deprecated, value)?,
            "mac" => set(&mut mac, value)?,
            "infiniband-guid" => set(&mut guid, value)?,
            "deviceid" => set(&mut String::new(), value)?,
            "ips" => ips = texts(value)?,
            "default-route" => addresses(value)?,
            "cni-args" if !value.is_object() => not_null(value, "an object")?,
            "bandwidth" => integers(value, &["ingressrate", "ingressburst", "egressrate", "egressburst"], &[])?,
            "portmappings" => {
                for mapping in list_of(value, "a list of port mappings")? {
                    integers(mapping, &["hostport", "containerport"], &["protocol", "hostip"])?;
                }
            }
            _ => {}
        }
    }
    for address in [mac, guid] {
        if !address.is_empty() && !is_hardware_address(&address) {
            return Err(InvalidNetworks::Field { text: address, wanted: "a MAC address" });
        }
    }
    if let Some(bad) = ips.into_iter().find(|ip| !is_address_or_subnet(ip)) {
        return Err(InvalidNetworks::Field { text: bad, wanted: "an address or a subnet" });
    }
    if element.interface.is_empty() {
        element.interface = deprecated;
    }
    Ok(element)
}

fn wrong(value: &Value, wanted: &'static str) -> InvalidNetworks {
    InvalidNetworks::Field { text: value.to_string(), wanted }
}

/// `null` leaves a field as it is, as in Go.
fn not_null(value: &Value, wanted: &'static str) -> Result<(), InvalidNetworks> {
    if value.is_null() { Ok(()) } else { Err(wrong(value, wanted)) }
}

fn set(field: &mut String, value: &Value) -> Result<(), InvalidNetworks> {
    match value {
        Value::String(text) => text.clone_into(field),
        other => not_null(other, "a text")?,
    }
    Ok(())
}

fn list_of<'v>(value: &'v Value, wanted: &'static str) -> Result<&'v [Value], InvalidNetworks> {
    match value {
        Value::Array(items) => Ok(items),
        other => not_null(other, wanted).map(|()| [].as_slice()),
    }
}

fn texts(value: &Value) -> Result<Vec<String>, InvalidNetworks> {
    let text = |item: &Value| {
        let mut text = String::new();
        set(&mut text, item).map(|()| text)
    };
    list_of(value, "a list of texts")?.iter().map(text).collect()
}

/// A list of addresses, where an empty text is none.
fn addresses(value: &Value) -> Result<(), InvalidNetworks> {
    match texts(value)?.into_iter().find(|ip| !ip.is_empty() && ip.parse::<IpAddr>().is_err()) {
        Some(text) => Err(InvalidNetworks::Field { text, wanted: "an address" }),
        None => Ok(()),
    }
}

fn integers(value: &Value, numbers: &[&str], strings: &[&str]) -> Result<(), InvalidNetworks> {
    let Value::Object(fields) = value else { return not_null(value, "an object") };
    for (key, value) in fields {
        let key = key.to_lowercase();
        if numbers.contains(&key.as_str()) && value.as_i64().is_none() {
            not_null(value, "a whole number")?;
        }
        if strings.contains(&key.as_str()) {
            set(&mut String::new(), value)?;
        }
    }
    Ok(())
}

/// 6, 8 or 20 bytes in one of the three ways of writing them (source: Go `net.ParseMAC`).
fn is_hardware_address(text: &str) -> bool {
    let groups = |separator: char, digits: usize| -> Option<usize> {
        let parts: Vec<&str> = text.split(separator).collect();
        let right = |part: &&str| part.len() == digits && part.bytes().all(|b| b.is_ascii_hexdigit());
        parts.iter().all(right).then_some(parts.len() * digits / 2)
    };
    let bytes = [(':', 2), ('-', 2), ('.', 4)].into_iter().find_map(|(separator, digits)| groups(separator, digits));
    matches!(bytes, Some(6 | 8 | 20))
}

fn is_address_or_subnet(text: &str) -> bool {
    let Some((address, prefix)) = text.split_once('/') else { return text.parse::<IpAddr>().is_ok() };
    let longest = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    let digits = !prefix.is_empty() && prefix.bytes().all(|b| b.is_ascii_digit());
    digits && prefix.parse::<u32>().is_ok_and(|bits| bits <= longest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Vec<String>, InvalidNetworks> {
        let shown = |Reference { namespace, name, interface }| match interface.as_str() {
            "" => format!("{namespace}/{name}"),
            interface => format!("{namespace}/{name}@{interface}"),
        };
        Ok(networks(text, "team-a")?.into_iter().map(shown).collect())
    }

    #[test]
    fn equal_meaning_reads_equal() {
        for (text, wanted) in [
            ("a", &["team-a/a"][..]),
            ("a,b", &["team-a/a", "team-a/b"]),
            (" a , b ", &["team-a/a", "team-a/b"]),
            ("ns/a@net1", &["ns/a@net1"]),
            ("\n a,\n\tb\n", &["team-a/a", "team-a/b"]),
            (r#"[{"name":"a"}]"#, &["team-a/a"]),
            (
                r#"[{"name":"a","namespace":"ns","interface":"net1","ips":["10.0.0.1","10.0.0.0/8"],"mac":"02:00:00:00:00:01","cni-args":{"x":1},"unknown":[1]}]"#,
                &["ns/a@net1"],
            ),
            (r#"[{"NAME":"a","Namespace":null,"interfaceRequest":"net3"}]"#, &["team-a/a@net3"]),
            (r#"[{"name":"other/vlan1"}]"#, &["team-a/other/vlan1"]),
            ("", &[]),
        ] {
            assert_eq!(
                read(text).as_deref(),
                Ok(&*wanted.iter().map(ToString::to_string).collect::<Vec<_>>()),
                "{text}"
            );
        }
    }

    #[test]
    fn what_multus_refuses_is_refused_with_a_part_of_it() {
        for text in [
            r#"[{ "name": "a" "#,
            "[null]",
            r#"[{"name":5}]"#,
            r#""a""#,
            r#"{"name":"a"}"#,
            "a@b@c",
            "a/b/c",
            "A",
            "a_b",
            "💥",
            "a@0123456789abcdef",
            "a@b/c",
            r#"[{"name":"a","mac":"02"}]"#,
            r#"[{"name":"a","ips":["x"]}]"#,
            r#"[{"name":"a","ips":["10.0.0.0/33"]}]"#,
            r#"[{"name":"a","portMappings":[{"hostPort":1.5}]}]"#,
        ] {
            let error = read(text).expect_err(text).to_string();
            assert!(error.chars().count() < 300, "{error}");
        }
        let many = |items: usize| vec!["a"; items].join(",");
        assert_eq!(read(&many(NETWORKS_MAX)).map(|read| read.len()), Ok(NETWORKS_MAX));
        assert_eq!(read(&many(NETWORKS_MAX + 1)), Err(InvalidNetworks::TooMany));
        assert_eq!(read(&many(BYTES_MAX)), Err(InvalidNetworks::TooLong(2 * BYTES_MAX - 1)));
        assert_eq!(read(&format!("[{}]", vec!["{}"; NETWORKS_MAX + 1].join(","))), Err(InvalidNetworks::TooMany));
    }

    #[test]
    fn a_default_network_is_one_and_lives_with_multus() {
        let default =
            |text| default_network(text, "kube-system").map(|found| format!("{}/{}", found.namespace, found.name));
        assert_eq!(default("a").as_deref(), Ok("kube-system/a"));
        assert_eq!(default("ns/a").as_deref(), Ok("ns/a"));
        assert_eq!(default("a,b"), Err(InvalidNetworks::SeveralDefaults(2)));
        assert_eq!(default(""), Err(InvalidNetworks::Empty));
        assert_eq!(default("[]"), Err(InvalidNetworks::Empty));
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(text in "\\PC{0,60}") {
            let _ = read(&text);
        }

        #[test]
        fn no_json_is_too_odd(text in r#"\[(\{("(name|namespace|ips|mac|cni-args|interface)":("[a-z/@]{0,4}"|[0-9]|null|\[\]|\{\}),?){0,3}\},?){0,3}\]"#) {
            let _ = read(&text);
        }

        #[test]
        fn both_grammars_agree(names in prop::collection::vec("[a-z][a-z0-9-]{0,8}[a-z0-9]", 1..5)) {
            let objects: Vec<Value> = names.iter().map(|name| serde_json::json!({ "name": name })).collect();
            prop_assert_eq!(read(&names.join(",")), read(&Value::from(objects).to_string()));
        }
    }
}
