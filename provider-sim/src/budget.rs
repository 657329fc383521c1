//! How long a provider may work on a request.

use crate::ask::Breach;
use crate::wire::BUDGET;
use http::HeaderMap;
use std::time::Duration;

/// Digits of the longest budget that is read, which is longer than any.
const DIGITS: usize = 15;

/// Reads the header. A positive number of milliseconds, once.
pub(crate) fn budget(headers: &HeaderMap) -> Result<Duration, Breach> {
    let wrong = |why: &str| Breach::new("X-Request-Timeout-Ms", why);
    let mut values = headers.get_all(BUDGET).iter();
    let Some(value) = values.next() else {
        return Err(wrong("the header is missing; say how many milliseconds there are"));
    };
    if values.next().is_some() {
        return Err(wrong("the header is there more than once"));
    }
    let digits = value
        .to_str()
        .ok()
        .filter(|text| text.len() <= DIGITS && !text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit()));
    let milliseconds = digits.and_then(|digits| digits.parse().ok());
    milliseconds.map(Duration::from_millis).ok_or_else(|| wrong("it must be a positive whole number, such as 50000"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn a_positive_number_once() {
        let read = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(BUDGET, HeaderValue::from_static(value));
            }
            budget(&headers)
        };
        assert_eq!(read(&["50000"]), Ok(Duration::from_secs(50)));
        assert_eq!(read(&["1"]), Ok(Duration::from_millis(1)));
        for wrong in ["", "0", "-1", "+5", "050", "1.5", "1e3", "50s", " ", "99999999999999999999999"] {
            assert!(read(&[wrong]).is_err(), "{wrong:?}");
        }
        assert!(read(&[]).is_err() && read(&["1", "1"]).is_err());
    }
}
