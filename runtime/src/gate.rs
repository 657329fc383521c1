//! Readiness as handles: the process is ready when each has been released.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// How often a process that is not ready says what it waits for.
const REMIND: Duration = Duration::from_secs(10);

/// What still has to happen before the process is ready.
#[derive(Clone, Debug)]
pub struct Gate(watch::Sender<BTreeSet<&'static str>>);

/// One condition. Dropping it without [`Hold::release`] leaves the process unready for good, so a failed start cannot
/// look like a finished one.
#[derive(Debug)]
pub struct Hold {
    name: &'static str,
    gate: Gate,
}

impl Default for Gate {
    fn default() -> Self {
        Self(watch::Sender::new(BTreeSet::new()))
    }
}

impl Gate {
    /// Adds a condition, named as a person would wait for it: `own Node`.
    #[must_use]
    pub fn hold(&self, name: &'static str) -> Hold {
        self.0.send_modify(|waiting| {
            waiting.insert(name);
        });
        Hold { name, gate: self.clone() }
    }

    /// Sets `ready` once nothing is waited for, saying meanwhile what is; unsets it first thing on the way out.
    pub async fn open(self, ready: kubert::admin::Readiness, stop: CancellationToken) -> Result<(), Infallible> {
        if stop.run_until_cancelled(self.passed()).await.is_some() {
            ready.set(true);
            tracing::info!("ready");
            stop.cancelled().await;
            ready.set(false);
        }
        Ok(())
    }

    async fn passed(&self) {
        let mut waiting = self.0.subscribe();
        while tokio::time::timeout(REMIND, waiting.wait_for(BTreeSet::is_empty)).await.is_err() {
            tracing::warn!(waiting_for = ?*self.0.borrow(), "not ready yet");
        }
    }
}

impl Hold {
    /// The condition is met.
    pub fn release(self) {
        self.gate.0.send_modify(|waiting| {
            waiting.remove(self.name);
        });
    }
}
