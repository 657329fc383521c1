//! Durations in a configuration: seconds, or text as Go writes it.

use serde_json::Value;
use std::time::Duration;

/// `100`, `1.5`, `"100s"`, `"1m40s"`, `"500ms"`; none if it is no duration, or not a positive one.
pub(crate) fn read(value: &Value) -> Option<Duration> {
    let seconds = match value {
        Value::Number(seconds) => seconds.as_f64()?,
        Value::String(text) => sum(text)?,
        _ => return None,
    };
    Duration::try_from_secs_f64(seconds).ok().filter(|duration| !duration.is_zero())
}

fn sum(mut text: &str) -> Option<f64> {
    let mut seconds = 0.0;
    while !text.is_empty() {
        let (number, rest) = text.split_at(text.find(|c: char| !c.is_ascii_digit() && c != '.')?);
        let (unit, rest) = rest.split_at(rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len()));
        let unit = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        seconds += number.parse::<f64>().ok()? * unit;
        text = rest;
    }
    Some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn seconds_and_texts() {
        for (value, millis) in [
            (json!(100), 100_000),
            (json!(1.5), 1500),
            (json!("100s"), 100_000),
            (json!("1m40s"), 100_000),
            (json!("500ms"), 500),
            (json!("1.5h"), 5_400_000),
        ] {
            assert_eq!(read(&value), Some(Duration::from_millis(millis)), "{value}");
        }
        for value in [
            json!(0),
            json!(-1),
            json!(""),
            json!("0s"),
            json!("5"),
            json!("s"),
            json!("-1s"),
            json!("1 s"),
            json!("1d"),
            json!("..s"),
            json!(true),
            json!(1e300),
            json!(null),
        ] {
            assert_eq!(read(&value), None, "{value}");
        }
    }
}
