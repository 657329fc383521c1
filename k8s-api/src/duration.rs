//! Durations as Go reads and writes them (`time.ParseDuration`, `Duration.String`): `50s`, `1m30s`, `1.5h`. (The reader that
//! comes with kube panics at what no clock can count, and at a sign in the middle.)

use crate::Quoted;
use std::time::Duration;

/// A duration with the sign that it was written with; zero has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signed {
    /// Whether it lies below zero.
    pub negative: bool,
    /// How long it is.
    pub size: Duration,
}

/// Why a text is no duration, in Go's words: people look these up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoDuration<'t> {
    /// It has another shape, or is longer than Go can count (292 years).
    #[error("time: invalid duration {}", Quoted(.0))]
    Invalid(&'t str),
    /// A number stands alone.
    #[error("time: missing unit in duration {}", Quoted(.0))]
    NoUnit(&'t str),
    /// A unit that there is not.
    #[error("time: unknown unit {} in duration {}", Quoted(.unit), Quoted(.text))]
    Unit {
        /// The unit.
        unit: &'t str,
        /// All of it.
        text: &'t str,
    },
}

/// Reads one, of either sign.
pub fn parse(text: &str) -> Result<Signed, NoDuration<'_>> {
    let invalid = NoDuration::Invalid(text);
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Ok(Signed { negative: false, size: Duration::ZERO });
    }
    if rest.is_empty() {
        return Err(invalid);
    }
    let mut total = 0_u64;
    while !rest.is_empty() {
        let (whole, after) = digits(rest);
        let (fraction, after) = after.strip_prefix('.').map_or(("", after), digits);
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid);
        }
        let (unit, after) = after.split_at(after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len()));
        if unit.is_empty() {
            return Err(NoDuration::NoUnit(text));
        }
        let one = nanos_of(unit).ok_or(NoDuration::Unit { unit, text })?;
        let part = nanos(whole, fraction, one).ok_or(invalid)?;
        total = total.checked_add(part).filter(|total| *total <= LONGEST).ok_or(invalid)?;
        rest = after;
    }
    Ok(Signed { negative: negative && total > 0, size: Duration::from_nanos(total) })
}

/// None if it is no duration, a negative one, or longer than any clock can count.
#[must_use]
pub fn read(text: &str) -> Option<Duration> {
    parse(text).ok().filter(|read| !read.negative).map(|read| read.size)
}

/// As Go prints it: `50s`, `1m40s`, `1h0m0s`, `1.5s`, `300µs`.
#[must_use]
pub fn go(duration: Duration) -> String {
    let (seconds, nanos) = (duration.as_secs(), duration.subsec_nanos());
    let below = match (seconds, nanos) {
        (0, 0) => return "0s".to_owned(),
        (0, 1..1_000) => Some((0, "ns")),
        (0, 1_000..1_000_000) => Some((3, "\u{b5}s")),
        (0, _) => Some((6, "ms")),
        _ => None,
    };
    if let Some((places, unit)) = below {
        return format!("{}{unit}", point(u64::from(nanos), places));
    }
    let tail = format!("{}s", point(seconds % 60 * 1_000_000_000 + u64::from(nanos), 9));
    match (seconds / 3600, seconds / 60 % 60) {
        (0, 0) => tail,
        (0, minutes) => format!("{minutes}m{tail}"),
        (hours, minutes) => format!("{hours}h{minutes}m{tail}"),
    }
}

/// Nanoseconds in Go's signed 64 bits.
const LONGEST: u64 = u64::MAX >> 1;

/// Digits behind the point beyond these are below a nanosecond of any unit.
const PLACES: usize = 18;

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

fn nanos_of(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        // Micro sign, and the Greek letter.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// `whole.fraction` times `one`; none where that is too much.
fn nanos(whole: &str, fraction: &str, one: u64) -> Option<u64> {
    let whole = if whole.is_empty() { 0 } else { whole.parse::<u64>().ok()? };
    let fraction = fraction.get(..PLACES).unwrap_or(fraction);
    let (mut part, mut scale) = (0_u128, 1_u128);
    for digit in fraction.bytes() {
        part = part * 10 + u128::from(digit.saturating_sub(b'0'));
        scale *= 10;
    }
    let part = u64::try_from(part * u128::from(one) / scale).ok()?;
    whole.checked_mul(one)?.checked_add(part)
}

/// A number with its point moved `places` to the left, without zeros at its end.
fn point(number: u64, places: u32) -> String {
    let scale = 10_u64.pow(places);
    let (whole, rest) = (number / scale, number % scale);
    if rest == 0 {
        return whole.to_string();
    }
    let width = usize::try_from(places).unwrap_or_default();
    format!("{whole}.{}", format!("{rest:0width$}").trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn as_go_reads_them() {
        for (text, millis) in [
            ("50s", 50_000),
            ("1m30s", 90_000),
            ("1.5h", 5_400_000),
            (".5s", 500),
            ("1.s", 1000),
            ("+1s", 1000),
            ("0", 0),
            ("0s", 0),
            ("-0s", 0),
            ("1500us", 1),
            ("1500\u{b5}s", 1),
            ("1500\u{3bc}s", 1),
            ("2000000ns", 2),
        ] {
            assert_eq!(read(text).map(|read| read.as_millis()), Some(millis), "{text}");
        }
        for text in
            ["", "+", "50", "s", ".", ".s", "1x", "1h-5m", "-1s", "--1s", "1 s", "1e3s", "infs", "nans", "1..5s"]
        {
            assert_eq!(read(text), None, "{text:?}");
        }
        assert_eq!(read(&format!("{}h", "9".repeat(30))), None);
        assert_eq!(read(&format!("0.{}s", "9".repeat(30))), Some(Duration::from_nanos(999_999_999)));
        assert_eq!(read("2562047h47m16.854775807s"), Some(Duration::from_nanos(LONGEST)), "the longest that Go has");
        assert_eq!(read("2562047h47m16.854775808s"), None);
        assert_eq!(parse("-1.5h"), Ok(Signed { negative: true, size: Duration::from_mins(90) }));
    }

    #[test]
    fn in_the_words_of_go() {
        for (text, words) in [
            ("", "time: invalid duration \"\""),
            ("-", "time: invalid duration \"-\""),
            (".s", "time: invalid duration \".s\""),
            ("ten", "time: invalid duration \"ten\""),
            ("1h-5m", "time: unknown unit \"h-\" in duration \"1h-5m\""),
            ("50", "time: missing unit in duration \"50\""),
            ("5 s", "time: unknown unit \" s\" in duration \"5 s\""),
            ("9999999h", "time: invalid duration \"9999999h\""),
        ] {
            assert_eq!(parse(text).map_err(|error| error.to_string()), Err(words.to_owned()), "{text:?}");
        }
    }

    #[test]
    fn as_go_prints_them() {
        for (nanos, text) in [
            (0, "0s"),
            (1, "1ns"),
            (1_100, "1.1\u{b5}s"),
            (300_000, "300\u{b5}s"),
            (2_200_000, "2.2ms"),
            (1_500_000_000, "1.5s"),
            (50_000_000_000, "50s"),
            (100_000_000_000, "1m40s"),
            (120_000_000_000, "2m0s"),
            (3_600_000_000_000, "1h0m0s"),
            (18_367_001_000_000, "5h6m7.001s"),
        ] {
            assert_eq!(go(Duration::from_nanos(nanos)), text);
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "[-+0-9.a-zµ ]{0,40}") {
            prop_assert!(read(&text).is_none_or(|read| read < Duration::MAX));
        }

        #[test]
        fn what_is_printed_reads_as_it_was(nanos in 0..=LONGEST) {
            let duration = Duration::from_nanos(nanos);
            prop_assert_eq!(read(&go(duration)), Some(duration));
        }
    }
}
