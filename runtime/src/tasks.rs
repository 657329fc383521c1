//! The one spawner of a process, and its end.

use std::future::Future;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Tasks that must run for as long as the process does.
#[derive(Debug, Default)]
pub struct Tasks {
    running: JoinSet<(&'static str, Result<(), BoxError>)>,
    stop: CancellationToken,
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a process ended although nobody asked it to.
#[derive(Debug, thiserror::Error)]
pub enum Ended {
    /// Signals cannot be received.
    #[error("cannot listen for signals")]
    Signals(#[source] std::io::Error),
    /// A task failed.
    #[error("{0} failed")]
    Failed(&'static str, #[source] BoxError),
    /// A task returned before it was told to stop.
    #[error("{0} ended although nothing told it to")]
    Early(&'static str),
    /// A task panicked; a fault of ours.
    #[error("a task panicked")]
    Panicked(#[source] tokio::task::JoinError),
    /// A second signal came while tasks were stopping.
    #[error("stopped by a second signal before everything was put away")]
    Hurried,
    /// A task did not stop in time.
    #[error("not everything stopped within {0:?}")]
    Late(Duration),
}

impl Tasks {
    /// Cancelled when the process is to stop; every task watches it.
    #[must_use]
    pub fn stop(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Starts a task. If it ends before [`Tasks::stop`] is cancelled, the process ends.
    pub fn spawn<E: Into<BoxError>>(
        &mut self,
        name: &'static str,
        task: impl Future<Output = Result<(), E>> + Send + 'static,
    ) {
        self.running.spawn(async move { (name, task.await.map_err(Into::into)) });
    }

    /// Starts a task that has nothing to put away: at [`Tasks::stop`] it is dropped where it stands.
    pub fn spawn_dropped_at_stop<E: Into<BoxError> + Send + 'static>(
        &mut self,
        name: &'static str,
        task: impl Future<Output = Result<(), E>> + Send + 'static,
    ) {
        let stop = self.stop();
        self.spawn(name, async move { stop.run_until_cancelled_owned(task).await.unwrap_or(Ok(())) });
    }

    /// Waits for SIGTERM, SIGINT or the first task to end, then stops the others and gives them `grace`. A second
    /// signal ends the wait at once.
    pub async fn run(mut self, grace: Duration) -> Result<(), Ended> {
        let mut terminate = signal(SignalKind::terminate()).map_err(Ended::Signals)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(Ended::Signals)?;
        let cause = tokio::select! {
            name = either(&mut terminate, &mut interrupt) => {
                tracing::info!(signal = name, "stopping");
                Ok(())
            }
            Some(ended) = self.running.join_next() => Err(match ended {
                Ok((name, Ok(()))) => Ended::Early(name),
                Ok((name, Err(error))) => Ended::Failed(name, error),
                Err(error) => Ended::Panicked(error),
            }),
        };
        self.stop.cancel();
        tokio::select! {
            drained = tokio::time::timeout(grace, drain(&mut self.running)) => {
                cause.and(drained.unwrap_or(Err(Ended::Late(grace))))
            }
            _ = either(&mut terminate, &mut interrupt) => cause.and(Err(Ended::Hurried)),
        }
    }
}

async fn either(terminate: &mut Signal, interrupt: &mut Signal) -> &'static str {
    tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    }
}

async fn drain(running: &mut JoinSet<(&'static str, Result<(), BoxError>)>) -> Result<(), Ended> {
    let mut first = Ok(());
    while let Some(ended) = running.join_next().await {
        let ended = match ended {
            Ok((_, Ok(()))) => Ok(()),
            Ok((name, Err(error))) => Err(Ended::Failed(name, error)),
            Err(error) => Err(Ended::Panicked(error)),
        };
        first = first.and(ended);
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(5);

    #[tokio::test(start_paused = true)]
    async fn a_task_that_ends_unasked_ends_the_process_and_stops_the_others() {
        let mut tasks = Tasks::default();
        let stop = tasks.stop();
        tasks.spawn("watch", async move {
            stop.cancelled().await;
            Ok::<(), std::io::Error>(())
        });
        tasks.spawn("serve", async { Ok::<(), std::io::Error>(()) });
        assert!(matches!(tasks.run(GRACE).await, Err(Ended::Early("serve"))));
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_task_is_named_even_if_another_hangs() {
        let mut tasks = Tasks::default();
        tasks.spawn("hang", std::future::pending::<Result<(), std::io::Error>>());
        tasks.spawn("serve", async { Err(std::io::Error::other("no")) });
        assert!(matches!(tasks.run(GRACE).await, Err(Ended::Failed("serve", _))));
    }
}
