//! ARP for IPv4 over Ethernet (RFC 826).

use super::ethernet::{self, Frame, Mac};
use std::net::Ipv4Addr;

/// Kinds and lengths of both addresses.
const ETHERNET_AND_IPV4: [u8; 6] = [0, 1, 8, 0, 6, 4];
const REQUEST: [u8; 2] = [0, 1];
const REPLY: [u8; 2] = [0, 2];

/// What a packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    pub(super) is_request: bool,
    pub(super) mac: Mac,
    pub(super) sender: Ipv4Addr,
    pub(super) target: Ipv4Addr,
}

/// Who has `target`? With the sender 0.0.0.0 it is a probe (RFC 5227), which nobody learns anything from.
pub(super) fn request(own: Mac, sender: Ipv4Addr, target: Ipv4Addr) -> Vec<u8> {
    let mut frame = ethernet::header(Mac::BROADCAST, own, ethernet::ARP);
    frame.extend(ETHERNET_AND_IPV4);
    frame.extend(REQUEST);
    frame.extend(own.0);
    frame.extend(sender.octets());
    frame.extend([0; 6]);
    frame.extend(target.octets());
    frame
}

pub(super) fn read(frame: &Frame<'_>) -> Option<Packet> {
    let body = frame.body;
    let (kinds, body) = body.split_first_chunk()?;
    let (operation, body) = body.split_first_chunk()?;
    let (mac, body) = body.split_first_chunk()?;
    let (sender, body) = body.split_first_chunk::<4>()?;
    let (_, body) = body.split_first_chunk::<6>()?;
    let (target, _) = body.split_first_chunk::<4>()?;
    let is_request = match *operation {
        REQUEST => true,
        REPLY => false,
        _ => return None,
    };
    let ours = frame.kind == ethernet::ARP && *kinds == ETHERNET_AND_IPV4;
    ours.then(|| Packet { is_request, mac: Mac(*mac), sender: (*sender).into(), target: (*target).into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Mac = Mac([2, 0, 0, 0, 0, 1]);

    /// As `tcpdump -xx` shows what arping sends.
    const PROBE: [u8; 42] = [
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 8, 6, // Ethernet
        0, 1, 8, 0, 6, 4, 0, 1, // a request
        2, 0, 0, 0, 0, 1, 0, 0, 0, 0, // from nobody
        0, 0, 0, 0, 0, 0, 10, 6, 0, 9,
    ];

    #[test]
    fn a_probe_has_these_bytes() {
        assert_eq!(request(OWN, Ipv4Addr::UNSPECIFIED, Ipv4Addr::new(10, 6, 0, 9)), PROBE);
        let asked = request(OWN, Ipv4Addr::new(10, 6, 0, 9), Ipv4Addr::new(10, 6, 0, 1));
        assert_eq!(asked[28..32], [10, 6, 0, 9]);
        assert_eq!(asked[38..42], [10, 6, 0, 1]);
    }

    fn packet(bytes: &[u8]) -> Option<Packet> {
        read(&Frame::read(bytes)?)
    }

    #[test]
    fn is_read_with_the_padding_of_short_frames() {
        let mut bytes = PROBE.to_vec();
        let probe =
            Packet { is_request: true, mac: OWN, sender: Ipv4Addr::UNSPECIFIED, target: Ipv4Addr::new(10, 6, 0, 9) };
        assert_eq!(packet(&bytes), Some(probe));
        bytes.resize(60, 0xee);
        assert_eq!(packet(&bytes), Some(probe));
        bytes[21] = 2;
        assert_eq!(packet(&bytes), Some(Packet { is_request: false, ..probe }));
    }

    #[test]
    fn what_is_none_is_none() {
        for length in 0..42 {
            assert_eq!(packet(&PROBE[..length]), None, "cut at {length}");
        }
        // EtherType, kinds of addresses, their lengths, operation.
        for (at, value) in
            [(12, 9), (13, 0), (14, 1), (15, 6), (16, 0x86), (18, 8), (19, 16), (20, 1), (21, 0), (21, 3)]
        {
            let mut bytes = PROBE;
            bytes[at] = value;
            assert_eq!(packet(&bytes), None, "{value} at {at}");
        }
        let tagged = [&PROBE[..12], &[0x81, 0, 0, 7], &PROBE[12..]].concat();
        assert_eq!(packet(&tagged), None, "of another VLAN");
    }
}
