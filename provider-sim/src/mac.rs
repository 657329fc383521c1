//! A MAC address.

use std::fmt;
use std::str::FromStr;

/// Six bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Mac([u8; 6]);

/// The text is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is no MAC address; write six pairs of hexadecimal digits such as fa:16:3e:11:22:33")]
pub(crate) struct InvalidMac;

impl Mac {
    /// One that nobody's hardware has (`02:…`), of these bits.
    #[must_use]
    pub(crate) fn local(bits: u64) -> Self {
        let [_, _, bytes @ ..] = bits.to_be_bytes();
        let mut mac = Self(bytes);
        let [first, ..] = &mut mac.0;
        *first = 0x02;
        mac
    }

    /// Whether an interface can have it: not of a group, not zero.
    #[must_use]
    pub(crate) fn is_of_one(self) -> bool {
        let [first, ..] = self.0;
        first & 1 == 0 && self.0 != [0; 6]
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            let before = if at == 0 { "" } else { ":" };
            write!(f, "{before}{byte:02x}")?;
        }
        Ok(())
    }
}

impl FromStr for Mac {
    type Err = InvalidMac;

    fn from_str(text: &str) -> Result<Self, InvalidMac> {
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let pair = parts.next().filter(|pair| pair.len() == 2 && pair.bytes().all(|b| b.is_ascii_hexdigit()));
            *byte = pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()).ok_or(InvalidMac)?;
        }
        if parts.next().is_some() { Err(InvalidMac) } else { Ok(Self(bytes)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_and_written_alike() {
        let mac: Mac = "FA:16:3e:11:22:33".parse().expect("a MAC address");
        assert_eq!(mac.to_string(), "fa:16:3e:11:22:33");
        for text in
            ["", "fa:16:3e:11:22", "fa:16:3e:11:22:33:44", "fa:16:3e:11:22:3", "fa-16-3e-11-22-33", "+a:16:3e:11:22:33"]
        {
            assert_eq!(text.parse::<Mac>(), Err(InvalidMac), "{text:?}");
        }
    }

    #[test]
    fn some_are_for_no_interface() {
        let fits = |text: &str| text.parse::<Mac>().expect("a MAC address").is_of_one();
        assert!(fits("02:00:00:00:00:00"));
        assert!(!fits("00:00:00:00:00:00") && !fits("ff:ff:ff:ff:ff:ff") && !fits("01:00:5e:00:00:01"));
        assert!(Mac::local(u64::MAX).is_of_one());
    }
}
