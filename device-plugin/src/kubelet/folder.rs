//! The kubelet's device-plugin folder, watched: is a kubelet listening there, and has anything changed?
//!
//! inotify is the first line, a slow poll the second. Either only means "look again".

use super::{KUBELET_SOCKET, Kubelet, socket};
use crate::report::Reports;
use notify::{RecommendedWatcher, Watcher};
use runtime::Chain;
use runtime::inotify::{self, NoInotify};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};

/// What the sessions see of the folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct View {
    /// The kubelet that listens, if one does.
    pub(crate) kubelet: Option<Kubelet>,
    /// Counts looks: each is an occasion to check one's own socket.
    pub(crate) look: u64,
}

/// The latest view, and a way to ask for a new one. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    latest: watch::Receiver<View>,
    look: Arc<Notify>,
}

/// A look takes milliseconds, or what a connection to a socket that nobody serves takes.
const LOOK: Duration = Duration::from_secs(2);

impl Folder {
    /// What was seen last, to be followed from here on.
    pub(crate) fn view(&self) -> watch::Receiver<View> {
        self.latest.clone()
    }

    /// Whether a kubelet listens, by a look that begins now. A kubelet that dies changes no file, so the latest view may
    /// still have it.
    pub(crate) async fn kubelet_listens(&self) -> bool {
        let mut view = self.view();
        view.mark_unchanged();
        self.look.notify_one();
        // Without a new look the old one has to do.
        let _ = timeout(LOOK, view.changed()).await;
        view.borrow().kubelet.is_some()
    }
}

/// Second line, should a message be lost, and the only one for a folder that did not exist at the start.
const POLL: Duration = Duration::from_secs(5);
/// A kubelet makes its socket a moment before it listens; until then this is the pause between two looks.
const NOT_YET: Duration = Duration::from_millis(20);
/// A file that nobody has listened at for this long was left behind by a dead kubelet.
const STALE: Duration = Duration::from_secs(3);
/// Files come in bursts; one look answers for all within this time.
const BURST: Duration = Duration::from_millis(5);

/// The latest view of the first of `folders` in which a kubelet listens, and the task that keeps it.
pub(crate) fn watch(
    folders: Vec<PathBuf>,
    reports: Reports,
) -> Result<(Folder, impl Future<Output = Result<(), FolderDeleted>>), NoInotify> {
    let (inotify, changed) = inotify::watcher()?;
    let (view, latest) = watch::channel(View::default());
    let folder = Folder { latest, look: Arc::clone(&changed) };
    Ok((folder, run(Watched { inotify, folders, inodes: Vec::new(), said: false }, changed, view, reports)))
}

async fn run(
    mut watched: Watched,
    changed: Arc<Notify>,
    view: watch::Sender<View>,
    reports: Reports,
) -> Result<(), FolderDeleted> {
    let mut silence = Silence::default();
    let mut absence = Absence { reports, last: None, since: Instant::now(), told: false };
    loop {
        watched.renew();
        watched.still_there()?;
        let (kubelet, silent) = look(&watched.folders).await;
        absence.note(view.borrow().kubelet.as_ref(), kubelet.as_ref(), &watched.folders);
        view.send_modify(|view| *view = View { kubelet: kubelet.clone(), look: view.look + 1 });
        let pause = silence.pause(silent);
        if timeout(pause, changed.notified()).await.is_ok() {
            sleep(BURST).await;
        }
    }
}

/// The first kubelet that listens; without one, the sockets at which none does.
async fn look(folders: &[PathBuf]) -> (Option<Kubelet>, Vec<socket::Identity>) {
    let mut silent = Vec::new();
    for folder in folders {
        let path = folder.join(KUBELET_SOCKET);
        let Some(socket) = socket::Identity::at(&path) else { continue };
        if socket::answers(&path).await {
            return (Some(Kubelet { folder: folder.clone(), socket }), Vec::new());
        }
        silent.push(socket);
    }
    (None, silent)
}

/// Sockets at which nobody listens, and since when it is just these: another file may be that of a kubelet which listens
/// in a moment.
#[derive(Debug, Default)]
struct Silence {
    sockets: Vec<socket::Identity>,
    since: Option<Instant>,
}

impl Silence {
    /// Until the next look, when these are silent now.
    fn pause(&mut self, sockets: Vec<socket::Identity>) -> Duration {
        let now = Instant::now();
        if self.sockets != sockets {
            *self = Self { sockets, since: Some(now) };
        }
        let fresh = self.since.is_some_and(|since| now.saturating_duration_since(since) < STALE);
        if fresh && !self.sockets.is_empty() { NOT_YET } else { POLL }
    }
}

/// Tells people of kubelets that come, go, and do not come.
struct Absence {
    reports: Reports,
    /// The kubelet that was seen last, whether it listens still or not.
    last: Option<Kubelet>,
    since: Instant,
    told: bool,
}

/// A kubelet that restarts is back long before this.
const ABSENT: Duration = Duration::from_mins(1);

impl Absence {
    fn note(&mut self, before: Option<&Kubelet>, now: Option<&Kubelet>, folders: &[PathBuf]) {
        let metrics = &self.reports.metrics;
        metrics.kubelet_listens.set(now.is_some().into());
        match (before, now) {
            (Some(before), Some(now)) if before == now => {}
            (_, Some(now)) => {
                tracing::info!(pluginDir = %now.folder.display(), "selected network resource plugin path");
                let last = self.last.replace(now.clone());
                metrics.kubelet_restarts.inc_by(last.is_some_and(|last| last != *now).into());
                self.told = false;
            }
            (Some(_), None) => {
                tracing::warn!("the kubelet does not listen any more");
                self.since = Instant::now();
            }
            (None, None) if !self.told && self.since.elapsed() > ABSENT => self.tell(folders),
            (None, None) => {}
        }
    }

    fn tell(&mut self, folders: &[PathBuf]) {
        let folders: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
        let note = format!(
            "no kubelet listens at {KUBELET_SOCKET} in {}; set spiderpoolAgent.networkResourcePlugin.kubeletRootDir to the \
             kubelet's --root-dir, and check that the kubelet runs; if the folder was moved and made anew, delete this agent's pod",
            folders.join(" or ")
        );
        tracing::error!("{note}");
        self.reports.events.warn("KubeletNotFound", &note);
        self.told = true;
    }
}

/// The folders under inotify. A folder that was made anew needs a new watch.
struct Watched {
    inotify: RecommendedWatcher,
    folders: Vec<PathBuf>,
    inodes: Vec<Option<(u64, u64)>>,
    said: bool,
}

/// The folder was deleted under us. A new one of the same name is outside of what is mounted into this container.
#[derive(Debug, thiserror::Error)]
#[error("the folder {0} was deleted; the agent starts again to see the new one")]
pub(crate) struct FolderDeleted(PathBuf);

impl Watched {
    fn still_there(&self) -> Result<(), FolderDeleted> {
        let deleted = |folder: &&PathBuf| std::fs::metadata(folder).is_ok_and(|meta| meta.nlink() == 0);
        self.folders.iter().find(deleted).map_or(Ok(()), |folder| Err(FolderDeleted(folder.clone())))
    }

    fn renew(&mut self) {
        self.inodes.resize(self.folders.len(), None);
        for (folder, watched) in self.folders.iter().zip(&mut self.inodes) {
            let inode = std::fs::metadata(folder).ok().map(|meta| (meta.dev(), meta.ino()));
            if inode == *watched {
                continue;
            }
            if watched.take().is_some() {
                // It may be gone with the folder already.
                let _ = self.inotify.unwatch(folder);
            }
            if inode.is_some() {
                match inotify::add(&mut self.inotify, folder) {
                    Ok(()) => *watched = inode,
                    Err(error) if !self.said => {
                        let error = Chain(&error);
                        tracing::warn!(folder = %folder.display(), %error, "cannot watch; looking every 5 s");
                        self.said = true;
                    }
                    Err(_) => {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn each_silent_socket_is_looked_at_often_while_it_is_new() {
        let folder = tempfile::tempdir().expect("a folder");
        let silent = |name: &str| {
            let path = folder.path().join(name);
            drop(UnixListener::bind(&path).expect("a socket"));
            vec![socket::Identity::at(&path).expect("a socket")]
        };
        let (left, new) = (silent("left"), silent("new"));
        let mut silence = Silence::default();
        assert_eq!(silence.pause(Vec::new()), POLL);
        assert_eq!(silence.pause(left.clone()), NOT_YET);
        advance(STALE).await;
        assert_eq!(silence.pause(left), POLL, "a leftover");
        assert_eq!(silence.pause(new.clone()), NOT_YET, "another file has its own time");
        assert_eq!(silence.pause(Vec::new()), POLL, "somebody listens");
        advance(STALE).await;
        assert_eq!(silence.pause(new), NOT_YET, "silence begins anew");
    }
}
