//! Whether a provider keeps the contract. It does not use our client: a mistake of that would be in here, too.
//!
//! ```text
//! Target ──> Session: calls, and knows what may be bound ──> each Id of ALL ──> Seen ──> Line ──> told, Report
//!                         └── in the end, whatever happened: releases what may be bound
//! ```

mod answer;
mod caller;
mod cases;
mod id;
mod report;
mod session;

pub use caller::{CannotCall, Credentials};
pub use id::{About, Id, Level, NoSuchCheck};
pub use report::{Line, Report, Verdict};
pub use session::{Bounds, Place};

use caller::Caller;
use session::Session;
use tokio_util::sync::CancellationToken;

/// What is checked, and how.
#[derive(Clone, Debug)]
pub struct Target {
    /// The provider's `serverUrl`.
    pub url: String,
    /// What it wants to see.
    pub credentials: Credentials,
    /// Node, NIC and addresses that are used.
    pub place: Place,
    /// How long things take.
    pub bounds: Bounds,
    /// Which checks run; all of them if none is named.
    pub only: Vec<Id>,
}

/// Runs all checks and tells each as it ends. Cancelling `stop` goes straight to the end, where what may be bound is released.
pub async fn check(target: Target, stop: CancellationToken, mut tell: impl FnMut(&Line)) -> Result<Report, CannotCall> {
    let Target { url, credentials, place, bounds, only } = target;
    let session = Session::new(Caller::new(&url, &credentials)?, place, bounds);
    let mut lines = Vec::new();
    let mut unusable = None;
    for id in Id::ALL.into_iter().filter(|id| only.is_empty() || only.contains(id)) {
        let seen = match &unusable {
            Some(why) => Some(Err(cases::Short::skip(*why))),
            None => stop.run_until_cancelled(session.look(id)).await,
        };
        let Some(seen) = seen else { break };
        if id == Id::AllocateBinds && seen.is_err() && !session.was_answered_well() {
            unusable = Some("allocate-binds failed: without a good answer to the first call there is nothing to see");
        }
        let line = Line::of(id, seen);
        tell(&line);
        lines.push(line);
    }
    let left = session.clean_up().await;
    Ok(Report { lines, stopped: stop.is_cancelled(), left_bound: left })
}
