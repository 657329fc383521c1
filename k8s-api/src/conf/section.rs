//! Reads one map of the tree key by key and collects what is wrong on the way.
//!
//! A reader asks for each key that it knows and then calls [`Section::end`], which reports the keys that nobody asked
//! for. So the list of known keys is the code that reads them.

use super::Faults;
use super::fault::repeated;
use super::yaml::{Key, Node, Value};

/// One map at one path.
pub(super) struct Section<'t, 'f> {
    pub path: String,
    pub line: u64,
    entries: Vec<Entry<'t>>,
    known: Vec<&'static str>,
    faults: &'f mut Faults,
}

struct Entry<'t> {
    key: &'t Key,
    node: &'t Node,
    read: bool,
}

/// A value with what is needed to complain about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found<T> {
    pub value: T,
    pub path: String,
    pub line: u64,
}

/// What stands where a number belongs.
pub(super) enum Number {
    Absent,
    Faulty,
    Whole(Found<i128>),
}

impl<'t, 'f> Section<'t, 'f> {
    /// The whole document.
    pub(super) fn root(tree: &'t Node, faults: &'f mut Faults) -> Option<Self> {
        Self::new(String::new(), tree, faults)
    }

    /// A map, or nothing and a fault. An empty value counts as an empty map, as in Helm's output.
    fn new(path: String, node: &'t Node, faults: &'f mut Faults) -> Option<Self> {
        let entries = match &node.value {
            Value::Map(entries) => entries.as_slice(),
            Value::Null => &[],
            other => {
                let what = if path.is_empty() { "the file" } else { path.as_str() };
                faults.push(node.line, format!("{what} must be a map, not {}", other.kind()));
                return None;
            }
        };
        let entries = entries.iter().map(|(key, node)| Entry { key, node, read: false }).collect();
        Some(Self { path, line: node.line, entries, known: Vec::new(), faults })
    }

    /// Path of `key` here, spelt as in the chart's values, which is where people write it.
    pub(super) fn path_of(&self, key: &str) -> String {
        match (self.path.as_str(), key) {
            ("", "agent") => "spiderpoolAgent".to_owned(),
            ("", key) => key.to_owned(),
            (path, key) => format!("{path}.{key}"),
        }
    }

    /// A nested map.
    pub(super) fn section(&mut self, key: &'static str) -> Option<Section<'t, '_>> {
        let path = self.path_of(key);
        let node = self.take(key)?;
        Section::new(path, node, self.faults)
    }

    /// `true` or `false`.
    pub(super) fn flag(&mut self, key: &'static str) -> Option<bool> {
        self.flag_found(key).map(|found| found.value)
    }

    /// As [`Section::flag`], for a reader that may have to complain about it.
    pub(super) fn flag_found(&mut self, key: &'static str) -> Option<Found<bool>> {
        let path = self.path_of(key);
        let node = self.take(key)?;
        match &node.value {
            Value::Null => None,
            Value::Bool(value) => Some(Found { value: *value, path, line: node.line }),
            other => {
                self.fault(node.line, format!("{path} must be true or false, not {}", other.describe()));
                None
            }
        }
    }

    /// A whole number. Helm writes numbers of a million and more as `1e+06`; that is one too.
    pub(super) fn number(&mut self, key: &'static str) -> Number {
        let path = self.path_of(key);
        let Some(node) = self.take(key) else { return Number::Absent };
        let value = match &node.value {
            Value::Null => return Number::Absent,
            Value::Integer(value) => Some(*value),
            Value::Float(value) => whole(*value),
            _ => None,
        };
        if let Some(value) = value {
            return Number::Whole(Found { value, path, line: node.line });
        }
        self.fault(node.line, format!("{path} must be a whole number, not {}", node.value.describe()));
        Number::Faulty
    }

    /// A text.
    pub(super) fn text(&mut self, key: &'static str) -> Option<Found<&'t str>> {
        let path = self.path_of(key);
        let node = self.take(key)?;
        self.as_text(node, path)
    }

    /// A list of texts.
    pub(super) fn texts(&mut self, key: &'static str) -> Vec<Found<&'t str>> {
        self.list(key).into_iter().filter_map(|item| self.as_text(item.value, item.path)).collect()
    }

    /// A list of maps.
    pub(super) fn sections(&mut self, key: &'static str, mut read: impl FnMut(Section<'t, '_>)) {
        for item in self.list(key) {
            if let Some(section) = Section::new(item.path, item.value, self.faults) {
                read(section);
            }
        }
    }

    /// Entries that nobody has asked for yet; asking for them now.
    pub(super) fn rest(&mut self) -> Vec<(&'t Key, &'t Node)> {
        let unread = self.entries.iter_mut().filter(|entry| !entry.read);
        unread
            .map(|entry| {
                entry.read = true;
                (entry.key, entry.node)
            })
            .collect()
    }

    /// Every key that the section knows was asked for: what is left is a mistake.
    pub(super) fn end(mut self) {
        self.refuse_rest();
    }

    /// As [`Section::end`], for a reader that has more to say after it.
    pub(super) fn refuse_rest(&mut self) {
        for (Key { line, text: key }, _) in self.rest() {
            let known = self.known.join(", ");
            let hint = match nearest(key, &self.known) {
                Some(near) => format!("; did you mean {near}?"),
                None if key == "spiderpoolAgent" => "; here it is agent".to_owned(),
                None if known.len() <= KNOWN_SHOWN => format!("; known here: {known}"),
                None => String::new(),
            };
            let text = format!("{} is not a known key{hint}", self.path_of(&repeated(key)));
            self.fault(*line, text);
        }
    }

    /// Whether the map has this key, whatever its value.
    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.key.text == key)
    }

    /// Whether the map has this key with a list that is not empty.
    pub(super) fn has_entries(&self, key: &str) -> bool {
        let listed = |entry: &Entry<'_>| matches!(&entry.node.value, Value::List(items) if !items.is_empty());
        self.entries.iter().any(|entry| entry.key.text == key && listed(entry))
    }

    /// Begins the text of each fault from the `from`th on with `words`.
    pub(super) fn preface(&mut self, from: usize, words: &str) {
        self.faults.preface(from, words);
    }

    /// How many faults there are so far, anywhere.
    pub(super) fn faults(&self) -> usize {
        self.faults.all().len()
    }

    /// Reports something wrong in this section.
    pub(super) fn fault(&mut self, line: u64, text: String) {
        self.faults.push(line, text);
    }

    /// A node as text, where the value was taken by [`Section::rest`].
    pub(super) fn as_text(&mut self, node: &'t Node, path: String) -> Option<Found<&'t str>> {
        let repair = match &node.value {
            Value::Text(value) => return Some(Found { value, path, line: node.line }),
            Value::Null => return None,
            Value::List(_) | Value::Map(_) => "",
            // Not with the value: `1.10` was read as 1.1, and the text that was meant is gone.
            _ => "; put the value in quotes",
        };
        self.fault(node.line, format!("{path} must be a text, not {}{repair}", node.value.kind()));
        None
    }

    fn list(&mut self, key: &'static str) -> Vec<Found<&'t Node>> {
        let path = self.path_of(key);
        let Some(node) = self.take(key) else { return Vec::new() };
        match &node.value {
            Value::Null => Vec::new(),
            Value::List(items) => {
                let mut found = Vec::new();
                for (n, item) in items.iter().enumerate() {
                    let path = format!("{path}[{n}]");
                    if item.value == Value::Null {
                        // Left out silently it would widen a rule: no pattern at all selects every NIC.
                        self.fault(item.line, format!("{path} is empty; remove it"));
                    } else {
                        found.push(Found { value: item, path, line: item.line });
                    }
                }
                found
            }
            other => {
                self.fault(node.line, format!("{path} must be a list, not {}", other.kind()));
                Vec::new()
            }
        }
    }

    fn take(&mut self, key: &'static str) -> Option<&'t Node> {
        self.known.push(key);
        let entry = self.entries.iter_mut().find(|entry| entry.key.text == key)?;
        entry.read = true;
        Some(entry.node)
    }
}

/// Longer lists of known keys would crowd out the other faults.
const KNOWN_SHOWN: usize = 120;

/// A float without a fraction, within the range where floats are exact.
fn whole(value: f64) -> Option<i128> {
    if value.fract() != 0.0 || value.abs() >= 9e15 {
        return None;
    }
    format!("{value:.0}").parse().ok()
}

/// The known key that a misspelt one most likely stands for: at most a third of its letters differ.
pub(super) fn nearest<'k>(key: &str, known: &[&'k str]) -> Option<&'k str> {
    let lower = key.to_lowercase();
    let scored = known.iter().map(|k| (distance(&lower, &k.to_lowercase()), *k));
    scored.min().filter(|(distance, _)| *distance <= key.len().div_ceil(3)).map(|(_, k)| k)
}

/// Levenshtein distance, one row at a time.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, cb) in row.iter_mut().skip(1).zip(b.chars()) {
            let best = (*cell + 1).min(left + 1).min(diagonal + usize::from(ca != cb));
            diagonal = std::mem::replace(cell, best);
            left = best;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}
