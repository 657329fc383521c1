//! MAC addresses as people and programs write them.

/// Six pairs of hex digits between colons, of one device (no group address, not all zero), in lower case; none if it is no such.
pub(super) fn read(text: &str) -> Option<String> {
    let octets: Vec<u8> = text
        .split(':')
        .map(|pair| {
            let hex = pair.len() == 2 && pair.bytes().all(|byte| byte.is_ascii_hexdigit());
            hex.then(|| u8::from_str_radix(pair, 16).ok()).flatten()
        })
        .collect::<Option<_>>()?;
    let device = octets.first().is_some_and(|first| first & 1 == 0) && octets.iter().any(|octet| *octet != 0);
    (octets.len() == 6 && device).then(|| text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_devices_are_read() {
        assert_eq!(read("FA:16:3e:AA:bb:cc").as_deref(), Some("fa:16:3e:aa:bb:cc"));
        for text in [
            "",
            "00:00:00:00:00:00",
            "01:00:5e:00:00:01",
            "ff:ff:ff:ff:ff:ff",
            "02:00:00:00:00",
            "02:00:00:00:00:01:02",
            "02-00-00-00-00-01",
            "2:0:0:0:0:1",
            "+2:00:00:00:00:01",
            " 02:00:00:00:00:01",
            "02:00:00:00:00:0g",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
