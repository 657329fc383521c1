//! Sets a link up for a time.

use nix::libc::{AF_NETLINK, IFF_UP, NETLINK_ROUTE, NLM_F_ACK, NLM_F_REQUEST, NLMSG_ERROR, RTM_NEWLINK, SOCK_RAW};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, ErrorKind, Read};
use std::time::Duration;

/// A link that was down, and will be again. Main plugins (macvlan, ipvlan, bridge) set the link up after they have put the
/// addresses on it, and the kernel announces these then (`arp_notify`, `ndisc_notify`): of a link that is up already it
/// announces nothing, and neighbours go on with what they remember of who had the address before.
pub(super) struct Lifted {
    index: u32,
}

impl Lifted {
    pub(super) fn up(index: usize) -> io::Result<Self> {
        let index = u32::try_from(index).map_err(io::Error::other)?;
        set(index, true)?;
        Ok(Self { index })
    }
}

impl Drop for Lifted {
    /// One that cannot be set down stays up, or is gone: what comes next works either way.
    fn drop(&mut self) {
        let _ = set(self.index, false);
    }
}

/// The kernel answers such a request before it returns from the sending, but for a lock that others may hold.
const ANSWER: Duration = Duration::from_secs(2);

fn set(index: u32, up: bool) -> io::Result<()> {
    let socket = Socket::new(Domain::from(AF_NETLINK), Type::from(SOCK_RAW), Some(Protocol::from(NETLINK_ROUTE)))?;
    socket.set_read_timeout(Some(ANSWER))?;
    socket.send(&request(index, up).ok_or(ErrorKind::InvalidInput)?)?;
    let mut answer = [0; 128];
    loop {
        match (&socket).read(&mut answer) {
            Ok(length) => return done(answer.get(..length).unwrap_or_default()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// `nlmsghdr` and `ifinfomsg`.
fn request(index: u32, up: bool) -> Option<Vec<u8>> {
    let up_flag = u32::try_from(IFF_UP).ok()?;
    let flags = u16::try_from(NLM_F_REQUEST | NLM_F_ACK).ok()?;
    let message = [
        &32_u32.to_ne_bytes()[..],
        &RTM_NEWLINK.to_ne_bytes(),
        &flags.to_ne_bytes(),
        &[0; 8],
        &[0; 4],
        &index.to_ne_bytes(),
        &(if up { up_flag } else { 0 }).to_ne_bytes(),
        &up_flag.to_ne_bytes(),
    ];
    Some(message.concat())
}

/// What the kernel says: an error of 0 is none.
fn done(answer: &[u8]) -> io::Result<()> {
    let odd = || io::Error::from(ErrorKind::InvalidData);
    let (_, rest) = answer.split_first_chunk::<4>().ok_or_else(odd)?;
    let (kind, rest) = rest.split_first_chunk().ok_or_else(odd)?;
    let (_, rest) = rest.split_first_chunk::<10>().ok_or_else(odd)?;
    let error = rest.first_chunk().ok_or_else(odd)?;
    match (i32::from(u16::from_ne_bytes(*kind)), i32::from_ne_bytes(*error)) {
        (NLMSG_ERROR, 0) => Ok(()),
        (NLMSG_ERROR, error) => Err(io::Error::from_raw_os_error(error.saturating_neg())),
        _ => Err(odd()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_as_long_as_it_says() {
        let request = request(7, true).expect("numbers that fit");
        assert_eq!(request.len(), 32);
        assert_eq!(request[..4], 32_u32.to_ne_bytes());
        assert_eq!(request[20..32], [7_u32.to_ne_bytes(), 1_u32.to_ne_bytes(), 1_u32.to_ne_bytes()].concat());
        assert_eq!(super::request(7, false).expect("the same")[24..28], [0; 4]);
    }

    #[test]
    fn an_answer_is_an_error_or_none() {
        let answer = |kind: u16, error: i32| {
            [&36_u32.to_ne_bytes()[..], &kind.to_ne_bytes(), &[0; 10], &error.to_ne_bytes(), &[0; 16]].concat()
        };
        assert!(done(&answer(2, 0)).is_ok());
        assert_eq!(done(&answer(2, -19)).expect_err("no such device").raw_os_error(), Some(19));
        assert!(done(&answer(2, i32::MIN)).is_err() && done(&answer(16, 0)).is_err());
        for length in 0..20 {
            assert!(done(&answer(2, 0)[..length]).is_err(), "{length}");
        }
    }
}
