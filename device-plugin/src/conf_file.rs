//! What the agent says of changes of `conf.yml`.

use crate::events::Events;
use crate::metrics::{Metrics, Reload};
use k8s_api::conf::Conf;
use runtime::follow::Reading;
use runtime::inotify::NoInotify;
use std::convert::Infallible;
use std::path::PathBuf;
use tokio::sync::watch;

/// The configuration in force, beginning with `first`, and the task that keeps it.
pub(crate) fn watch(
    path: PathBuf,
    first: Conf,
    metrics: Metrics,
    events: Events,
) -> Result<(watch::Receiver<Conf>, impl Future<Output = Result<(), Infallible>>), NoInotify> {
    metrics.conf_valid.set(1);
    for outcome in ["applied", "refused"] {
        // Shown as 0, so that the first change is an increase.
        drop(metrics.reloads.get_or_create(&Reload { outcome }));
    }
    let count = move |outcome: &'static str, valid: i64| {
        metrics.reloads.get_or_create(&Reload { outcome }).inc();
        metrics.conf_valid.set(valid);
    };
    runtime::conf_file::watch(path, first, Conf::parse, move |reading| match reading {
        Reading::Applied { before, now } => {
            let root = before.plugin.kubelet_root_dir.display();
            if before.plugin.kubelet_root_dir != now.plugin.kubelet_root_dir {
                tracing::warn!(in_force = %root, "a changed kubeletRootDir takes effect when the agent restarts");
            }
            count("applied", 1);
            events.tell("ConfigurationReloaded", "the agent follows the changed conf.yml");
        }
        Reading::Refused(error) => {
            count("refused", 0);
            let note =
                format!("the last good configuration stays in force; correct the values and upgrade again: {error}");
            events.warn("ConfigurationRefused", &note);
        }
    })
}
