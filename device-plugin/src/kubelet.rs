//! The kubelet edge: the device-plugin API `v1beta1`.
//!
//! Each resource is a [`session`] of its own, with its own socket, server, registration and back-off. What they share is
//! one view of the folder ([`folder`]): where the live `kubelet.sock` is, and a signal whenever anything there changed.
//!
//! ```text
//! folder: inotify + poll ──> View ──> session ──┬── socket    binds, knows its inode, removes only its own
//!                                               ├── service   ListAndWatch, Allocate
//!                                               └── register  asks the kubelet to dial back
//! ```

mod dial;
pub(crate) mod folder;
pub(crate) mod handed_out;
pub(crate) mod in_use;
pub(crate) mod pod_resources;
mod register;
mod service;
pub(crate) mod session;
mod socket;
pub(crate) mod version;

use k8s_api::names;
use std::path::{Path, PathBuf};

/// A kubelet that listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kubelet {
    /// The folder with its `kubelet.sock`.
    pub(crate) folder: PathBuf,
    /// Which `kubelet.sock`: a restarted kubelet makes a new one.
    pub(crate) socket: socket::Identity,
}

/// Name of the registration socket.
const KUBELET_SOCKET: &str = "kubelet.sock";

impl Kubelet {
    /// Where to look: below the configured root first, then where the constant in the kubelet points. The latter does
    /// not follow `--root-dir`, so a configured root may be right for everything but this folder.
    pub(crate) fn folders(root: &Path) -> Vec<PathBuf> {
        let below = |root: &Path| root.join("device-plugins");
        let mut folders = vec![below(root), below(Path::new(names::KUBELET_ROOT_DIR))];
        folders.dedup();
        folders
    }

    /// Whether its `kubelet.sock` is in its place.
    fn still_there(&self) -> bool {
        socket::Identity::at(&self.socket_path()) == Some(self.socket)
    }

    fn socket_path(&self) -> PathBuf {
        self.folder.join(KUBELET_SOCKET)
    }
}
