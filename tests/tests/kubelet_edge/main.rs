//! The agent's binary against a kubelet that misbehaves. `DP-…` are public bug reports of device plugins:
//!
//! | case | where |
//! |---|---|
//! | DP-18 | here, but for its state file: labels from before a reboot may be wrong, and a kubelet gets its pods from the same API server that the labels come from |
//! | DP-09 | cannot occur: one way of registration, never the plugin watcher's folder; the chart test sees it mounted read-only |
//! | DP-12 | here, and `cluster.rs` for a wrong root on a real kubelet |
//! | DP-14, DP-24, DP-29 | `cluster.rs`, with a real kubelet |
//! | DP-17 | `cluster.rs` and `figures.rs` measure the gap |
//! | DP-32, DP-33 | `docs/network-resources.md`: what an autoscaler needs; a start-up taint is the cluster's to set |
//!
//! All others are tests in the modules.

mod configuration;
mod files;
mod in_use;
mod protocol;
mod restarts;
mod streams;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tests::agent::Agent;
use tests::kubelet::FakeKubelet;
use tests::wait;

const SOON: Duration = Duration::from_secs(20);
const A: &str = "example.com/a";
const B: &str = "example.com/b";
const TWO: &str =
    "[{resourceName: example.com/a, defaultMaxCount: 4}, {resourceName: example.com/b, defaultMaxCount: 3}]";

struct Node {
    root: TempDir,
}

impl Node {
    fn new() -> Self {
        Self { root: tempfile::tempdir().expect("a folder") }
    }

    fn path(&self) -> &Path {
        self.root.path()
    }

    fn folder(&self) -> PathBuf {
        self.root.path().join("device-plugins")
    }

    fn files(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(self.folder()).expect("readable").flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    /// An agent that offers [`TWO`] and is registered for both.
    async fn registered(&self, kubelet: &FakeKubelet) -> Agent {
        let agent = Agent::alone(self.path(), TWO);
        kubelet.until_allocatable(A, 4, SOON).await;
        kubelet.until_allocatable(B, 3, SOON).await;
        agent
    }
}

async fn until(what: &str, mut look: impl AsyncFnMut() -> anyhow::Result<()>) {
    wait::until(what, SOON, async || look().await).await;
}

/// Looks all the time that nothing changes that should not.
async fn for_a_while(span: Duration, look: impl Fn()) {
    let started = Instant::now();
    while started.elapsed() < span {
        look();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
