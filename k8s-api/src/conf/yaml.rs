//! YAML text to a tree that remembers lines.

use super::Faults;
use super::fault::repeated;
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;
use std::fmt;

/// A value and the line where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub line: u64,
    pub value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

/// A key and the line where it stands; its value may begin on a later one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Key {
    pub line: u64,
    pub text: String,
}

impl Value {
    /// How a person would call this kind of value. Never the value: it may be a URL with a password, in a wrong place.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "true or false",
            Self::Integer(_) | Self::Float(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
        }
    }

    /// The value where it is a scalar, for places where no secret belongs.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Bool(value) => value.to_string(),
            Self::Integer(value) => value.to_string(),
            Self::Float(value) => value.to_string(),
            Self::Text(value) => format!("the text {:?}", repeated(value).trim_matches('"')),
            Self::Null | Self::List(_) | Self::Map(_) => self.kind().to_owned(),
        }
    }
}

/// A few lines of nested aliases unfold to millions of values; a configuration of people stays far below this.
const REPLAYED_EVENTS_MAX: usize = 10_000;

/// Duplicate keys, tabs and the like are faults of the text itself. So is a text without any value: whoever empties the
/// file does not mean the defaults.
pub(super) fn parse(text: &str) -> Result<Node, Faults> {
    let options = serde_saphyr::options! {
        // `yes` and `on` are texts, as label values often are.
        strict_booleans: true,
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: REPLAYED_EVENTS_MAX },
    };
    let parsed: Result<Option<Node>, _> = serde_saphyr::from_str_with_options(text, options);
    let mut faults = Faults::default();
    match parsed {
        Ok(Some(Node { value: Value::Null, line })) => faults.push(line, EMPTY.to_owned()),
        Ok(Some(node)) => return Ok(node),
        Ok(None) => faults.push(1, EMPTY.to_owned()),
        Err(error) => {
            let line = error.location().map_or(0, |location| location.line());
            faults.push(line, format!("not valid YAML: {}", reason(&error.without_snippet().to_string())));
        }
    }
    Err(faults)
}

const EMPTY: &str = "the file is empty; write {} for a configuration without anything";

/// The parser's words, without the position that is said already, and in other words where they speak to programmers.
fn reason(text: &str) -> String {
    const PLAIN: [(&str, &str); 7] = [
        ("multiple YAML documents", "more than one document; remove the lines with ---"),
        ("budget breached", "nested too deeply, or too large"),
        ("alias replay limit", "too many aliases"),
        ("recursive references", "an alias of itself"),
        ("null into string", "a key without a name"),
        ("non-finite", "a number that is too large or none; a text needs quotes"),
        ("expected string scalar", "a key that is no text; is this a template that was not rendered?"),
    ];
    if let Some((_, plain)) = PLAIN.iter().find(|(words, _)| text.contains(words)) {
        return (*plain).to_owned();
    }
    let line = text.lines().next().unwrap_or_default();
    let (said, _) = line.rsplit_once(" at line ").unwrap_or((line, ""));
    match said.strip_prefix("duplicate mapping key: ").and_then(|rest| rest.split_once(',')) {
        Some((key, _)) => format!("the key {} stands twice in one map", repeated(key)),
        None => said.chars().take(200).collect(),
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Value>::deserialize(deserializer)?;
        Ok(Self { line: spanned.referenced.line(), value: spanned.value })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        Value::deserialize(deserializer)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Integer(value.into()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Integer(value.into()))
    }

    fn visit_i128<E: de::Error>(self, value: i128) -> Result<Value, E> {
        Ok(Value::Integer(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Value::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, node)) = map.next_entry::<Spanned<String>, Node>()? {
            entries.push((Key { line: key.referenced.line(), text: key.value }, node));
        }
        Ok(Value::Map(entries))
    }
}
