//! What an ADD has spent its time on, for who cannot wait for its end.

use ipam_core::Step;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

tokio::task_local! {
    static PROGRESS: Arc<Progress>;
}

/// Of one flow.
#[derive(Debug, Default)]
pub(super) struct Progress(Mutex<Spent>);

#[derive(Debug, Default)]
struct Spent {
    now: Option<(Step, Instant)>,
    before: BTreeMap<Step, Duration>,
}

/// Earlier steps that are worth a word.
const NAMED: usize = 3;
const LONG: Duration = Duration::from_millis(100);

/// Runs a flow whose steps are noted.
pub(super) async fn noted<F: Future>(progress: Arc<Progress>, flow: F) -> F::Output {
    PROGRESS.scope(progress, flow).await
}

/// Called at the beginning of a step, by the flow itself.
pub(super) fn at(step: Step) {
    // Flows that nobody waits for are not noted.
    let _ = PROGRESS.try_with(|progress| {
        let mut spent = progress.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if let Some((last, since)) = spent.now.replace((step, now)) {
            *spent.before.entry(last).or_default() += now.duration_since(since);
        }
    });
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((step, since)) = spent.now else {
            return f.write_str("all went by behind an earlier request for this interface, or before it was begun");
        };
        write!(f, "{step} takes {:.1?} so far", since.elapsed())?;
        let mut before: Vec<_> = spent.before.iter().filter(|(_, spent)| **spent >= LONG).collect();
        before.sort_by_key(|(_, spent)| std::cmp::Reverse(**spent));
        for (step, spent) in before.into_iter().take(NAMED) {
            write!(f, ", {step} took {spent:.1?}")?;
        }
        Ok(())
    }
}
