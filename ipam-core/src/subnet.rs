//! A subnet as the network knows it: `172.91.0.0/24`.

use crate::address::{Address, Family, InvalidAddress};
use crate::range::Range;
use std::fmt;
use std::str::FromStr;

/// A subnet without host bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subnet {
    network: Address,
    prefix: u8,
}

/// The text is no subnet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSubnet {
    /// An address alone, or nothing.
    #[error("it has no prefix length; write it such as 172.91.0.0/24")]
    NoPrefix,
    /// What stands before the '/'.
    #[error("{0}; write it such as 172.91.0.0/24")]
    Address(InvalidAddress),
    /// What follows the '/'.
    #[error("the prefix length must be a number from 0 to {0}, without leading zeros")]
    Prefix(u8),
    /// Bits that belong to hosts.
    #[error("it has host bits; write {0}")]
    HostBits(Subnet),
}

impl Subnet {
    /// The lowest address.
    #[must_use]
    pub const fn network(self) -> Address {
        self.network
    }

    /// How many leading bits its addresses have in common.
    #[must_use]
    pub const fn prefix(self) -> u8 {
        self.prefix
    }

    /// Of which kind its addresses are.
    #[must_use]
    pub const fn family(self) -> Family {
        self.network.family()
    }

    /// All of its addresses.
    #[must_use]
    pub fn range(self) -> Range {
        let last = Address::new(self.family(), self.network.number() | hosts(self.family(), self.prefix));
        last.and_then(|last| Range::new(self.network, last).ok()).unwrap_or(Range::from(self.network))
    }

    /// Whether `address` lies in it.
    #[must_use]
    pub fn contains(self, address: Address) -> bool {
        self.range().contains(address)
    }

    /// Whether some address lies in both.
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        self.range().intersection(other.range()).is_some()
    }

    /// Addresses that no host can have: of an IPv4 subnet up to `/30` its first one, which is its name, and its last one,
    /// which is everybody's.
    #[must_use]
    pub fn not_for_hosts(self) -> Option<(Address, Address)> {
        let range = self.range();
        (self.family() == Family::V4 && self.prefix <= 30).then_some((range.first(), range.last()))
    }

    /// The subnet as the value of a label: dashes where a label has no `.`, `:` or `/`, and a zero before a leading `::`.
    #[must_use]
    pub fn label(self) -> String {
        let text = self.to_string().replace(['.', ':', '/'], "-");
        if text.starts_with('-') { format!("0{text}") } else { text }
    }
}

/// The bits of hosts, all set.
fn hosts(family: Family, prefix: u8) -> u128 {
    let host_bits = family.bits().saturating_sub(prefix);
    1_u128.checked_shl(u32::from(host_bits)).map_or(u128::MAX, |above| above - 1)
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix)
    }
}

impl FromStr for Subnet {
    type Err = InvalidSubnet;

    fn from_str(text: &str) -> Result<Self, InvalidSubnet> {
        let (address, length) = text.split_once('/').ok_or(InvalidSubnet::NoPrefix)?;
        let address = address.parse::<Address>().map_err(InvalidSubnet::Address)?;
        let bits = address.family().bits();
        let plain = length.bytes().all(|b| b.is_ascii_digit()) && (length == "0" || !length.starts_with('0'));
        let prefix =
            length.parse().ok().filter(|prefix| plain && *prefix <= bits).ok_or(InvalidSubnet::Prefix(bits))?;
        let network = address.number() & !hosts(address.family(), prefix);
        let network = Address::new(address.family(), network).unwrap_or(address);
        let subnet = Self { network, prefix };
        if network == address { Ok(subnet) } else { Err(InvalidSubnet::HostBits(subnet)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subnet(text: &str) -> Subnet {
        text.parse().expect(text)
    }

    #[test]
    fn texts_are_read_and_written_alike() {
        for text in ["0.0.0.0/0", "10.148.4.0/24", "10.0.0.1/32", "::/0", "fd00::/8", "fd00::1/128"] {
            assert_eq!(subnet(text).to_string(), text);
        }
        assert_eq!(subnet("10.0.0.0/8").range().to_string(), "10.0.0.0-10.255.255.255");
        assert_eq!(subnet("::/0").range().count(), u128::MAX);
        assert_eq!(subnet("10.0.0.7/32").range().to_string(), "10.0.0.7");
    }

    #[test]
    fn each_fault_has_its_words() {
        for (text, why) in [
            ("", InvalidSubnet::NoPrefix),
            ("10.0.0.0", InvalidSubnet::NoPrefix),
            ("x/8", InvalidSubnet::Address(InvalidAddress::Other)),
            ("10.0.0.0/33", InvalidSubnet::Prefix(32)),
            ("10.0.0.0/", InvalidSubnet::Prefix(32)),
            ("10.0.0.0/08", InvalidSubnet::Prefix(32)),
            ("10.0.0.0/+8", InvalidSubnet::Prefix(32)),
            ("fd00::/129", InvalidSubnet::Prefix(128)),
            ("10.0.0.1/24", InvalidSubnet::HostBits(subnet("10.0.0.0/24"))),
            ("fd00::1/64", InvalidSubnet::HostBits(subnet("fd00::/64"))),
        ] {
            assert_eq!(text.parse::<Subnet>(), Err(why), "{text:?}");
        }
    }

    #[test]
    fn labels_are_label_values() {
        for (text, label) in [
            ("10.148.4.0/24", "10-148-4-0-24"),
            ("fd00:12::/64", "fd00-12---64"),
            ("::/0", "0---0"),
            ("2001:db8:1:2:3:4:5:6/128", "2001-db8-1-2-3-4-5-6-128"),
        ] {
            assert_eq!(subnet(text).label(), label);
        }
    }

    #[test]
    fn what_no_host_can_have() {
        let ends = |text: &str| subnet(text).not_for_hosts().map(|(a, b)| format!("{a} {b}"));
        assert_eq!(ends("10.0.0.0/24").as_deref(), Some("10.0.0.0 10.0.0.255"));
        assert_eq!(ends("10.0.0.4/30").as_deref(), Some("10.0.0.4 10.0.0.7"));
        assert_eq!(ends("10.0.0.4/31"), None, "RFC 3021");
        assert_eq!(ends("fd00::/64"), None);
    }

    #[test]
    fn subnets_overlap_if_one_holds_the_other() {
        assert!(subnet("10.0.0.0/8").overlaps(subnet("10.1.0.0/16")));
        assert!(!subnet("10.0.0.0/16").overlaps(subnet("10.1.0.0/16")));
        assert!(!subnet("0.0.0.0/0").overlaps(subnet("::/0")));
    }
}
