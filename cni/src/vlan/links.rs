//! Links, addresses and routes of one namespace.

use super::given::{Address, Route};
use super::netlink::Netlink;
use crate::detect::Mac;
use nix::errno::Errno;
use rtnetlink::packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use rtnetlink::packet_route::address::{AddressAttribute, AddressFlags, AddressMessage, AddressScope};
use rtnetlink::packet_route::link::{
    InfoData, InfoKind, InfoVlan, LinkAttribute, LinkExtentMask, LinkFlags, LinkInfo, LinkMessage,
};
use rtnetlink::packet_route::nsid::{NsidAttribute, NsidMessage};
use rtnetlink::packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope, RouteType,
};
use rtnetlink::packet_route::{AddressFamily, RouteNetlinkMessage};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsRawFd, BorrowedFd};

/// A link, as its namespace shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) index: u32,
    pub(super) name: String,
    pub(super) mac: Option<Mac>,
    pub(super) mtu: u32,
    pub(super) up: bool,
    pub(super) alias: String,
    /// Its id, if it is a VLAN link.
    pub(super) vlan: Option<u16>,
    pub(super) parent: u32,
    /// What the parent's namespace is called here; none if it is this one.
    pub(super) parent_in: Option<i32>,
}

/// A VLAN link that is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NewLink<'a> {
    pub(super) name: &'a str,
    pub(super) parent: u32,
    pub(super) vlan: u16,
    /// None: the parent's.
    pub(super) mac: Option<Mac>,
    pub(super) mtu: u32,
}

/// An address that a link has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) ip: IpAddr,
    pub(super) prefix: u8,
    /// The kernel made it up, of the link's MAC or of a router's advertisement.
    pub(super) is_of_kernel: bool,
    /// Not proved to be free yet.
    pub(super) is_tentative: bool,
    /// Proved not to be.
    pub(super) is_taken: bool,
}

impl Netlink {
    /// By its name, or by one of its other names.
    pub(super) fn find(&mut self, name: &str) -> io::Result<Option<Link>> {
        let mut message = LinkMessage::default();
        message.attributes =
            vec![LinkAttribute::IfName(name.to_owned()), LinkAttribute::ExtMask(vec![LinkExtentMask::SkipStats])];
        match self.one(RouteNetlinkMessage::GetLink(message)) {
            Ok(answer) => link(answer).map(Some).ok_or_else(|| ErrorKind::InvalidData.into()),
            Err(error) if error.raw_os_error() == Some(nix::libc::ENODEV) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn links(&mut self) -> io::Result<Vec<Link>> {
        let mut message = LinkMessage::default();
        message.attributes = vec![LinkAttribute::ExtMask(vec![LinkExtentMask::SkipStats])];
        Ok(self.list(RouteNetlinkMessage::GetLink(message))?.into_iter().filter_map(link).collect())
    }

    /// In the namespace `into`, with a parent in this one.
    pub(super) fn create(&mut self, new: &NewLink<'_>, into: BorrowedFd<'_>) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.attributes = vec![
            LinkAttribute::IfName(new.name.to_owned()),
            LinkAttribute::Link(new.parent),
            LinkAttribute::NetNsFd(into.as_raw_fd()),
            LinkAttribute::Mtu(new.mtu),
            LinkAttribute::LinkInfo(vec![
                LinkInfo::Kind(InfoKind::Vlan),
                LinkInfo::Data(InfoData::Vlan(vec![InfoVlan::Id(new.vlan)])),
            ]),
        ];
        if let Some(mac) = new.mac {
            message.attributes.push(LinkAttribute::Address(mac.0.to_vec()));
        }
        self.order(RouteNetlinkMessage::NewLink(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Marks and names it.
    pub(super) fn name(&mut self, index: u32, name: &str, alias: &str) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        let alias = LinkAttribute::IfAlias(alias.to_owned());
        message.attributes = vec![LinkAttribute::IfName(name.to_owned()), alias];
        self.order(RouteNetlinkMessage::SetLink(message), 0)
    }

    pub(super) fn set_up(&mut self, index: u32) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        self.order(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// One that is gone is no error.
    pub(super) fn delete(&mut self, index: u32) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        but(self.order(RouteNetlinkMessage::DelLink(message), 0), Errno::ENODEV)
    }

    pub(super) fn addresses(&mut self, index: u32) -> io::Result<Vec<Held>> {
        let all = self.list(RouteNetlinkMessage::GetAddress(AddressMessage::default()))?;
        Ok(all.into_iter().filter_map(|answer| held(answer, index)).collect())
    }

    /// One that it has is no error.
    pub(super) fn add_address(&mut self, index: u32, address: &Address) -> io::Result<()> {
        let Address { ip, prefix, gateway: _ } = *address;
        let mut message = AddressMessage::default();
        message.header.family = family(ip);
        message.header.prefix_len = prefix;
        message.header.index = index;
        message.attributes = vec![AddressAttribute::Local(ip), AddressAttribute::Address(ip)];
        if let Some(all) = broadcast(ip, prefix) {
            message.attributes.push(AddressAttribute::Broadcast(all));
        }
        but(self.order(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL), Errno::EEXIST)
    }

    /// Whether it was added. Where there is such a route already, through whatever link, that stays, and this one is not added
    /// unless `beside` it.
    pub(super) fn add_route(&mut self, index: u32, route: &Route, beside: bool) -> io::Result<bool> {
        let Route { dst, prefix, gw, mtu, advmss, priority, table, scope } = *route;
        let mut message = RouteMessage::default();
        message.header.address_family = family(dst);
        message.header.destination_prefix_length = prefix;
        message.header.protocol = RouteProtocol::Boot;
        message.header.kind = RouteType::Unicast;
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        // Without a gateway it says what is on the link, and gateways may be there.
        let by_gateway = if gw.is_some() { RouteScope::Universe } else { RouteScope::Link };
        message.header.scope = scope.map_or(by_gateway, RouteScope::from);
        message.attributes = vec![RouteAttribute::Oif(index)];
        if prefix > 0 {
            message.attributes.push(RouteAttribute::Destination(dst.into()));
        }
        message.attributes.extend(gw.map(|gw| RouteAttribute::Gateway(gw.into())));
        message.attributes.extend(priority.map(RouteAttribute::Priority));
        if let Some(table) = table {
            message.header.table = u8::try_from(table).unwrap_or(RouteHeader::RT_TABLE_UNSPEC);
            message.attributes.push(RouteAttribute::Table(table));
        }
        let metrics: Vec<_> =
            [mtu.map(RouteMetric::Mtu), advmss.map(RouteMetric::Advmss)].into_iter().flatten().collect();
        if !metrics.is_empty() {
            message.attributes.push(RouteAttribute::Metrics(metrics));
        }
        let flags = if beside { NLM_F_CREATE } else { NLM_F_CREATE | NLM_F_EXCL };
        match self.order(RouteNetlinkMessage::NewRoute(message), flags) {
            Ok(()) => Ok(true),
            Err(error) if error.raw_os_error() == Some(nix::libc::EEXIST) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Destination and gateway of each route, of whatever link.
    pub(super) fn routes(&mut self) -> io::Result<Vec<(IpAddr, u8, Option<IpAddr>)>> {
        let mut all = Vec::new();
        for of in [AddressFamily::Inet, AddressFamily::Inet6] {
            let mut message = RouteMessage::default();
            message.header.address_family = of;
            all.extend(self.list(RouteNetlinkMessage::GetRoute(message))?);
        }
        Ok(all.into_iter().filter_map(route).collect())
    }

    /// What the namespace `of` is called in this one, if it has a name.
    pub(super) fn name_of(&mut self, of: BorrowedFd<'_>) -> io::Result<Option<i32>> {
        let mut message = NsidMessage::default();
        message.attributes = vec![NsidAttribute::Fd(u32::try_from(of.as_raw_fd()).map_err(io::Error::other)?)];
        let RouteNetlinkMessage::NewNsId(answer) = self.one(RouteNetlinkMessage::GetNsId(message))? else {
            return Err(ErrorKind::InvalidData.into());
        };
        let mut ids = answer.attributes.into_iter().filter_map(|attribute| match attribute {
            NsidAttribute::Id(id) if id >= 0 => Some(id),
            _ => None,
        });
        Ok(ids.next_back())
    }
}

/// An order that was carried out before.
fn but(ended: io::Result<()>, allowed: Errno) -> io::Result<()> {
    match ended {
        Err(error) if Errno::from_raw(error.raw_os_error().unwrap_or_default()) == allowed => Ok(()),
        other => other,
    }
}

fn family(ip: IpAddr) -> AddressFamily {
    if ip.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

/// None where a subnet has no room for one.
fn broadcast(ip: IpAddr, prefix: u8) -> Option<Ipv4Addr> {
    match ip {
        IpAddr::V4(ip) if prefix < 31 => {
            Some(Ipv4Addr::from_bits(ip.to_bits() | u32::MAX.checked_shr(prefix.into()).unwrap_or_default()))
        }
        _ => None,
    }
}

fn link(answer: RouteNetlinkMessage) -> Option<Link> {
    let RouteNetlinkMessage::NewLink(message) = answer else { return None };
    let up = message.header.flags.contains(LinkFlags::Up);
    let mut link = Link { index: message.header.index, up, ..Link::default() };
    for attribute in message.attributes {
        match attribute {
            LinkAttribute::IfName(name) => link.name = name,
            LinkAttribute::Address(mac) => link.mac = mac.try_into().ok().map(Mac),
            LinkAttribute::Mtu(mtu) => link.mtu = mtu,
            LinkAttribute::IfAlias(alias) => link.alias = alias,
            LinkAttribute::Link(parent) => link.parent = parent,
            LinkAttribute::LinkNetNsId(id) => link.parent_in = Some(id),
            LinkAttribute::LinkInfo(infos) => link.vlan = vlan(infos),
            _ => {}
        }
    }
    Some(link)
}

fn vlan(infos: Vec<LinkInfo>) -> Option<u16> {
    infos.into_iter().find_map(|info| match info {
        LinkInfo::Data(InfoData::Vlan(data)) => data.into_iter().find_map(|one| match one {
            InfoVlan::Id(id) => Some(id),
            _ => None,
        }),
        _ => None,
    })
}

fn held(answer: RouteNetlinkMessage, index: u32) -> Option<Held> {
    let RouteNetlinkMessage::NewAddress(message) = answer else { return None };
    if message.header.index != index {
        return None;
    }
    let flags = AddressFlags::from_bits_retain(u32::from(message.header.flags.bits()));
    let ip = message.attributes.into_iter().fold(None, |found, attribute| match attribute {
        AddressAttribute::Local(ip) => Some(ip),
        AddressAttribute::Address(ip) => found.or(Some(ip)),
        _ => found,
    })?;
    Some(Held {
        ip,
        prefix: message.header.prefix_len,
        is_of_kernel: message.header.scope == AddressScope::Link || !flags.contains(AddressFlags::Permanent),
        is_tentative: flags.contains(AddressFlags::Tentative),
        is_taken: flags.contains(AddressFlags::Dadfailed),
    })
}

fn route(answer: RouteNetlinkMessage) -> Option<(IpAddr, u8, Option<IpAddr>)> {
    let RouteNetlinkMessage::NewRoute(message) = answer else { return None };
    let ip = |address: RouteAddress| match address {
        RouteAddress::Inet(ip) => Some(IpAddr::V4(ip)),
        RouteAddress::Inet6(ip) => Some(ip.into()),
        _ => None,
    };
    let (mut dst, mut gw) = (None, None);
    for attribute in message.attributes {
        match attribute {
            RouteAttribute::Destination(address) => dst = ip(address),
            RouteAttribute::Gateway(address) => gw = ip(address),
            _ => {}
        }
    }
    let everything = match message.header.address_family {
        AddressFamily::Inet => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        AddressFamily::Inet6 => IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED),
        _ => return None,
    };
    Some((dst.unwrap_or(everything), message.header.destination_prefix_length, gw))
}
