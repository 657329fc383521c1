//! Frames as they are on the wire.

use std::fmt;

/// An address of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mac(pub(crate) [u8; 6]);

impl Mac {
    pub(super) const BROADCAST: Self = Self([0xff; 6]);

    /// Of one device: six pairs of digits between colons, not all zero and of no group.
    pub(crate) fn of_device(text: &str) -> Option<Self> {
        let mut bytes = [0; 6];
        let mut pairs = text.split(':');
        for byte in &mut bytes {
            let pair = pairs.next().filter(|pair| pair.len() == 2 && pair.chars().all(|c| c.is_ascii_hexdigit()))?;
            *byte = u8::from_str_radix(pair, 16).ok()?;
        }
        let [first, ..] = bytes;
        (pairs.next().is_none() && bytes != [0; 6] && first & 1 == 0).then_some(Self(bytes))
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0.map(|byte| format!("{byte:02x}"));
        f.write_str(&bytes.join(":"))
    }
}

/// What a frame carries.
pub(super) const ARP: u16 = 0x0806;
pub(super) const IPV6: u16 = 0x86dd;

/// One frame, read. One with a VLAN tag has that as its kind, and so is nobody's here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    pub(super) to: Mac,
    pub(super) from: Mac,
    pub(super) kind: u16,
    /// With the padding of short frames.
    pub(super) body: &'a [u8],
}

impl<'a> Frame<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let (to, rest) = bytes.split_first_chunk()?;
        let (from, rest) = rest.split_first_chunk()?;
        let (kind, body) = rest.split_first_chunk()?;
        Some(Self { to: Mac(*to), from: Mac(*from), kind: u16::from_be_bytes(*kind), body })
    }
}

/// The beginning of a frame.
pub(super) fn header(to: Mac, from: Mac, kind: u16) -> Vec<u8> {
    [&to.0[..], &from.0, &kind.to_be_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_as_it_is_written() {
        let (to, from) = (Mac([1, 2, 3, 4, 5, 6]), Mac([7, 8, 9, 10, 11, 12]));
        let mut bytes = header(to, from, ARP);
        assert_eq!(Frame::read(&bytes), Some(Frame { to, from, kind: ARP, body: &[] }));
        for length in 0..14 {
            assert_eq!(Frame::read(&bytes[..length]), None, "{length}");
        }
        bytes.push(0xaa);
        assert_eq!(Frame::read(&bytes).map(|frame| frame.body), Some(&[0xaa][..]));
        assert_eq!(from.to_string(), "07:08:09:0a:0b:0c");
    }

    #[test]
    fn a_device_has_one_of_its_own() {
        assert_eq!(Mac::of_device("Fa:16:3e:AA:bb:cc"), Some(Mac([0xfa, 0x16, 0x3e, 0xaa, 0xbb, 0xcc])));
        for text in [
            "",
            "00:00:00:00:00:00",
            "ff:ff:ff:ff:ff:ff",
            "01:00:5e:00:00:01",
            "fa:16:3e:aa:bb",
            "fa:16:3e:aa:bb:cc:dd",
            "fa-16-3e-aa-bb-cc",
            "+a:16:3e:aa:bb:cc",
            "fa:16:3e:aa:bb:c",
            "fa:16:3e:aa:bb:cg",
            " fa:16:3e:aa:bb:cc",
            "é:16:3e:aa:bb:cc",
        ] {
            assert_eq!(Mac::of_device(text), None, "{text}");
        }
    }
}
