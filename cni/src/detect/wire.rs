//! Sockets on one link.

use super::ethernet::{self, Frame};
use super::link::Link;
use super::ndp;
use nix::errno::Errno;
use nix::libc::{AF_PACKET, PACKET_BROADCAST, PACKET_HOST, PACKET_MULTICAST, SOCK_RAW};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{LinkAddr, bind, recvfrom};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv6Addr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

/// Where frames go and come from.
pub(super) trait Wire {
    fn send(&mut self, frame: &[u8]) -> io::Result<()>;
    /// The length of the next frame that comes; none if none came before `until`.
    fn receive(&mut self, buffer: &mut [u8], until: Instant) -> io::Result<Option<usize>>;
}

/// One socket a kind of frames: one for all kinds would hear those of VLANs on the link as well, without their tags.
pub(super) struct Sockets {
    sockets: Vec<(u16, Socket)>,
    /// Holds memberships.
    _groups: Option<UdpSocket>,
}

impl Sockets {
    pub(super) fn open(link: &Link, addresses: &[IpAddr]) -> io::Result<Self> {
        let any = |kind, there: bool| there.then_some(kind);
        let kinds = [
            any(ethernet::ARP, addresses.iter().any(IpAddr::is_ipv4)),
            any(ethernet::IPV6, addresses.iter().any(IpAddr::is_ipv6)),
        ];
        let groups = join(link, addresses).ok();
        let sockets = kinds.into_iter().flatten().map(|kind| Ok((kind, socket(kind, link)?)));
        Ok(Self { sockets: sockets.collect::<io::Result<_>>()?, _groups: groups })
    }

    /// What is there by now, of all sockets in turn: one that is flooded does not keep another from being heard.
    fn next(&mut self, buffer: &mut [u8]) -> io::Result<Next> {
        for turn in 0..self.sockets.len() {
            let Some((_, socket)) = self.sockets.get(turn) else { break };
            match recvfrom::<LinkAddr>(socket.as_raw_fd(), buffer) {
                Ok((length, from)) => {
                    self.sockets.rotate_left(1);
                    return Ok(if from.is_none_or(for_us) { Next::Frame(length) } else { Next::Other });
                }
                Err(Errno::EAGAIN) => {}
                Err(Errno::EINTR) => return Ok(Next::Other),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Next::Nothing)
    }
}

enum Next {
    Frame(usize),
    Other,
    Nothing,
}

/// A frame of a VLAN that the link has no device for is shown as somebody else's, and what the link sends as outgoing. Kernels
/// before 5.2 do not say; then it is taken.
fn for_us(from: LinkAddr) -> bool {
    [PACKET_HOST, PACKET_BROADCAST, PACKET_MULTICAST].contains(&from.pkttype())
}

impl Wire for Sockets {
    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        let kind = Frame::read(frame).map(|frame| frame.kind);
        let (_, socket) = self.sockets.iter().find(|(of, _)| kind == Some(*of)).ok_or(ErrorKind::AddrNotAvailable)?;
        socket.send(frame).map(drop)
    }

    fn receive(&mut self, buffer: &mut [u8], until: Instant) -> io::Result<Option<usize>> {
        loop {
            let next = self.next(buffer)?;
            let left = until.saturating_duration_since(Instant::now());
            match next {
                Next::Frame(length) => return Ok(Some(length)),
                _ if left.is_zero() => return Ok(None),
                Next::Other => {}
                Next::Nothing => {
                    let mut waited: Vec<_> =
                        self.sockets.iter().map(|(_, socket)| PollFd::new(socket.as_fd(), PollFlags::POLLIN)).collect();
                    match poll(&mut waited, timeout(left)) {
                        // A signal; the time that is left is less by now.
                        Ok(_) | Err(Errno::EINTR) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
            }
        }
    }
}

/// Rounded up: poll would return at once again and again in the last millisecond.
fn timeout(left: Duration) -> PollTimeout {
    let millis = left.as_micros().div_ceil(1000);
    PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX)
}

fn socket(kind: u16, link: &Link) -> io::Result<Socket> {
    let protocol = Protocol::from(i32::from(kind.to_be()));
    let socket = Socket::new(Domain::from(AF_PACKET), Type::from(SOCK_RAW), Some(protocol))?;
    socket.set_nonblocking(true)?;
    bind(socket.as_raw_fd(), &link.address)?;
    forget(&socket);
    Ok(socket)
}

/// Until it was bound the socket heard every link of the pod.
fn forget(socket: &Socket) {
    const MOST: usize = 1024;
    for _ in 0..MOST {
        if recvfrom::<LinkAddr>(socket.as_raw_fd(), &mut [0; 64]).is_err_and(|error| error != Errno::EINTR) {
            break;
        }
    }
}

/// Has the link, and switches that look, let questions about the addresses through (RFC 4862, 5.4.2). Without, answers come
/// nevertheless: they go to all nodes.
fn join(link: &Link, addresses: &[IpAddr]) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))?;
    let index = u32::try_from(link.address.ifindex()).map_err(io::Error::other)?;
    for address in addresses {
        if let IpAddr::V6(address) = address {
            socket.join_multicast_v6(&ndp::group(*address), index)?;
        }
    }
    Ok(socket)
}
