//! Reads the JSON of an annotation, and collects what is wrong on the way.

use super::fault::{Fault, InvalidAnnotation, Owner};
use crate::Quoted;
use serde_json::{Map, Value};

/// All annotations of an object together have at most 256 KiB.
const BYTES_MAX: usize = 64 * 1024;

pub(super) struct Reader {
    owner: Owner,
    annotation: &'static str,
    faults: Vec<Fault>,
}

impl Reader {
    pub(super) fn new(owner: Owner, annotation: &'static str) -> Self {
        Self { owner, annotation, faults: Vec::new() }
    }

    /// The text as JSON; nothing after a fault.
    pub(super) fn json(&mut self, text: &str) -> Option<Value> {
        if text.len() > BYTES_MAX {
            self.fault(String::new(), format!("it has {} bytes, more than the {BYTES_MAX} that are read", text.len()));
            return None;
        }
        match serde_json::from_str(text) {
            Ok(value) => Some(value),
            Err(error) => {
                self.fault(String::new(), format!("{} is not JSON: {error}", Quoted(text)));
                None
            }
        }
    }

    /// A list of at most `most`; `null` is none.
    pub(super) fn items<'v>(&mut self, field: &str, value: &'v Value, what: &str, most: usize) -> Option<&'v [Value]> {
        let text = match value {
            Value::Null => return None,
            Value::Array(items) if items.len() <= most => return Some(items),
            Value::Array(items) => format!("it has {} entries, more than {most}", items.len()),
            other => format!("it must be a list of {what}, not {}", Quoted(&other.to_string())),
        };
        self.fault(field.to_owned(), text);
        None
    }

    /// The values of `keys`, whatever their case; `null` where there is none.
    pub(super) fn fields<'v, const N: usize>(
        &mut self,
        field: &str,
        value: &'v Value,
        keys: [&str; N],
    ) -> Option<[&'v Value; N]> {
        let Value::Object(map) = value else {
            let text = format!("it must be a map with {}, not {}", keys.join(", "), Quoted(&value.to_string()));
            self.fault(field.to_owned(), text);
            return None;
        };
        for key in map.keys().filter(|key| !keys.iter().any(|known| key.eq_ignore_ascii_case(known))) {
            self.fault(
                field.to_owned(),
                format!("{} is not a known key; known here: {}", Quoted(key), keys.join(", ")),
            );
        }
        Some(keys.map(|key| self.one(field, map, key)))
    }

    fn one<'v>(&mut self, field: &str, map: &'v Map<String, Value>, key: &str) -> &'v Value {
        let mut found = map.iter().filter(|(written, _)| written.eq_ignore_ascii_case(key)).map(|(_, value)| value);
        let first = found.next();
        if found.next().is_some() {
            self.fault(field.to_owned(), format!("{key} is there more than once; leave one of them"));
        }
        first.unwrap_or(&Value::Null)
    }

    pub(super) fn fault(&mut self, field: String, text: String) {
        self.faults.push(Fault { field, text });
    }

    /// How many there are so far.
    pub(super) fn faults(&self) -> usize {
        self.faults.len()
    }

    /// What was read, unless something was wrong.
    pub(super) fn end<T>(self, read: T) -> Result<T, InvalidAnnotation> {
        let Self { owner, annotation, faults } = self;
        if faults.is_empty() { Ok(read) } else { Err(InvalidAnnotation { owner, annotation, faults }) }
    }
}
