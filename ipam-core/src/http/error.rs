//! What kept a call from a good answer, in the words of the contract's page.

use super::status::shown;
use crate::{BadAnswer, Outcome};
use reqwest::StatusCode;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Allocate,
    Release,
}

#[derive(Debug)]
pub(super) enum CallError {
    /// The provider is not, or no longer, named by the configuration.
    Unserved(String),
    Credentials {
        path: PathBuf,
        why: String,
    },
    /// No connection: nothing was sent.
    Connect(String),
    /// The deadline had passed before anything was sent.
    Late,
    Transport(String),
    Body(String),
    /// The limit of one call.
    Timeout(Duration),
    /// The caller's own time.
    Parent,
    /// A proxy may have answered.
    Doubtful(StatusCode, String),
    Refused(StatusCode, String),
    Bad(BadAnswer),
}

impl Operation {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Allocate => "allocate",
            Self::Release => "release",
        }
    }
}

impl CallError {
    pub(super) fn outcome<T>(self, operation: Operation) -> Outcome<T> {
        let text = self.text(operation.name());
        match self {
            Self::Unserved(_) | Self::Credentials { .. } | Self::Connect(_) | Self::Late => Outcome::Unsent(text),
            Self::Transport(_) | Self::Body(_) | Self::Timeout(_) | Self::Parent | Self::Doubtful(..) => {
                Outcome::Unknown(text)
            }
            Self::Refused(..) | Self::Bad(_) => Outcome::Rejected(text),
        }
    }

    fn text(&self, operation: &str) -> String {
        match self {
            Self::Unserved(server) => {
                format!("provider {server} is neither iaasNetworkProvider.serverUrl nor one of its formerServers")
            }
            Self::Credentials { path, why } => format!("cannot use {}: {why}", path.display()),
            Self::Connect(why) => format!("iaas {operation} API call failed, nothing was sent: {why}"),
            Self::Late => format!("iaas {operation} API call was not sent: its time was over"),
            Self::Transport(why) => format!("iaas {operation} API call failed: {why}"),
            Self::Body(why) => format!("failed to read {operation} response: {why}"),
            Self::Timeout(limit) => {
                format!("provider-interaction timeout: IaaS {operation} API call exceeded configured timeout {limit:?}")
            }
            Self::Parent => {
                format!("parent budget exhausted: IaaS {operation} API call cancelled by parent context deadline")
            }
            Self::Doubtful(status, body) | Self::Refused(status, body) => {
                format!("iaas {operation} API returned status {}", shown(*status, body))
            }
            Self::Bad(why) => why.to_string(),
        }
    }
}

/// An error and what is behind it, without the URL, which may say more than people should see.
pub(super) fn chain(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(inner) = source {
        let inner_text = inner.to_string();
        if !text.ends_with(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        source = inner.source();
    }
    crate::provider::text::printable(&text)
}
