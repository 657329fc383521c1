//! Addresses from one to another.

use crate::address::{Address, Family, InvalidAddress};
use std::fmt;
use std::str::FromStr;

/// Addresses of one family, both ends included: never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Range {
    first: Address,
    last: Address,
}

/// The text is neither an address nor a range of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRange {
    /// One end, or the only one.
    #[error("{0}; write an address or a range, such as 172.91.0.100-172.91.0.120")]
    Address(InvalidAddress),
    /// More than two ends.
    #[error("a range has two ends, such as 172.91.0.100-172.91.0.120")]
    Ends,
    /// IPv4 at one end, IPv6 at the other.
    #[error("both ends must be of one family")]
    Families,
    /// The last one stands before the first.
    #[error("the range is reversed; write {last}-{first}")]
    Reversed {
        /// As written.
        first: Address,
        /// As written.
        last: Address,
    },
}

impl Range {
    /// From `first` to `last`.
    pub fn new(first: Address, last: Address) -> Result<Self, InvalidRange> {
        if first.family() != last.family() {
            Err(InvalidRange::Families)
        } else if first > last {
            Err(InvalidRange::Reversed { first, last })
        } else {
            Ok(Self { first, last })
        }
    }

    /// The lowest address.
    #[must_use]
    pub const fn first(self) -> Address {
        self.first
    }

    /// The highest address.
    #[must_use]
    pub const fn last(self) -> Address {
        self.last
    }

    /// Of which kind its addresses are.
    #[must_use]
    pub const fn family(self) -> Family {
        self.first.family()
    }

    /// Whether `address` lies in it.
    #[must_use]
    pub fn contains(self, address: Address) -> bool {
        (self.first..=self.last).contains(&address)
    }

    /// What both have.
    #[must_use]
    pub fn intersection(self, other: Self) -> Option<Self> {
        Self::new(self.first.max(other.first), self.last.min(other.last)).ok()
    }

    /// How many addresses; of all IPv6 addresses one less than there are.
    #[must_use]
    pub const fn count(self) -> u128 {
        self.last.number().abs_diff(self.first.number()).saturating_add(1)
    }
}

impl From<Address> for Range {
    fn from(only: Address) -> Self {
        Self { first: only, last: only }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last { write!(f, "{}", self.first) } else { write!(f, "{}-{}", self.first, self.last) }
    }
}

impl FromStr for Range {
    type Err = InvalidRange;

    fn from_str(text: &str) -> Result<Self, InvalidRange> {
        let mut ends = text.split('-');
        let end = |text: &str| text.parse::<Address>().map_err(InvalidRange::Address);
        match (ends.next(), ends.next(), ends.next()) {
            (Some(only), None, _) => end(only).map(Self::from),
            (Some(first), Some(last), None) => Self::new(end(first)?, end(last)?),
            _ => Err(InvalidRange::Ends),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read() {
        let count = |text: &str| text.parse::<Range>().map(Range::count);
        assert_eq!(count("172.91.0.100"), Ok(1));
        assert_eq!(count("172.91.0.100-172.91.0.120"), Ok(21));
        assert_eq!(count("fd00::-fd00::ffff"), Ok(65536));
        assert_eq!(count("0.0.0.0-255.255.255.255"), Ok(1 << 32));
        assert_eq!(count("::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), Ok(u128::MAX));
        assert_eq!("10.0.0.1-10.0.0.1".parse::<Range>().expect("a range").to_string(), "10.0.0.1");
    }

    #[test]
    fn what_is_no_range_is_said() {
        let said = |text: &str| text.parse::<Range>().expect_err(text).to_string();
        assert!(said("").starts_with("it is empty; write an address"));
        assert!(said("10.0.0.1-").starts_with("it is empty;"));
        assert!(said("10.0.0.0/24").starts_with("it is a subnet"));
        assert_eq!(said("10.0.0.9-10.0.0.1"), "the range is reversed; write 10.0.0.1-10.0.0.9");
        assert_eq!(said("10.0.0.1-fd00::1"), "both ends must be of one family");
        assert!(said("10.0.0.1-10.0.0.2-10.0.0.3").starts_with("a range has two ends"));
        assert!(said("10.0.0.1 - 10.0.0.2").starts_with("it contains blanks"));
        assert!(said("10.0.0.1-7").starts_with("it is not an IP address"));
    }
}
