//! What is said of what is left behind.

use super::judge::{By, Kind, Leak};
use crate::plain::plain;
use crate::table::table;
use serde::Serialize;
use std::fmt::Write;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer {
    leaks: Vec<Leak>,
    /// How many of them nobody will free.
    stuck: usize,
    /// What could not be looked at, and why.
    not_seen: Vec<String>,
}

impl Answer {
    pub(super) fn new(leaks: Vec<Leak>, not_seen: Vec<String>) -> Self {
        let stuck = leaks.iter().filter(|leak| leak.freed_by == By::Nobody).count();
        Self { leaks, stuck, not_seen }
    }

    pub(super) fn is_stuck(&self) -> bool {
        self.stuck > 0
    }

    pub(super) fn table(&self) -> String {
        let mut text = if self.leaks.is_empty() {
            "nothing is left behind\n".to_owned()
        } else {
            let rows: Vec<_> = self.leaks.iter().map(row).collect();
            table(["WHAT", "POOL", "POD", "NODE", "WHY", "FREED BY", "WHEN"], &rows)
        };
        for what in &self.not_seen {
            // A `String` takes everything.
            let _ = writeln!(text, "not looked at: {}", plain(what));
        }
        if self.stuck > 0 {
            let _ = writeln!(text, "\n{} of {} stay until somebody does something", self.stuck, self.leaks.len());
        }
        text
    }
}

fn row(leak: &Leak) -> [String; 7] {
    let dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    let what = match leak.kind {
        Kind::Address => leak.what.clone(),
        Kind::Endpoint => format!("endpoint {}", leak.what),
    };
    let by = match leak.freed_by {
        By::Agent => "agent",
        By::Controller => "controller",
        By::Kubernetes => "Kubernetes",
        By::Nobody => "NOBODY",
    };
    [
        what,
        dash(leak.pool.as_deref().unwrap_or_default()),
        dash(&leak.pod),
        dash(&leak.node),
        leak.reason.clone(),
        by.to_owned(),
        leak.when.clone(),
    ]
}
