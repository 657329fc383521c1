//! The machine under the flows.

mod journal;
mod kept;
mod records;
mod sandbox;

use ipam_core::{Allocation, Host, Interface, Kept, Netns, Step};
use journal::Journal;
use records::{Name, Records};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

/// Where the machine tells about itself, and keeps what it is given.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) boot_id: PathBuf,
    /// On a disk of the host.
    pub(crate) state: PathBuf,
}

impl Default for Places {
    fn default() -> Self {
        Self { boot_id: "/proc/sys/kernel/random/boot_id".into(), state: "/var/lib/spidernet".into() }
    }
}

/// Clock, chance, disk and sandboxes of this machine.
#[derive(Debug)]
pub(crate) struct Machine {
    boot: String,
    name: String,
    results: Arc<Records>,
    dels: Arc<Journal>,
    /// This process is to end.
    stop: CancellationToken,
}

/// The machine cannot be told apart from others, or keeps nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unusable {
    #[error("cannot read {}", .0.display())]
    Read(PathBuf, #[source] io::Error),
    #[error("{} is empty", .0.display())]
    Empty(PathBuf),
    #[error("cannot keep results in {}", .0.display())]
    Keep(PathBuf, #[source] io::Error),
}

/// Before the boot id, in the name of the folder of what is kept. No sandbox outlives the machine's start, and so nothing about
/// one need outlive a loss of power: no write waits for the disk.
const BOOT: &str = "boot-";
/// Interfaces of a node at one time are some hundred; what is older than this many is of pods long gone.
const RESULTS: usize = 4096;
/// A sandbox that went is looked for until its allocation is dealt with.
const DELS: usize = 4096;

impl Machine {
    /// `machine_id`: as the kubelet says, on the Node.
    pub(crate) fn open(places: &Places, machine_id: String, stop: CancellationToken) -> Result<Self, Unusable> {
        let Places { boot_id, state } = places;
        let boot = id(boot_id)?;
        let own = state.join(format!("{BOOT}{boot}"));
        let (folder, file) = (own.join("results"), own.join("dels.log"));
        let results = Records::open(folder.clone(), RESULTS).map_err(|error| Unusable::Keep(folder, error))?;
        let dels = Journal::open(file.clone(), DELS).map_err(|error| Unusable::Keep(file, error))?;
        forget_others(state, &own);
        Ok(Self { name: machine_id, results: Arc::new(results), dels: Arc::new(dels), boot, stop })
    }

    pub(crate) fn boot_id(&self) -> &str {
        &self.boot
    }

    /// The namespace that a plugin means, if it is seen here as well. One that is not must not be recorded: that it is
    /// absent here would say nothing.
    pub(super) async fn netns(&self, told: Option<proto::agent::Netns>) -> Option<Netns> {
        let proto::agent::Netns { path, dev, inode } = told?;
        spawn_blocking(move || {
            let seen = sandbox::netns(Path::new(&path));
            if (seen.dev, seen.inode) == (dev, inode) && inode != 0 {
                return Some(Netns { path, dev, inode });
            }
            tracing::warn!(path, "this network namespace is not seen here; is its folder mounted, with propagation?");
            None
        })
        .await
        .ok()
        .flatten()
    }

    /// A sandbox that gets an interface is there, even if an earlier try to make one was taken back by a DEL.
    pub(super) async fn note_add(&self, container_id: &str) {
        let (dels, name) = (self.dels.clone(), Name::new(container_id));
        let noted = spawn_blocking(move || name.map_or(Ok(()), |name| dels.remove(&name))).await;
        if let Ok(Err(error)) = noted {
            tracing::warn!(container_id, %error, "cannot note that a sandbox is there");
        }
    }

    /// Remembers that the runtime took a sandbox down.
    pub(super) async fn note_del(&self, container_id: &str) {
        let (dels, name) = (self.dels.clone(), Name::new(container_id));
        let noted = spawn_blocking(move || name.map_or(Ok(()), |name| dels.add(&name))).await;
        if let Ok(Err(error)) = noted {
            tracing::warn!(container_id, %error, "cannot note that a sandbox is gone");
        }
    }
}

/// Whatever was kept of sandboxes that an earlier start of the machine had.
fn forget_others(state: &Path, own: &Path) {
    let entries = fs::read_dir(state).into_iter().flatten().flatten();
    let others = entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(BOOT.as_bytes()));
    for other in others.map(|entry| entry.path()).filter(|path| path != own) {
        if let Err(error) = fs::remove_dir_all(&other) {
            tracing::warn!(folder = %other.display(), %error, "cannot remove what was kept before the machine started anew");
        }
    }
}

fn id(path: &Path) -> Result<String, Unusable> {
    let text = fs::read_to_string(path).map_err(|error| Unusable::Read(path.to_owned(), error))?;
    let text = text.trim();
    if text.is_empty() { Err(Unusable::Empty(path.to_owned())) } else { Ok(text.to_owned()) }
}

impl Host for Machine {
    fn now(&self) -> Duration {
        runtime::since_boot()
    }

    async fn sleep(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    async fn pause(&self, time: Duration) -> bool {
        self.stop.run_until_cancelled(tokio::time::sleep(time)).await.is_some()
    }

    fn unreleased(&self, allocation: &Allocation, why: String) {
        let (address, pod) = (allocation.address, &allocation.pod);
        tracing::warn!(%address, namespace = pod.namespace, name = pod.name, why, "the provider does not release an address; it is asked again");
    }

    fn random(&self) -> u128 {
        runtime::random()
    }

    async fn kept(&self, pod_uid: &str, interface: &str) -> Kept {
        let Some(name) = kept::name(pod_uid, interface) else { return Kept::Nothing };
        let results = self.results.clone();
        spawn_blocking(move || kept::read(&results, &name)).await.unwrap_or(Kept::Unreadable)
    }

    async fn keep(&self, pod_uid: &str, result: &Interface) {
        let Some(name) = kept::name(pod_uid, &result.name) else { return };
        let (results, bytes) = (self.results.clone(), kept::bytes(result));
        let kept = spawn_blocking(move || results.write(&name, &bytes)).await;
        if let Ok(Err(error)) = kept {
            tracing::warn!(pod_uid, interface = result.name, %error, "cannot keep the result of an interface");
        }
    }

    async fn sandbox_gone(&self, allocation: &Allocation) -> bool {
        // Boots and paths of another machine say nothing here.
        if allocation.node.machine_id != self.name {
            return false;
        }
        let booted_since = !allocation.boot_id.is_empty() && allocation.boot_id != self.boot;
        let (dels, name) = (self.dels.clone(), Name::new(&allocation.container_id));
        let netns = allocation.netns.clone();
        let look = move || name.is_some_and(|name| dels.has(&name)) || netns.is_some_and(|netns| sandbox::gone(&netns));
        booted_since || spawn_blocking(look).await.unwrap_or(false)
    }

    async fn at(&self, step: Step) {
        super::progress::at(step);
        tracing::debug!(?step, "a flow goes on");
    }
}

#[cfg(test)]
mod tests;
