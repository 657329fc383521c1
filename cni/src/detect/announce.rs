//! Tells neighbours where addresses are now, before they find out by losing packets.

use super::ethernet::Mac;
use super::link::Link;
use super::wire::{Sockets, Wire};
use super::{arp, ndp};
use std::io;
use std::net::IpAddr;

/// Once, through a link of the namespace that the thread is in.
pub(crate) fn announce(interface: &str, addresses: &[IpAddr]) -> io::Result<()> {
    let link = Link::find(interface).map_err(|stop| io::Error::other(format!("{stop:?}")))?;
    let mut wire = Sockets::open(&link, addresses)?;
    addresses.iter().try_for_each(|address| wire.send(&announcement(link.mac, *address)))
}

fn announcement(own: Mac, address: IpAddr) -> Vec<u8> {
    match address {
        // A request for oneself (RFC 5227, 3): who ignores answers that he did not ask for takes it.
        IpAddr::V4(address) => arp::request(own, address, address),
        IpAddr::V6(address) => ndp::announcement(own, address),
    }
}
