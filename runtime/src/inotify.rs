//! inotify, as a signal that something in a folder has changed.

use notify::event::EventKind;
use notify::{RecommendedWatcher, Watcher};
use std::sync::Arc;
use tokio::sync::Notify;

/// inotify is not to be had.
#[derive(Debug, thiserror::Error)]
#[error("cannot use inotify; raise fs.inotify.max_user_instances and max_user_watches on this host")]
pub struct NoInotify(#[from] notify::Error);

/// A watcher without folders yet, and the signal of all of them. Whoever only reads a file gives no signal: the reader
/// would wake itself.
pub fn watcher() -> Result<(RecommendedWatcher, Arc<Notify>), NoInotify> {
    let changed = Arc::new(Notify::new());
    let signal = Arc::clone(&changed);
    let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        if !matches!(event, Ok(notify::Event { kind: EventKind::Access(_), .. })) {
            signal.notify_one();
        }
    })?;
    Ok((watcher, changed))
}

/// Watches `folder` itself, not what lies below.
pub fn add(watcher: &mut RecommendedWatcher, folder: &std::path::Path) -> Result<(), NoInotify> {
    Ok(watcher.watch(folder, notify::RecursiveMode::NonRecursive)?)
}
