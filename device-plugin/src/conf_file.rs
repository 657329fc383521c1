//! `conf.yml`, followed while the agent runs.
//!
//! A mounted `ConfigMap` changes by a symlink swap in its folder, so the folder is watched, and the file is read anew after
//! each change. A file with a fault changes nothing: the last good configuration stays in force, and the fault is told.

use crate::events::Events;
use crate::inotify::{self, NoInotify};
use crate::metrics::{Metrics, Reload};
use k8s_api::conf::{Conf, Faults};
use notify::RecommendedWatcher;
use runtime::Chain;
use std::convert::Infallible;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

/// A `ConfigMap` holds at most 1 MiB.
const BYTES_MAX: u64 = 1024 * 1024;
/// Second line, should a change be missed.
const POLL: Duration = Duration::from_mins(1);
/// A swap is several changes of the folder; one reading answers for all within this time.
const BURST: Duration = Duration::from_millis(20);

/// The configuration cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unusable {
    #[error("cannot read {0}; it is the key conf.yml of the ConfigMap spiderpool-conf")]
    Read(PathBuf, #[source] io::Error),
    #[error("Failed to load Configmap spiderpool-conf: {0}")]
    Faulty(PathBuf, #[source] Faults),
}

/// Reads the file once.
pub(crate) fn load(path: &Path) -> Result<Conf, Unusable> {
    let text = read(path).map_err(|source| Unusable::Read(path.to_owned(), source))?;
    Conf::parse(&text).map_err(|faults| Unusable::Faulty(path.to_owned(), faults))
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(BYTES_MAX + 1).read_to_string(&mut text)?;
    if u64::try_from(text.len()).unwrap_or(u64::MAX) > BYTES_MAX {
        return Err(io::Error::other("larger than 1 MiB"));
    }
    Ok(text)
}

/// The configuration in force, beginning with `first`, and the task that keeps it.
pub(crate) fn watch(
    path: PathBuf,
    first: Conf,
    metrics: Metrics,
    events: Events,
) -> Result<(watch::Receiver<Conf>, impl Future<Output = Result<(), Infallible>>), NoInotify> {
    let (mut watcher, changed) = inotify::watcher()?;
    inotify::add(&mut watcher, path.parent().unwrap_or(Path::new(".")))?;
    metrics.conf_valid.set(1);
    for outcome in ["applied", "refused"] {
        // Shown as 0, so that the first change is an increase.
        drop(metrics.reloads.get_or_create(&Reload { outcome }));
    }
    let (conf, latest) = watch::channel(first);
    let follow = Follow { path, conf, metrics, events, refused: String::new() };
    Ok((latest, follow.run(watcher, changed)))
}

struct Follow {
    path: PathBuf,
    conf: watch::Sender<Conf>,
    metrics: Metrics,
    events: Events,
    refused: String,
}

impl Follow {
    async fn run(mut self, _watcher: RecommendedWatcher, changed: Arc<Notify>) -> Result<(), Infallible> {
        loop {
            if timeout(POLL, changed.notified()).await.is_ok() {
                sleep(BURST).await;
            }
            match load(&self.path) {
                Ok(conf) => self.apply(conf),
                Err(error) => self.refuse(&Chain(&error).to_string()),
            }
        }
    }

    fn apply(&mut self, conf: Conf) {
        let root = self.conf.borrow().plugin.kubelet_root_dir.clone();
        if root != conf.plugin.kubelet_root_dir {
            tracing::warn!(in_force = %root.display(), "a changed kubeletRootDir takes effect when the agent restarts");
        }
        let repaired = !std::mem::take(&mut self.refused).is_empty();
        let changed = self.conf.send_if_modified(|before| {
            *before != conf && {
                *before = conf;
                true
            }
        });
        if !(changed || repaired) {
            return;
        }
        self.count("applied", 1);
        tracing::info!(file = %self.path.display(), changed, "configuration reloaded");
        self.events.tell("ConfigurationReloaded", "the agent follows the changed conf.yml");
    }

    fn refuse(&mut self, error: &str) {
        if self.refused == error {
            return;
        }
        error.clone_into(&mut self.refused);
        self.count("refused", 0);
        tracing::error!(error, "the changed configuration is not used; the last good one stays in force");
        let note = format!("the last good configuration stays in force; correct the values and upgrade again: {error}");
        self.events.warn("ConfigurationRefused", &note);
    }

    fn count(&self, outcome: &'static str, valid: i64) {
        self.metrics.reloads.get_or_create(&Reload { outcome }).inc();
        self.metrics.conf_valid.set(valid);
    }
}
