//! Whole answers.

use crate::wire::AllocateResponse;
use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use serde_json::json;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// What there is to say, before any fault.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: Content,
}

/// The body of an [`Answer`].
#[derive(Clone, Debug)]
pub(super) enum Content {
    /// What was bound.
    Bound(AllocateResponse),
    /// All else, as JSON.
    Other(String),
}

impl Answer {
    #[allow(clippy::needless_pass_by_value, reason = "texts and errors are handed over alike")]
    pub(super) fn refusal(status: StatusCode, why: impl ToString) -> Self {
        Self { status, body: Content::Other(json!({ "error": why.to_string() }).to_string()) }
    }

    pub(super) fn text(&self) -> String {
        match &self.body {
            Content::Bound(bound) => serde_json::to_string(bound).unwrap_or_default(),
            Content::Other(text) => text.clone(),
        }
    }

    pub(super) fn response(&self) -> Response {
        text(self.status, self.text())
    }
}

/// JSON of a value.
pub(super) fn json_of(value: &impl Serialize) -> Response {
    match serde_json::to_string(value) {
        Ok(body) => text(StatusCode::OK, body),
        Err(error) => problem(StatusCode::INTERNAL_SERVER_ERROR, error),
    }
}

/// What is wrong, as JSON.
pub(super) fn problem(status: StatusCode, why: impl ToString) -> Response {
    Answer::refusal(status, why).response()
}

/// A text that is JSON.
pub(super) fn text(status: StatusCode, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response
}
