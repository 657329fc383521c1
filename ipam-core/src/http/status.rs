//! What a status means.

use super::error::CallError;
use crate::provider::text::printable;
use reqwest::StatusCode;

/// Whether a complete answer is a yes, a no, or one of a proxy that says nothing of what the provider did. Source:
/// address-lifecycle, section 3.
pub(super) fn judge(status: StatusCode, body: &[u8]) -> Result<(), CallError> {
    let text = || String::from_utf8_lossy(body.get(..4096).unwrap_or(body)).into_owned();
    match status.as_u16() {
        200..=299 => Ok(()),
        300..=399 | 408 | 499 | 502..=504 => Err(CallError::Doubtful(status, text())),
        _ => Err(CallError::Refused(status, text())),
    }
}

pub(super) fn shown(status: StatusCode, body: &str) -> String {
    let body = printable(body);
    if body.is_empty() { status.as_u16().to_string() } else { format!("{}: {body}", status.as_u16()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_have_answered_counts() {
        for code in 200..=599 {
            let status = StatusCode::from_u16(code).expect("a status");
            let judged = judge(status, b" no\x07 ");
            let (good, doubtful) = (judged.is_ok(), matches!(judged, Err(CallError::Doubtful(..))));
            let expected = matches!(code, 300..=399 | 408 | 499 | 502 | 503 | 504);
            assert_eq!((good, doubtful), (code < 300, expected), "{code}");
        }
        assert_eq!(shown(StatusCode::CONFLICT, " no\u{7} way\n"), "409: no way");
        assert_eq!(shown(StatusCode::CONFLICT, ""), "409");
    }
}
