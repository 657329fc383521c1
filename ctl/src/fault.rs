//! Why a question could not be asked. The program ends with 2 then: nothing is known to be wrong, or right.

use std::time::Duration;

/// Nothing was learned.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// Neither a kubeconfig nor a pod's own account.
    #[error("cannot tell where the API server is; name a kubeconfig with --kubeconfig or KUBECONFIG")]
    NoServer(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The kubeconfig is there, but no client can be made of it.
    #[error("cannot use the kubeconfig for {server}")]
    NoClient {
        /// Its URL.
        server: String,
        #[source]
        error: Box<kube::Error>,
    },
    /// No answer in time.
    #[error("{server} did not answer within {within:?} when asked to {what}; --request-timeout is how long to wait")]
    TooSlow {
        /// Its URL.
        server: String,
        /// Verb and kind.
        what: String,
        within: Duration,
    },
    /// No answer at all.
    #[error("cannot ask {server} to {what}")]
    Unreachable {
        /// Its URL.
        server: String,
        /// Verb and kind.
        what: String,
        #[source]
        error: Box<kube::Error>,
    },
    /// It says no.
    #[error("{server} refuses to {what}: {said}")]
    Refused {
        /// Its URL.
        server: String,
        /// Verb and kind.
        what: String,
        /// Its words.
        said: String,
    },
    /// A question of the store.
    #[error("cannot {what} at {server}")]
    Store {
        /// Its URL.
        server: String,
        /// What for.
        what: String,
        #[source]
        error: store::StoreError,
    },
    /// What was typed.
    #[error("{0}")]
    Usage(String),
    /// Nobody reads what we write.
    #[error("cannot write the output")]
    Output(#[source] std::io::Error),
    /// Nobody answers us.
    #[error("cannot read the answer to the question")]
    Input(#[source] std::io::Error),
    /// No thread for the work.
    #[error("cannot start")]
    Start(#[source] std::io::Error),
}

/// Why one thing could not be looked at, where the rest can: a right is missing, or the kind is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotSeen(pub(crate) String);

/// What was looked at, or why it was not.
pub(crate) type Seen<T> = Result<T, NotSeen>;

/// An error and what led to it, on one line; what repeats what was said already is left out.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = error.source();
    }
    text
}
