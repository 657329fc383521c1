//! A word on standard error where something takes more than two seconds.

use std::time::{Duration, Instant};

const QUIET: Duration = Duration::from_secs(2);

pub(crate) struct Progress {
    what: String,
    next: Instant,
}

impl Progress {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), next: Instant::now() + QUIET }
    }

    /// So far it has come.
    pub(crate) fn at(&mut self, state: &str) {
        let now = Instant::now();
        if now >= self.next {
            self.next = now + QUIET;
            eprintln!("{}: {}", crate::plain::plain(&self.what), crate::plain::plain(state));
        }
    }
}
