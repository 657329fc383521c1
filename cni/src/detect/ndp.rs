//! Neighbour discovery of IPv6 (RFC 4861), as far as it asks for an address (RFC 4862).

use super::ethernet::{self, Frame, Mac};
use std::net::Ipv6Addr;

const ICMP: u8 = 58;
/// Of a packet that no router has passed on.
const UNROUTED: u8 = 255;
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
const SOURCE_MAC: u8 = 1;
const TARGET_MAC: u8 = 2;
/// A flag of an advertisement: it answers somebody.
const SOLICITED: u8 = 0x40;
/// Another one: what was remembered before is to be forgotten.
const OVERRIDE: u8 = 0x20;

/// What a packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packet {
    /// Somebody asks for `target`; without a source to find out whether it is free.
    Solicitation { source: Ipv6Addr, target: Ipv6Addr },
    /// Whose `target` is.
    Advertisement { target: Ipv6Addr, mac: Mac },
}

/// The group that whoever has `address`, or is about to take it, listens to.
pub(super) fn group(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c])
}

/// Who has `target`? With the source `::` it asks whether anybody has.
pub(super) fn solicitation(own: Mac, source: Ipv6Addr, target: Ipv6Addr) -> Vec<u8> {
    let to = group(target);
    let mut message = vec![SOLICITATION, 0, 0, 0, 0, 0, 0, 0];
    message.extend(target.octets());
    if !source.is_unspecified() {
        message.extend([SOURCE_MAC, 1]);
        message.extend(own.0);
    }
    framed(own, source, to, &message)
}

/// Tells all nodes that `address` is here. Unasked for, and it counts more than what they remember.
pub(super) fn announcement(own: Mac, address: Ipv6Addr) -> Vec<u8> {
    const ALL: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    let mut message = vec![ADVERTISEMENT, 0, 0, 0, OVERRIDE, 0, 0, 0];
    message.extend(address.octets());
    message.extend([TARGET_MAC, 1]);
    message.extend(own.0);
    framed(own, address, ALL, &message)
}

/// A message to a group, in a frame.
fn framed(own: Mac, source: Ipv6Addr, to: Ipv6Addr, message: &[u8]) -> Vec<u8> {
    let checksum = !sum(source, to, message);
    let [.., a, b, c, d] = to.octets();
    let mut frame = ethernet::header(Mac([0x33, 0x33, a, b, c, d]), own, ethernet::IPV6);
    frame.extend([0x60, 0, 0, 0]);
    frame.extend(u16::try_from(message.len()).unwrap_or_default().to_be_bytes());
    frame.extend([ICMP, UNROUTED]);
    frame.extend(source.octets());
    frame.extend(to.octets());
    let (head, rest) = message.split_at(4);
    frame.extend(head.iter().take(2));
    frame.extend(checksum.to_be_bytes());
    frame.extend(rest);
    frame
}

/// Nothing but what a receiver has to take by RFC 4861, 7.1: the rest is foreign, spoilt or forged from afar.
pub(super) fn read(frame: &Frame<'_>) -> Option<Packet> {
    let (first, rest) = frame.body.split_first_chunk::<4>()?;
    let (length, rest) = rest.split_first_chunk()?;
    let ([next, hops], rest) = rest.split_first_chunk::<2>()?;
    let (source, rest) = rest.split_first_chunk::<16>()?;
    let (to, rest) = rest.split_first_chunk::<16>()?;
    let message = rest.get(..usize::from(u16::from_be_bytes(*length)))?;
    let (source, to) = (Ipv6Addr::from(*source), Ipv6Addr::from(*to));
    let [version, ..] = first;
    let right = frame.kind == ethernet::IPV6 && version >> 4 == 6 && *next == ICMP && *hops == UNROUTED;
    if !right || sum(source, to, message) != u16::MAX {
        return None;
    }
    let ([kind, code, ..], message) = message.split_first_chunk::<4>()?;
    let ([flags, ..], message) = message.split_first_chunk::<4>()?;
    let (target, options) = message.split_first_chunk::<16>()?;
    let (target, macs) = (Ipv6Addr::from(*target), macs(options)?);
    match (*kind, *code) {
        _ if target.is_multicast() => None,
        (SOLICITATION, 0) => {
            let whole = !source.is_unspecified() || (to == group(target) && macs.source.is_none());
            whole.then_some(Packet::Solicitation { source, target })
        }
        (ADVERTISEMENT, 0) => {
            let odd = to.is_multicast() && flags & SOLICITED != 0;
            let mac = macs.target.unwrap_or(frame.from);
            (!odd).then_some(Packet::Advertisement { target, mac })
        }
        _ => None,
    }
}

/// Options with a MAC.
#[derive(Default)]
struct Macs {
    source: Option<Mac>,
    target: Option<Mac>,
}

/// Each has its kind and its length in eights of bytes. One of length 0 spoils the packet, as one that is cut does.
fn macs(mut options: &[u8]) -> Option<Macs> {
    let mut macs = Macs::default();
    while let [kind, eights, value @ ..] = options {
        let length = usize::from(*eights).checked_mul(8)?.checked_sub(2)?;
        let (value, rest) = value.split_at_checked(length)?;
        let mac = value.first_chunk().copied().map(Mac);
        match *kind {
            SOURCE_MAC => macs.source = mac,
            TARGET_MAC => macs.target = mac,
            _ => {}
        }
        options = rest;
    }
    options.is_empty().then_some(macs)
}

/// The Internet's sum (RFC 1071) over a message and the addresses that it goes between.
fn sum(source: Ipv6Addr, to: Ipv6Addr, message: &[u8]) -> u16 {
    let word = |pair: &[u8]| match pair {
        [high, low, ..] => u64::from(u16::from_be_bytes([*high, *low])),
        [high] => u64::from(*high) << 8,
        [] => 0,
    };
    let words = |bytes: &[u8]| bytes.chunks(2).map(word).sum::<u64>();
    let length = u64::try_from(message.len()).unwrap_or_default();
    let mut sum = words(&source.octets()) + words(&to.octets()) + length + u64::from(ICMP) + words(message);
    while sum > u64::from(u16::MAX) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    u16::try_from(sum).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Mac = Mac([2, 0, 0, 0, 0, 1]);
    const OTHER: Mac = Mac([2, 0, 0, 0, 0, 2]);

    fn ip(text: &str) -> Ipv6Addr {
        text.parse().expect("an address")
    }

    /// What a kernel sends before it takes `fd00::9`, but for the nonce that newer ones add.
    const PROBE: [u8; 78] = [
        0x33, 0x33, 0xff, 0, 0, 9, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, // Ethernet
        0x60, 0, 0, 0, 0, 24, 58, 255, // IPv6
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // from nobody
        0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0, 0, 9, // to ff02::1:ff00:9
        135, 0, 0x7d, 0x95, 0, 0, 0, 0, // a solicitation
        0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9,
    ];

    /// An advertisement of `target` to all, or to `to`.
    fn advertisement(to: Ipv6Addr, flags: u8, target: Ipv6Addr, options: &[u8]) -> Vec<u8> {
        let source = ip("fe80::2");
        let mut message = vec![ADVERTISEMENT, 0, 0, 0, flags, 0, 0, 0];
        message.extend(target.octets());
        message.extend(options);
        let checksum = (!sum(source, to, &message)).to_be_bytes();
        message[2..4].copy_from_slice(&checksum);
        let mut frame = ethernet::header(OWN, OTHER, ethernet::IPV6);
        frame.extend([0x60, 0, 0, 0, 0, u8::try_from(message.len()).expect("short"), ICMP, UNROUTED]);
        frame.extend(source.octets());
        frame.extend(to.octets());
        frame.extend(message);
        frame
    }

    fn packet(bytes: &[u8]) -> Option<Packet> {
        read(&Frame::read(bytes)?)
    }

    #[test]
    fn a_probe_has_these_bytes() {
        assert_eq!(solicitation(OWN, Ipv6Addr::UNSPECIFIED, ip("fd00::9")), PROBE);
        let source = Ipv6Addr::UNSPECIFIED;
        assert_eq!(packet(&PROBE), Some(Packet::Solicitation { source, target: ip("fd00::9") }));
        assert_eq!(group(ip("2001:db8::1:2ab:cdef")), ip("ff02::1:ffab:cdef"));
    }

    #[test]
    fn an_announcement_is_an_answer_that_nobody_asked_for() {
        let said = announcement(OWN, ip("fd00::9"));
        assert_eq!(packet(&said), Some(Packet::Advertisement { target: ip("fd00::9"), mac: OWN }));
        assert_eq!((&said[..6], said[58]), (&[0x33, 0x33, 0, 0, 0, 1][..], OVERRIDE));
    }

    #[test]
    fn a_question_with_a_source_says_where_to_answer() {
        let asked = solicitation(OWN, ip("fd00::9"), ip("fd00::1"));
        assert_eq!(asked[78..], [1, 1, 2, 0, 0, 0, 0, 1]);
        let source = ip("fd00::9");
        assert_eq!(packet(&asked), Some(Packet::Solicitation { source, target: ip("fd00::1") }));
    }

    #[test]
    fn an_answer_has_the_mac_of_its_option_or_of_its_frame() {
        let target = ip("fd00::9");
        let with = [2, 1, 2, 0, 0, 0, 0, 7];
        let other = |mac| Some(Packet::Advertisement { target, mac });
        assert_eq!(packet(&advertisement(ip("ff02::1"), 0x20, target, &with)), other(Mac([2, 0, 0, 0, 0, 7])));
        assert_eq!(packet(&advertisement(ip("fd00::7"), 0x60, target, &[])), other(OTHER));
        let mut padded = advertisement(ip("ff02::1"), 0x20, target, &[14, 1, 0, 0, 0, 0, 0, 0]);
        padded.resize(120, 0xee);
        assert_eq!(packet(&padded), other(OTHER), "an option that is unknown, and padding");
    }

    #[test]
    fn what_is_none_is_none() {
        let (all, target) = (ip("ff02::1"), ip("fd00::9"));
        for length in 0..PROBE.len() {
            assert_eq!(packet(&PROBE[..length]), None, "cut at {length}");
        }
        // EtherType, version, length, next header, hops, source, kind, code, checksum.
        for (at, value) in
            [(12, 8), (14, 0x40), (19, 23), (19, 25), (20, 17), (21, 254), (22, 1), (54, 136), (55, 1), (56, 0)]
        {
            let mut bytes = PROBE;
            bytes[at] = value;
            assert_eq!(packet(&bytes), None, "{value} at {at}");
        }
        let tagged = [&PROBE[..12], &[0x81, 0, 0, 7], &PROBE[12..]].concat();
        assert_eq!(packet(&tagged), None, "of another VLAN");
        for options in [&[2, 0, 0, 0, 0, 0, 0, 0][..], &[2, 2, 2, 0, 0, 0, 0, 7], &[2]] {
            assert_eq!(packet(&advertisement(all, 0x20, target, options)), None, "{options:?}");
        }
        assert_eq!(packet(&advertisement(all, 0x60, target, &[])), None, "answers nobody and somebody");
        assert_eq!(packet(&advertisement(all, 0x20, all, &[])), None, "a group is nobody's");
    }
}
