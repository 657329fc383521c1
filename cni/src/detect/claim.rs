//! Who says of an address that it is his.

use super::ethernet::{Frame, Mac};
use super::{arp, ndp};
use std::net::IpAddr;

/// Who has `address`, if the frame says it and it is not the link itself, whose MAC is `own`.
pub(super) fn holder(frame: &Frame<'_>, address: IpAddr, own: Mac) -> Option<Mac> {
    let mac = match address {
        IpAddr::V4(address) => arp::read(frame).filter(|packet| packet.sender == address)?.mac,
        IpAddr::V6(address) => match ndp::read(frame)? {
            ndp::Packet::Advertisement { target, mac } if target == address => mac,
            _ => return None,
        },
    };
    (mac != own).then_some(mac)
}

/// The same, or who is about to take it: a probe of another at the same time (RFC 5227, 2.1.1; RFC 4862, 5.4.3).
pub(super) fn claimant(frame: &Frame<'_>, address: IpAddr, own: Mac) -> Option<Mac> {
    let probes = || match address {
        IpAddr::V4(address) => {
            // Switches that track devices send probes too, to one MAC. Who wants the address asks everybody.
            let probe = |packet: &arp::Packet| packet.is_request && packet.sender.is_unspecified();
            let packet = arp::read(frame).filter(probe).filter(|_| frame.to == Mac::BROADCAST)?;
            (packet.target == address).then_some(packet.mac)
        }
        IpAddr::V6(address) => match ndp::read(frame)? {
            // One with a source looks for whoever has it.
            ndp::Packet::Solicitation { source, target } if source.is_unspecified() && target == address => {
                Some(frame.from)
            }
            _ => None,
        },
    };
    holder(frame, address, own).or_else(|| probes().filter(|mac| *mac != own))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    const OWN: Mac = Mac([2, 0, 0, 0, 0, 1]);
    const OTHER: Mac = Mac([2, 0, 0, 0, 0, 2]);
    const V4: Ipv4Addr = Ipv4Addr::new(10, 6, 0, 9);
    const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 6, 0, 1);
    const V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 9);

    fn claims(bytes: &[u8], address: impl Into<IpAddr>) -> [Option<Mac>; 2] {
        let (frame, address) = (Frame::read(bytes).expect("a frame"), address.into());
        [holder(&frame, address, OWN), claimant(&frame, address, OWN)]
    }

    fn reply(mac: Mac, sender: Ipv4Addr, target: Ipv4Addr) -> Vec<u8> {
        let mut bytes = arp::request(mac, sender, target);
        bytes[21] = 2;
        bytes
    }

    #[test]
    fn an_answer_and_an_announcement_are_claims() {
        assert_eq!(claims(&reply(OTHER, V4, Ipv4Addr::UNSPECIFIED), V4), [Some(OTHER); 2]);
        assert_eq!(claims(&arp::request(OTHER, V4, V4), V4), [Some(OTHER); 2], "gratuitous");
        assert_eq!(claims(&arp::request(OTHER, V4, GATEWAY), V4), [Some(OTHER); 2], "who asks with it has it");
        assert_eq!(claims(&reply(OTHER, GATEWAY, V4), V4), [None; 2], "of another address");
        assert_eq!(claims(&arp::request(OTHER, GATEWAY, V4), V4), [None; 2], "a question for it");
    }

    #[test]
    fn a_probe_of_another_is_a_claim_and_no_answer() {
        assert_eq!(claims(&arp::request(OTHER, Ipv4Addr::UNSPECIFIED, V4), V4), [None, Some(OTHER)]);
        let mut tracking = arp::request(OTHER, Ipv4Addr::UNSPECIFIED, V4);
        tracking[..6].copy_from_slice(&OWN.0);
        assert_eq!(claims(&tracking, V4), [None; 2], "a switch looks whether we live");
        assert_eq!(claims(&ndp::solicitation(OTHER, Ipv6Addr::UNSPECIFIED, V6), V6), [None, Some(OTHER)]);
        let asks = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 7);
        assert_eq!(claims(&ndp::solicitation(OTHER, asks, V6), V6), [None; 2], "a question for it");
        assert_eq!(claims(&ndp::solicitation(OTHER, Ipv6Addr::UNSPECIFIED, asks), V6), [None; 2]);
    }

    #[test]
    fn what_comes_from_the_link_itself_is_none() {
        for own in [arp::request(OWN, Ipv4Addr::UNSPECIFIED, V4), arp::request(OWN, V4, V4), reply(OWN, V4, GATEWAY)] {
            assert_eq!(claims(&own, V4), [None; 2]);
        }
        assert_eq!(claims(&ndp::solicitation(OWN, Ipv6Addr::UNSPECIFIED, V6), V6), [None; 2], "looped back");
    }
}
