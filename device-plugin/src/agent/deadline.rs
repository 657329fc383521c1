//! How long a plugin waits, by the header `grpc-timeout`.

use std::time::Duration;
use tonic::metadata::MetadataMap;

/// Nobody gets more: a sandbox has 4 minutes for all of its interfaces.
pub(super) const LONGEST: Duration = Duration::from_secs(100);

/// Of one request; one without a readable header has the longest.
pub(super) fn of(metadata: &MetadataMap) -> Duration {
    let header = metadata.get("grpc-timeout").and_then(|header| header.to_str().ok());
    header.and_then(parse).unwrap_or(LONGEST).min(LONGEST)
}

/// One to eight digits and a unit, by the gRPC specification.
fn parse(header: &str) -> Option<Duration> {
    let (digits, unit) = header.split_at_checked(header.len().checked_sub(1)?)?;
    let digits = Some(digits).filter(|digits| digits.len() <= 8 && digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    let number: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(number.checked_mul(3600)?)),
        "M" => Some(Duration::from_secs(number.checked_mul(60)?)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(header: &'static str) -> Duration {
        let mut metadata = MetadataMap::new();
        metadata.insert("grpc-timeout", header.parse().expect("a header"));
        of(&metadata)
    }

    #[test]
    fn is_read_and_has_a_limit() {
        for (header, millis) in [("55S", 55_000), ("55000000u", 55_000), ("1M", 60_000), ("20m", 20), ("0S", 0)] {
            assert_eq!(given(header), Duration::from_millis(millis), "{header}");
        }
        for header in ["101S", "1H", "99999999H", "", "S", "5", "+5S", "123456789S", "5s", "5.5S"] {
            assert_eq!(given(header), LONGEST, "{header}");
        }
        assert_eq!(of(&MetadataMap::new()), LONGEST);
    }
}
