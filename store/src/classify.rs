//! What an answer of the API server means.

use bytes::Bytes;
use http::StatusCode;
use ipam_core::StoreError;
use serde::Deserialize;
use std::time::Duration;

/// Longer texts are of proxies.
const TEXT_MAX: usize = 500;

/// The body of a good answer, or what the other kind means.
pub(crate) fn judge(status: StatusCode, retry_after: Option<&str>, body: Bytes) -> Result<Bytes, StoreError> {
    if status.is_success() {
        return Ok(body);
    }
    let said = Said::of(&body);
    match status.as_u16() {
        404 | 410 => Err(StoreError::Gone),
        // Nothing is made any more in a namespace that goes: as if it were gone.
        403 if said.details.ending() => Err(StoreError::Gone),
        409 => Err(StoreError::Conflict),
        429 => {
            let header = retry_after.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
            Err(StoreError::Throttled { after: header.or(said.details.after()) })
        }
        // A proxy may have answered, or a server that was cut off.
        408 | 499 => Err(StoreError::Unknown(format!("{status}: {}", said.message))),
        400..=499 => Err(StoreError::Refused(said.message)),
        _ => Err(StoreError::Unknown(format!("{status}: {}", said.message))),
    }
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Said {
    message: String,
    details: Details,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Details {
    retry_after_seconds: Option<u64>,
    causes: Vec<Cause>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Cause {
    reason: String,
}

/// Cause of a refusal to create something.
const NAMESPACE_ENDS: &str = "NamespaceTerminating";

impl Details {
    fn ending(&self) -> bool {
        self.causes.iter().any(|cause| cause.reason == NAMESPACE_ENDS)
    }

    fn after(&self) -> Option<Duration> {
        self.retry_after_seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs)
    }
}

impl Said {
    fn of(body: &[u8]) -> Self {
        serde_json::from_slice(body).ok().filter(|said: &Self| !said.message.is_empty()).unwrap_or_else(|| {
            let text = String::from_utf8_lossy(body);
            let text = text.trim();
            let message = text.get(..text.floor_char_boundary(TEXT_MAX)).unwrap_or_default().to_owned();
            Self { message, details: Details::default() }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As kube-apiserver says it.
    const ENDING: &str = r#"{"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403,
        "message": "spiderendpoints.spiderpool.spidernet.io \"web\" is forbidden: unable to create new content in namespace x because it is being terminated",
        "details": {"name": "web", "group": "spiderpool.spidernet.io", "kind": "spiderendpoints", "causes": [
            {"reason": "NamespaceTerminating", "message": "namespace x is being terminated", "field": "metadata.namespace"}]}}"#;

    #[test]
    fn each_answer_has_its_class() {
        let unknown = |text: &str| StoreError::Unknown(text.to_owned());
        let refused = |text: &str| StoreError::Refused(text.to_owned());
        let throttled = |after: Option<u64>| StoreError::Throttled { after: after.map(Duration::from_secs) };
        let busy = "{\"message\": \"busy\", \"details\": {\"retryAfterSeconds\": 7}}";
        for (status, after, body, error) in [
            (404, None, "{}", StoreError::Gone),
            (409, None, "{}", StoreError::Conflict),
            (429, Some("3"), busy, throttled(Some(3))),
            (429, None, busy, throttled(Some(7))),
            (429, Some("tomorrow"), "Too many requests", throttled(None)),
            (403, None, "{\"message\": \"no right\"}", refused("no right")),
            (403, None, ENDING, StoreError::Gone),
            (403, None, "{\"message\": \"no\", \"details\": {\"causes\": [{\"reason\": \"X\"}, {}]}}", refused("no")),
            (
                422,
                None,
                "{\"message\": \"invalid\", \"details\": null}",
                refused("{\"message\": \"invalid\", \"details\": null}"),
            ),
            (400, None, " plain ", refused("plain")),
            (401, None, "", refused("")),
            (408, None, "x", unknown("408 Request Timeout: x")),
            (500, None, "{\"message\": \"etcd\"}", unknown("500 Internal Server Error: etcd")),
            (503, Some("1"), "", unknown("503 Service Unavailable: ")),
            (302, None, "", unknown("302 Found: ")),
        ] {
            let status = StatusCode::from_u16(status).expect("a status");
            assert_eq!(judge(status, after, Bytes::from_static(body.as_bytes())), Err(error), "{status}");
        }
        assert_eq!(judge(StatusCode::CREATED, None, Bytes::from_static(b"x")), Ok(Bytes::from_static(b"x")));
        let long = Bytes::from(vec![b'x'; 5000]);
        assert_eq!(judge(StatusCode::FORBIDDEN, None, long), Err(refused(&"x".repeat(TEXT_MAX))));
    }
}
