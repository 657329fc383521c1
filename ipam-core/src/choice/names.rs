//! Who names pools, and how.

use crate::Family;
use std::fmt;

/// One entry of a list of pools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// A pool by its name.
    Exact(String),
    /// A pattern, and the pools of the family that it covers.
    Pattern {
        /// As written.
        text: String,
        /// In the order of their names.
        pools: Vec<String>,
    },
}

/// Pools that somebody names for an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Where they stand, as users know the place: `Pod annotation 'ipam.spidernet.io/ippools'`.
    pub place: &'static str,
    /// For IPv4, in the order in which they are to be tried.
    pub ipv4: Vec<Named>,
    /// For IPv6.
    pub ipv6: Vec<Named>,
}

impl Source {
    pub(super) fn of(&self, family: Family) -> &[Named] {
        match family {
            Family::V4 => &self.ipv4,
            Family::V6 => &self.ipv6,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ipv4.is_empty() && self.ipv6.is_empty()
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(text) | Self::Pattern { text, .. } => f.write_str(text),
        }
    }
}
