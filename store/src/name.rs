//! The name of an allocation: its address, as a name can be written.

use ipam_core::Address;
use std::net::{IpAddr, Ipv6Addr};

/// `172.91.0.100`; an IPv6 address fully written out with dashes, so that each has one name.
pub(crate) fn of(address: Address) -> String {
    match IpAddr::from(address) {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => v6.segments().map(|segment| format!("{segment:04x}")).join("-"),
    }
}

/// The address that has this name, or would have it if somebody wrote it shorter.
pub(crate) fn address(name: &str) -> Option<Address> {
    if name.contains('-') {
        let v6 = name.replace('-', ":").parse::<Ipv6Addr>().ok()?;
        Some(IpAddr::V6(v6).into())
    } else {
        name.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipam_core::Family;
    use proptest::prelude::*;

    #[test]
    fn is_what_the_page_says() {
        let named = |text: &str| of(text.parse().expect("an address"));
        assert_eq!(named("172.91.0.100"), "172.91.0.100");
        assert_eq!(named("fd00::1"), "fd00-0000-0000-0000-0000-0000-0000-0001");
        assert_eq!(address("fd00--1"), "fd00::1".parse().ok(), "of others it is read more loosely than written");
        for text in ["", "-", "a", "10.0.0", "10-0-0-1", "fd00:1"] {
            assert_eq!(address(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn each_address_has_one_name(number: u128, four: bool) {
            let family = if four { Family::V4 } else { Family::V6 };
            let number = if four { number & 0xffff_ffff } else { number };
            let given = Address::new(family, number).expect("in its family");
            let name = of(given);
            prop_assert!(name.len() <= 253 && name.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-' || b == b'.'));
            prop_assert_eq!(address(&name), Some(given));
        }
    }
}
