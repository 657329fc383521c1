//! Requests to one namespace's kernel, one after another.

use nix::libc::{AF_NETLINK, NETLINK_ROUTE, SOCK_RAW};
use rtnetlink::packet_core::{NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload};
use rtnetlink::packet_route::RouteNetlinkMessage;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, ErrorKind, Read};
use std::time::Duration;

/// A socket stays in the namespace in which it was opened, whoever has it.
pub(super) struct Netlink {
    socket: Socket,
    sequence: u32,
    buffer: Vec<u8>,
}

/// The kernel answers before it returns from the sending, but for a lock that others may hold: the end of a namespace with
/// thousands of links takes it again and again.
const ANSWER: Duration = Duration::from_secs(5);
/// Parts of a dump are no larger.
const PART: usize = 64 << 10;

impl Netlink {
    /// In the namespace of the calling thread.
    pub(super) fn open() -> io::Result<Self> {
        let socket = Socket::new(Domain::from(AF_NETLINK), Type::from(SOCK_RAW), Some(Protocol::from(NETLINK_ROUTE)))?;
        socket.set_read_timeout(Some(ANSWER))?;
        socket.set_write_timeout(Some(ANSWER))?;
        Ok(Self { socket, sequence: 0, buffer: vec![0; PART] })
    }

    /// Has it done.
    pub(super) fn order(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.ask(message, NLM_F_ACK | flags).map(drop)
    }

    /// What there is one of.
    pub(super) fn one(&mut self, message: RouteNetlinkMessage) -> io::Result<RouteNetlinkMessage> {
        self.ask(message, NLM_F_ACK)?.into_iter().next().ok_or_else(|| ErrorKind::InvalidData.into())
    }

    /// All that there are.
    pub(super) fn list(&mut self, message: RouteNetlinkMessage) -> io::Result<Vec<RouteNetlinkMessage>> {
        self.ask(message, NLM_F_DUMP)
    }

    fn ask(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<Vec<RouteNetlinkMessage>> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut message = NetlinkMessage::from(message);
        message.header.flags = NLM_F_REQUEST | flags;
        message.header.sequence_number = self.sequence;
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes)?;
        let is_dump = flags & NLM_F_DUMP == NLM_F_DUMP;
        let mut answers = Vec::new();
        loop {
            let length = match (&self.socket).read(&mut self.buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return Err(io::Error::new(
                        ErrorKind::TimedOut,
                        format!("the kernel did not answer in {ANSWER:?}"),
                    ));
                }
                Err(error) => return Err(error),
            };
            let part = self.buffer.get(..length).unwrap_or_default();
            if read(part, self.sequence, is_dump, &mut answers)? {
                return Ok(answers);
            }
        }
    }
}

/// Takes the answers out of one packet; whether it was the last. What is left of an earlier request that was given up is passed
/// over.
fn read(mut part: &[u8], sequence: u32, is_dump: bool, answers: &mut Vec<RouteNetlinkMessage>) -> io::Result<bool> {
    while let Some(length) = part.first_chunk().map(|length| u32::from_ne_bytes(*length)) {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let one = part.get(..length).filter(|one| one.len() >= 16).ok_or(ErrorKind::InvalidData)?;
        // Parts begin at a multiple of four.
        part = part.get(length.next_multiple_of(4)..).unwrap_or_default();
        let of = one.get(8..).and_then(|rest| rest.first_chunk()).map(|of| u32::from_ne_bytes(*of));
        if of != Some(sequence) {
            continue;
        }
        let message = match NetlinkMessage::<RouteNetlinkMessage>::deserialize(one) {
            Ok(message) => message,
            // Of many links, one that this version cannot read is none that it has to do with.
            Err(_) if is_dump => continue,
            Err(error) => return Err(io::Error::new(ErrorKind::InvalidData, error.to_string())),
        };
        match message.payload {
            NetlinkPayload::Done(done) if done.code != 0 => return Err(io::Error::from_raw_os_error(-done.code)),
            NetlinkPayload::Done(_) => return Ok(true),
            NetlinkPayload::Error(error) if error.code.is_none() => return Ok(true),
            NetlinkPayload::Error(error) => return Err(error.to_io()),
            NetlinkPayload::InnerMessage(answer) => answers.push(answer),
            _ => {}
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtnetlink::packet_route::link::LinkMessage;

    fn message(kind: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(16 + body.len()).expect("short");
        [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), &[0; 2], &sequence.to_ne_bytes(), &[0; 4], body].concat()
    }

    fn error(code: i32, sequence: u32) -> Vec<u8> {
        message(2, sequence, &[&code.to_ne_bytes()[..], &[0; 16]].concat())
    }

    #[test]
    fn an_answer_is_of_its_request() {
        let mut answers = Vec::new();
        let both = [error(-17, 1), error(0, 2)].concat();
        assert!(read(&both, 2, false, &mut answers).expect("good"), "what an earlier request left is passed over");
        assert_eq!(read(&both, 1, false, &mut answers).expect_err("there is one").raw_os_error(), Some(17));
        assert!(!read(&both, 3, false, &mut answers).expect("neither"));
        assert!(answers.is_empty());
    }

    #[test]
    fn half_a_message_is_an_error_and_no_panic() {
        let whole = error(0, 1);
        for length in 4..whole.len() {
            assert!(read(&whole[..length], 1, false, &mut Vec::new()).is_err(), "{length}");
        }
        for length in [0_u32, 4, 15, u32::MAX] {
            let mut odd = whole.clone();
            odd[..4].copy_from_slice(&length.to_ne_bytes());
            assert!(read(&odd, 1, false, &mut Vec::new()).is_err(), "{length}");
        }
    }

    #[test]
    fn the_loopback_is_found() {
        let mut netlink = Netlink::open().expect("opens");
        let all = netlink.list(RouteNetlinkMessage::GetLink(LinkMessage::default())).expect("lists");
        assert!(!all.is_empty());
    }
}
