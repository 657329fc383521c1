//! `admission.k8s.io/v1`: the question read, the answer written.

use crate::check::OURS;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;

const VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// What an API server asks.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    #[serde(borrow)]
    api_version: Option<Cow<'a, str>>,
    #[serde(borrow)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    request: Option<Request<'a>>,
}

/// The request that is to be judged.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Request<'a> {
    #[serde(borrow)]
    pub(super) uid: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) operation: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) namespace: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    sub_resource: Option<Cow<'a, str>>,
    #[serde(borrow)]
    kind: Option<Kind<'a>>,
    #[serde(borrow)]
    pub(super) object: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) old_object: Option<&'a RawValue>,
    #[serde(default)]
    pub(super) dry_run: bool,
}

#[derive(Debug, Deserialize)]
struct Kind<'a> {
    #[serde(borrow, default)]
    group: Cow<'a, str>,
    #[serde(borrow, default)]
    kind: Cow<'a, str>,
}

/// No answer can be given that an API server would take.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreadable {
    #[error("the request is no AdmissionReview")]
    Json(#[source] serde_json::Error),
    #[error("the request is a {kind:.80} of {version:.80}, not an {KIND} of {VERSION}")]
    Version { kind: String, version: String },
    #[error("the AdmissionReview has no request")]
    NoRequest,
}

impl<'a> Request<'a> {
    pub(super) fn read(body: &'a [u8]) -> Result<Self, Unreadable> {
        let review: Review<'a> = serde_json::from_slice(body).map_err(Unreadable::Json)?;
        let (version, kind) = (review.api_version.unwrap_or_default(), review.kind.unwrap_or_default());
        if version != VERSION || kind != KIND {
            return Err(Unreadable::Version { kind: kind.into_owned(), version: version.into_owned() });
        }
        review.request.ok_or(Unreadable::NoRequest)
    }

    /// Whether a pod is being created: all else passes as it is.
    pub(super) fn creates_a_pod(&self) -> bool {
        let pod = self.kind.as_ref().is_some_and(|kind| kind.group.is_empty() && kind.kind == "Pod");
        pod && self.operation == "CREATE" && self.sub_resource.as_deref().unwrap_or_default().is_empty()
    }
}

impl Request<'_> {
    /// Whether an object of this kind of ours is being created or changed, and not a part of it: all else passes as it is.
    pub(super) fn writes(&self, wanted: &str) -> bool {
        let ours = |kind: &Kind<'_>| kind.group == "spiderpool.spidernet.io" && kind.kind == wanted;
        self.kind.as_ref().is_some_and(ours)
            && matches!(&*self.operation, "CREATE" | "UPDATE")
            && self.sub_resource.as_deref().unwrap_or_default().is_empty()
    }
}

/// What an API server is answered.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Response<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    audit_annotations: BTreeMap<&'static str, String>,
}

/// An API server cuts longer warnings itself, and drops them when there is too much text in all.
const WARNING_CHARS: usize = 240;
const WARNINGS: usize = 10;
/// Enough for a person; an audit log keeps it for every pod.
const REASON_CHARS: usize = 1000;

impl<'a> Response<'a> {
    pub(super) fn allowed(uid: &'a str) -> Self {
        let (warnings, audit_annotations) = (Vec::new(), BTreeMap::new());
        Self { uid, allowed: true, status: None, patch_type: None, patch: None, warnings, audit_annotations }
    }

    pub(super) fn refused(uid: &'a str, message: &str) -> Self {
        Self::denied(
            uid,
            json!({"code": 400, "reason": "BadRequest", "message": clip(message.to_owned(), REASON_CHARS)}),
        )
    }

    /// Refused with a Status of our own, which reaches the client as it is but for the webhook's name before its message.
    pub(super) fn denied(uid: &'a str, status: Value) -> Self {
        Self { allowed: false, status: Some(status), ..Self::allowed(uid) }
    }

    pub(super) fn patch(mut self, operations: &[Value]) -> Self {
        if !operations.is_empty() {
            self.patch_type = Some("JSONPatch");
            self.patch = Some(STANDARD.encode(json!(operations).to_string()));
        }
        self
    }

    pub(super) fn warn(mut self, warnings: Vec<String>) -> Self {
        let more = warnings.len().saturating_sub(WARNINGS);
        let shown =
            warnings.into_iter().take(WARNINGS).map(|warning| format!("{OURS}{}", clip(warning, WARNING_CHARS)));
        self.warnings.extend(shown);
        if more > 0 {
            self.warnings.push(format!("{OURS}and {more} more of this kind"));
        }
        self
    }

    /// Shows in the audit log under the name of the webhook.
    pub(super) fn audit(mut self, reason: String) -> Self {
        self.audit_annotations.insert("injected", clip(reason, REASON_CHARS));
        self
    }

    pub(super) fn write(&self) -> Vec<u8> {
        json!({"apiVersion": VERSION, "kind": KIND, "response": self}).to_string().into_bytes()
    }
}

fn clip(text: String, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        None => text,
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}
