//! A good answer made a bad one.

use crate::wire::{AllocateResponse, BoundAddress};
use ipam_core::Address;
use std::net::IpAddr;

/// What is wrong in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alteration {
    /// The last address is not there.
    Missing,
    /// One is there that nobody asked for.
    Extra,
    /// The first address is there twice.
    Duplicate,
    /// Another subnet than asked.
    WrongSubnet,
    /// The same address in other characters.
    WrongAddressSpelling,
    /// The MAC address is none.
    BadMac,
    /// This VLAN id.
    Vlan(i64),
    /// The VLAN id of another address of the NIC, if there is one.
    SameVlan,
    /// No VLAN id.
    NoVlan,
    /// No MAC address.
    NoMac,
}

impl Alteration {
    /// Alters `answer`; `another` is a VLAN id that another address of the NIC has.
    pub(crate) fn apply(self, answer: &mut AllocateResponse, another: Option<u16>) {
        let addresses = &mut answer.addresses;
        match self {
            Self::Missing => drop(addresses.pop()),
            Self::Extra => addresses.extend(not_asked(addresses)),
            Self::Duplicate => addresses.extend(addresses.first().cloned()),
            Self::WrongSubnet => each(addresses, |bound| "192.0.2.0/24".clone_into(&mut bound.subnet)),
            Self::WrongAddressSpelling => each(addresses, |bound| bound.ip_address = respelt(&bound.ip_address)),
            Self::BadMac => each(addresses, |bound| "02:00:00:00:00".clone_into(&mut bound.mac_address)),
            Self::Vlan(vlan) => each(addresses, |bound| bound.vlan_id = Some(vlan)),
            Self::SameVlan => each(addresses, |bound| bound.vlan_id = another.map(i64::from).or(bound.vlan_id)),
            Self::NoVlan => each(addresses, |bound| bound.vlan_id = None),
            Self::NoMac => each(addresses, |bound| bound.mac_address.clear()),
        }
    }
}

fn each(addresses: &mut [BoundAddress], change: impl FnMut(&mut BoundAddress)) {
    addresses.iter_mut().for_each(change);
}

/// The next address that the answer does not have.
fn not_asked(addresses: &[BoundAddress]) -> Option<BoundAddress> {
    let mut extra = addresses.last()?.clone();
    let mut address: Address = extra.ip_address.parse().ok()?;
    while addresses.iter().any(|bound| bound.ip_address == address.to_string()) {
        address = address.next().or_else(|| address.previous())?;
    }
    extra.ip_address = address.to_string();
    extra.vlan_id = extra.vlan_id.map(|vlan| if vlan > 1 { vlan - 1 } else { 2 });
    Some(extra)
}

/// `10.0.0.7` as `10.0.0.07`, `fd00::7` with all of its zeros.
fn respelt(text: &str) -> String {
    match text.parse() {
        Ok(IpAddr::V6(address)) => address.segments().map(|segment| format!("{segment:04x}")).join(":"),
        Ok(IpAddr::V4(_)) | Err(_) => match text.rsplit_once('.') {
            Some((rest, last)) => format!("{rest}.0{last}"),
            None => text.to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_address_in_other_characters() {
        for (text, other) in [("10.0.0.7", "10.0.0.07"), ("10.0.0.100", "10.0.0.0100")] {
            assert_eq!(respelt(text), other);
        }
        assert_eq!(respelt("fd00::7"), "fd00:0000:0000:0000:0000:0000:0000:0007");
    }
}
