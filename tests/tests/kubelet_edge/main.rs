//! The agent's binary against a kubelet that misbehaves. `DP-…` are public bug reports of device plugins. DP-01, -02, -04,
//! -06, -07, -08, -10, -12, -15, -20, -22, -26, -27 and -31 are tests in the modules. Of the others, and where a test is
//! less than its report asks for:
//!
//! | case | what is checked, and where |
//! |---|---|
//! | DP-09 | cannot occur: one way of registration, never the plugin watcher's folder; the chart's snapshots have that read-only |
//! | DP-12 | `restarts.rs`, and `cluster.rs` on a real kubelet. The event after a minute without any kubelet is not waited for |
//! | DP-14 | `cluster.rs`: 0 after the label goes, no socket left, `<none>` where it never was. Not watched for minutes |
//! | DP-17 | `restarts.rs`: an agent that was killed and started anew is read again within 3 s. Pods that are bound in the gap are not counted; the docs say what becomes of them |
//! | DP-18 | `restarts.rs`: rules that need no labels are in force without an API server; the chart's snapshots have priority and tolerations. No state file: labels from before a reboot may be wrong, and a kubelet gets its pods from the same API server that the labels come from |
//! | DP-20 | `restarts.rs`: the liveness page hangs while the process is stopped, and all goes on after. The restart by the kubelet is not run |
//! | DP-24 | `cluster.rs`: one pod, not twenty, runs on through two kubelet restarts; its address is not compared. `restarts.rs` compares the ids |
//! | DP-29 | `service.rs` of the agent: no id of our form is refused. `figures.rs`: 50 pods, one after the other, none fails. No Deployment, no slow controller |
//! | DP-32, DP-33 | `docs/network-resources.md`: what an autoscaler needs; a start-up taint is the cluster's to set |

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

const SOON: Duration = Duration::from_mins(1);
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

/// Runs rounds until one takes less than `limit`. What else runs on the machine delays some, a fault delays all.
async fn one_within(limit: Duration, mut round: impl AsyncFnMut() -> Duration) {
    let mut spans = Vec::new();
    while spans.len() < 5 {
        let took = round().await;
        println!("{took:?}");
        if took < limit {
            return;
        }
        spans.push(took);
    }
    panic!("none within {limit:?}: {spans:?}");
}

/// Looks all the time that nothing changes that should not.
async fn for_a_while(span: Duration, look: impl Fn()) {
    let started = Instant::now();
    while started.elapsed() < span {
        look();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
