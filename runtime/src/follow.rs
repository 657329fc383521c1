//! Something that is read from files, followed while they change.
//!
//! What Kubernetes mounts changes by a symlink swap in its folder, so the folder is watched, and everything is read anew
//! after each change. What cannot be read changes nothing: the last good reading stays in force, and the fault is told.

use crate::Chain;
use crate::inotify::{self, NoInotify};
use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// Second line, should a change be missed.
const POLL: Duration = Duration::from_mins(1);
/// A swap is several changes of the folder; one reading answers for all within this time.
const BURST: Duration = Duration::from_millis(20);

/// What came of a change.
#[derive(Debug)]
pub enum Reading<'a, T> {
    /// It is in force now; equal to what was before if a fault was mended.
    Applied {
        /// What was in force.
        before: &'a T,
        /// What is.
        now: &'a T,
    },
    /// It has a fault; told once for as long as the fault stays the same.
    Refused(&'a str),
}

/// The reading in force, beginning with `first`, and the task that keeps it. `load` reads everything anew; `tell` hears
/// of each change.
pub fn follow<T, E, Load, Tell>(
    folder: &Path,
    first: T,
    mut load: Load,
    mut tell: Tell,
) -> Result<(watch::Receiver<T>, impl Future<Output = Result<(), Infallible>> + use<T, E, Load, Tell>), NoInotify>
where
    T: Clone + PartialEq,
    E: std::error::Error + 'static,
    Load: FnMut() -> Result<T, E>,
    Tell: FnMut(Reading<'_, T>),
{
    let (mut watcher, changed) = inotify::watcher()?;
    inotify::add(&mut watcher, folder)?;
    let (in_force, latest) = watch::channel(first);
    let following = async move {
        let _watcher = watcher;
        let mut refused = String::new();
        loop {
            if timeout(POLL, changed.notified()).await.is_ok() {
                sleep(BURST).await;
            }
            match load() {
                Ok(now) => {
                    let mended = !std::mem::take(&mut refused).is_empty();
                    let before = in_force.borrow().clone();
                    if before != now {
                        in_force.send_replace(now.clone());
                    }
                    if mended || before != now {
                        tell(Reading::Applied { before: &before, now: &now });
                    }
                }
                Err(error) => {
                    let error = Chain(&error).to_string();
                    if refused != error {
                        tell(Reading::Refused(&error));
                        refused = error;
                    }
                }
            }
        }
    };
    Ok((latest, following))
}
