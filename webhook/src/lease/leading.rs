//! Whether this process may write for the cluster.

use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Leads until a moment that each renewal moves on. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Leading(watch::Receiver<Option<Instant>>);

impl Leading {
    pub(super) fn new(until: watch::Receiver<Option<Instant>>) -> Self {
        Self(until)
    }

    /// Asked right before each write: a lease that could not be renewed ends by itself.
    pub(crate) fn now(&self) -> bool {
        self.0.borrow().is_some_and(|until| Instant::now() < until)
    }

    /// How much longer it leads, unless it is renewed: what a write may take.
    pub(crate) fn left(&self) -> Duration {
        self.0.borrow().map(|until| until.saturating_duration_since(Instant::now())).unwrap_or_default()
    }

    /// Waits until it leads.
    pub(crate) async fn begins(&mut self) {
        while !self.now() {
            self.changed().await;
        }
    }

    /// Waits until it leads no more, whether somebody says so or the lease runs out.
    pub(crate) async fn ends(&mut self) {
        while self.now() {
            let left = self.left();
            tokio::select! {
                () = self.changed() => {}
                () = tokio::time::sleep(left) => {}
            }
        }
    }

    /// Returns once it was renewed, or is known to be lost. A lease that runs out tells nobody.
    pub(crate) async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            // The holder is gone, and with it the process.
            std::future::pending::<()>().await;
        }
    }
}
