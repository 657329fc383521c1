//! One address: its family, and a number.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Which kind of address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// 32 bits.
    V4,
    /// 128 bits.
    V6,
}

impl Family {
    /// Length of an address.
    #[must_use]
    pub const fn bits(self) -> u8 {
        match self {
            Self::V4 => 32,
            Self::V6 => 128,
        }
    }

    /// 4 or 6, as objects write it.
    #[must_use]
    pub const fn version(self) -> i64 {
        match self {
            Self::V4 => 4,
            Self::V6 => 6,
        }
    }

    /// The number of the last address.
    pub(crate) const fn last(self) -> u128 {
        match self {
            Self::V4 => 0xffff_ffff,
            Self::V6 => u128::MAX,
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IPv{}", self.version())
    }
}

/// An address. Addresses of one family stand in the order of their numbers, IPv4 before IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    family: Family,
    number: u128,
}

/// The text is no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAddress {
    /// Nothing, or blanks.
    #[error("it is empty")]
    Empty,
    /// Blanks before, after or in it.
    #[error("it contains blanks")]
    Blank,
    /// With the length of a prefix.
    #[error("it is a subnet, not an address; leave out what follows the '/'")]
    Prefix,
    /// `fe80::1%eth0`.
    #[error("it names an interface; leave out what follows the '%'")]
    Zone,
    /// `::ffff:10.0.0.1`: two texts for one address.
    #[error("it is an IPv4 address written as IPv6; write {0}")]
    Mapped(Ipv4Addr),
    /// `010.0.0.1`: some readers take it as octal.
    #[error("it is not an IP address; numbers of an IPv4 address are written without leading zeros")]
    LeadingZero,
    /// All else.
    #[error("it is not an IP address")]
    Other,
}

impl Address {
    /// The address of this number; `None` beyond the last one.
    #[must_use]
    pub const fn new(family: Family, number: u128) -> Option<Self> {
        if number > family.last() { None } else { Some(Self { family, number }) }
    }

    /// Of which kind.
    #[must_use]
    pub const fn family(self) -> Family {
        self.family
    }

    /// The address as a number.
    #[must_use]
    pub const fn number(self) -> u128 {
        self.number
    }

    /// The next one of the family.
    #[must_use]
    pub fn next(self) -> Option<Self> {
        Self::new(self.family, self.number.checked_add(1)?)
    }

    /// The one before.
    #[must_use]
    pub fn previous(self) -> Option<Self> {
        Self::new(self.family, self.number.checked_sub(1)?)
    }
}

impl From<IpAddr> for Address {
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(v4) => Self { family: Family::V4, number: u128::from(u32::from(v4)) },
            IpAddr::V6(v6) => Self { family: Family::V6, number: u128::from(v6) },
        }
    }
}

impl From<Address> for IpAddr {
    fn from(address: Address) -> Self {
        let v6 = Ipv6Addr::from(address.number);
        match (address.family, v6.octets()) {
            // A number of this family has no more bits.
            (Family::V4, [.., a, b, c, d]) => Self::V4(Ipv4Addr::new(a, b, c, d)),
            (Family::V6, _) => Self::V6(v6),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&IpAddr::from(*self), f)
    }
}

impl FromStr for Address {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        match text.parse::<IpAddr>() {
            Ok(IpAddr::V6(v6)) => match v6.to_ipv4_mapped() {
                Some(v4) => Err(InvalidAddress::Mapped(v4)),
                None => Ok(IpAddr::V6(v6).into()),
            },
            Ok(v4) => Ok(v4.into()),
            Err(_) => Err(why(text)),
        }
    }
}

fn why(text: &str) -> InvalidAddress {
    let zero = |part: &str| part.len() > 1 && part.starts_with('0') && part.bytes().all(|b| b.is_ascii_digit());
    if text.trim().is_empty() {
        InvalidAddress::Empty
    } else if text.contains(char::is_whitespace) {
        InvalidAddress::Blank
    } else if text.split_once('/').is_some_and(|(address, _)| address.parse::<IpAddr>().is_ok()) {
        InvalidAddress::Prefix
    } else if text.split_once('%').is_some_and(|(address, _)| address.parse::<Ipv6Addr>().is_ok()) {
        InvalidAddress::Zone
    } else if text.split('.').count() == 4 && text.split('.').any(zero) {
        InvalidAddress::LeadingZero
    } else {
        InvalidAddress::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_and_written_alike() {
        for text in ["0.0.0.0", "172.91.0.100", "255.255.255.255", "::", "fd00::1", "ffff::ffff"] {
            assert_eq!(text.parse::<Address>().expect(text).to_string(), text);
        }
        assert_eq!("FD00:0:0::1".parse::<Address>().expect("an address").to_string(), "fd00::1");
    }

    #[test]
    fn each_fault_has_its_words() {
        for (text, why) in [
            ("", InvalidAddress::Empty),
            (" ", InvalidAddress::Empty),
            ("10.0.0.1 ", InvalidAddress::Blank),
            ("10.0.0.1/24", InvalidAddress::Prefix),
            ("fe80::1%eth0", InvalidAddress::Zone),
            ("::ffff:10.0.0.1", InvalidAddress::Mapped(Ipv4Addr::new(10, 0, 0, 1))),
            ("10.0.0.01", InvalidAddress::LeadingZero),
            ("10.0.0", InvalidAddress::Other),
            ("10.0.0.256", InvalidAddress::Other),
            ("fd00:::1", InvalidAddress::Other),
        ] {
            assert_eq!(text.parse::<Address>(), Err(why), "{text:?}");
        }
    }

    #[test]
    fn families_end() {
        let last = |text: &str| text.parse::<Address>().expect("an address");
        assert_eq!(last("255.255.255.255").next(), None);
        assert_eq!(last("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff").next(), None);
        assert_eq!(last("0.0.0.0").previous(), None);
        assert_eq!(last("10.0.0.255").next(), Some(last("10.0.1.0")));
        assert!(last("255.255.255.255") < last("::"), "IPv4 stands before IPv6");
    }
}
