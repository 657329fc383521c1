//! The pod's link, as its namespace shows it.

use super::ethernet::Mac;
use super::stop::Stop;
use nix::ifaddrs::getifaddrs;
use nix::libc::ARPHRD_ETHER;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::LinkAddr;
use std::time::{Duration, Instant};

/// One that frames can be sent through.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    /// What a socket is bound to.
    pub(super) address: LinkAddr,
    pub(super) mac: Mac,
    pub(super) up: bool,
    pub(super) has_carrier: bool,
}

/// NICs agree on a speed in this time; all other links are there at once.
const CARRIER: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(10);

impl Link {
    /// Of the namespace that the thread is in.
    pub(super) fn find(name: &str) -> Result<Self, Stop> {
        let all = getifaddrs().map_err(|error| Stop::undone("links cannot be listed", &error.into()))?;
        let mut named = all.filter(|found| found.interface_name == name);
        let found = named.find_map(|found| Some((found.flags, *found.address?.as_link_addr()?)));
        let (flags, address) = found.ok_or_else(|| {
            Stop::Undone(format!("{name} does not exist yet: the plugin that makes it asks for addresses first"))
        })?;
        let mac = address.addr().filter(|mac| *mac != [0; 6]).map(Mac);
        let ethernet = address.hatype() == ARPHRD_ETHER && address.halen() == 6;
        match mac {
            Some(mac) if ethernet && !flags.intersects(InterfaceFlags::IFF_LOOPBACK | InterfaceFlags::IFF_NOARP) => {
                let up = flags.contains(InterfaceFlags::IFF_UP);
                Ok(Self { address, mac, up, has_carrier: flags.contains(InterfaceFlags::IFF_RUNNING) })
            }
            _ => Err(Stop::Undone(format!("{name} has no neighbours: it is a loopback, without ARP or without a MAC"))),
        }
    }

    /// Looks until it has a carrier, for a while.
    pub(super) fn settled(name: &str, until: Instant) -> Result<Self, Stop> {
        let until = until.min(Instant::now() + CARRIER);
        loop {
            let link = Self::find(name)?;
            if link.has_carrier || Instant::now() >= until {
                return Ok(link);
            }
            #[allow(clippy::disallowed_methods, reason = "polls the link until a deadline")]
            std::thread::sleep(LOOK);
        }
    }
}
