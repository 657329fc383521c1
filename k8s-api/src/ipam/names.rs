//! Pools as users name them.

use super::reader::Reader;
use crate::Quoted;
use crate::glob::Glob;
use crate::syntax;
use serde_json::Value;
use std::fmt;

/// Longer lists are no choice of a person's, and each name costs a look at every pool.
const MOST: usize = 256;

/// One pool, or all that a pattern covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoolName {
    /// By its name.
    Exact(String),
    /// Those whose names it covers.
    Pattern(Glob),
}

/// Pools of each family, in the order in which they are tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// For IPv4.
    pub ipv4: Vec<PoolName>,
    /// For IPv6.
    pub ipv6: Vec<PoolName>,
}

/// The text is neither a name nor a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// It has a wildcard, but is no pattern.
    #[error("is not a pattern: *, ? and [a-z] are its wildcards")]
    Pattern,
    /// It cannot be the name of an object.
    #[error("is not the name of an IPPool: lower-case letters, digits, inner dashes and dots")]
    Name,
}

impl PoolName {
    /// Reads a name or a pattern.
    pub fn read(text: &str) -> Result<Self, InvalidName> {
        if text.contains(['*', '?', '[', '\\']) {
            return text.parse().map(Self::Pattern).map_err(|_| InvalidName::Pattern);
        }
        if syntax::is_subdomain(text) { Ok(Self::Exact(text.to_owned())) } else { Err(InvalidName::Name) }
    }
}

impl fmt::Display for PoolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(name) => f.write_str(name),
            Self::Pattern(glob) => glob.fmt(f),
        }
    }
}

impl Names {
    /// Whether no pool is named at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ipv4.is_empty() && self.ipv6.is_empty()
    }
}

/// A list of names; `null` is an empty one.
pub(super) fn list(reader: &mut Reader, field: &str, value: &Value) -> Vec<PoolName> {
    let Some(items) = reader.items(field, value, "names of IPPools", MOST) else { return Vec::new() };
    let mut names = Vec::new();
    for (n, item) in items.iter().enumerate() {
        let at = format!("{field}[{n}]");
        match item.as_str().map(|text| (text, PoolName::read(text))) {
            None => reader.fault(at, "it must be the name of an IPPool, in quotes".to_owned()),
            Some((_, Ok(name))) => names.push(name),
            Some((text, Err(error))) => reader.fault(at, format!("{} {error}", Quoted(text))),
        }
    }
    names
}
