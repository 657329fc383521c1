//! Sockets in the kubelet's folder: which is which, and ours.

use crate::hash::fnv1a;
use k8s_api::resource::ResourceName;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

/// Which kubelet.sock a path leads to: a restarted kubelet makes another. Inode numbers are used again, so the time of
/// birth belongs to it; the time of change would not do, since `chmod -R` and the like move it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    inode: Inode,
    born: Option<SystemTime>,
}

/// A file of one file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Inode {
    device: u64,
    number: u64,
}

impl Identity {
    /// The socket at `path`; none if there is nothing, or something else.
    pub(crate) fn at(path: &Path) -> Option<Self> {
        let meta = socket_at(path)?;
        // Old file systems do not know when a file was born.
        Some(Self { inode: Inode::of(&meta), born: meta.created().or_else(|_| meta.modified()).ok() })
    }
}

impl Inode {
    fn of(meta: &Metadata) -> Self {
        Self { device: meta.dev(), number: meta.ino() }
    }
}

fn socket_at(path: &Path) -> Option<Metadata> {
    fs::symlink_metadata(path).ok().filter(|meta| meta.file_type().is_socket())
}

/// Whether somebody accepts at `path`. A file alone says nothing: a dead process leaves it behind.
pub(crate) async fn answers(path: &Path) -> bool {
    const CONNECT: Duration = Duration::from_secs(1);
    matches!(timeout(CONNECT, UnixStream::connect(path)).await, Ok(Ok(_)))
}

/// Longest path of a unix socket in bytes: `sun_path` of `sockaddr_un` without the final zero.
const PATH_MAX: usize = 107;

/// Where a resource's socket lies.
pub(crate) fn path(resource: &ResourceName, folder: &Path) -> PathBuf {
    folder.join(file_name(resource, folder))
}

/// File name of a resource's socket: one for one. A domain has no `_`, so it can stand for the slash. A name too long
/// for a socket path is cut, with a hash of the whole.
fn file_name(resource: &ResourceName, folder: &Path) -> String {
    let plain = format!("spiderpool-{}.sock", resource.as_str().replace('/', "_"));
    if folder.as_os_str().len() + "/".len() + TEMPORARY.len() + plain.len() <= PATH_MAX {
        return plain;
    }
    format!("spiderpool-{:016x}.sock", fnv1a(resource.as_str().as_bytes()))
}

/// What goes before the name while a socket is not in its place yet.
const TEMPORARY: &str = ".";

/// A socket of ours that listens at its path. Dropping it removes the file if it is still the one we made.
#[derive(Debug)]
pub(crate) struct OwnSocket {
    path: PathBuf,
    name: String,
    /// Taken before the file moved into its place, and not used again while we listen: the socket holds on to it.
    inode: Inode,
}

/// What became of a socket of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Ours,
    Gone,
    /// Another process has put its own in this place.
    Replaced,
}

/// The socket could not be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen at {path}")]
pub(crate) struct CannotListen {
    path: PathBuf,
    source: io::Error,
}

impl OwnSocket {
    /// Listens first and moves into place then, so that nobody finds a file without a listener and its identity is
    /// certain. Whatever stood there is replaced: a leftover of ours, or an older agent that is about to go.
    pub(crate) fn listen(resource: &ResourceName, folder: &Path) -> Result<(Self, UnixListener), CannotListen> {
        let name = file_name(resource, folder);
        let path = folder.join(&name);
        let temporary = folder.join(format!("{TEMPORARY}{name}"));
        let listen = || {
            remove(&temporary)?;
            let listener = UnixListener::bind(&temporary)?;
            let inode = Inode::of(&fs::symlink_metadata(&temporary)?);
            fs::rename(&temporary, &path)?;
            Ok((inode, listener))
        };
        match listen() {
            Ok((inode, listener)) => Ok((Self { path, name, inode }, listener)),
            Err(source) => {
                let _ = remove(&temporary);
                Err(CannotListen { path, source })
            }
        }
    }

    /// The endpoint as the kubelet wants it: a name in its folder.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn standing(&self) -> Standing {
        match fs::symlink_metadata(&self.path) {
            Ok(meta) if Inode::of(&meta) == self.inode => Standing::Ours,
            Ok(_) => Standing::Replaced,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Standing::Gone,
            // A folder that cannot be looked into says nothing about what lies in it.
            Err(_) => Standing::Ours,
        }
    }
}

impl Drop for OwnSocket {
    fn drop(&mut self) {
        if self.standing() == Standing::Ours
            && let Err(error) = remove(&self.path)
        {
            tracing::warn!(socket = %self.path.display(), %error, "failed to remove network resource plugin socket");
        }
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> ResourceName {
        text.parse().expect("a resource name")
    }

    #[test]
    fn names_that_look_alike_get_sockets_of_their_own() {
        let folder = Path::new("/var/lib/kubelet/device-plugins");
        let names: Vec<String> = ["eth1.100", "eth1-100", "eth1_100", "Eth1.100"]
            .map(|nic| file_name(&name(&format!("spidernet.io/{nic}-nic")), folder))
            .into();
        assert_eq!(names[0], "spiderpool-spidernet.io_eth1.100-nic.sock");
        let distinct: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
    }

    #[test]
    fn every_name_fits_a_socket_path() {
        let long = name(&format!("{}example.com/{}", "a.".repeat(100), "b".repeat(63)));
        let folder = PathBuf::from(format!("/{}/device-plugins", "k".repeat(40)));
        let file = file_name(&long, &folder);
        assert!(folder.join(format!("{TEMPORARY}{file}")).as_os_str().len() <= PATH_MAX, "{file}");
        assert_eq!(file, file_name(&long, &folder));
    }

    #[tokio::test]
    async fn only_the_file_that_is_ours_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let resource = name("spidernet.io/sub-eni");
        let (old, _old_listener) = OwnSocket::listen(&resource, folder.path()).expect("listens");
        let (new, _new_listener) = OwnSocket::listen(&resource, folder.path()).expect("takes over");
        assert_eq!((old.standing(), new.standing()), (Standing::Replaced, Standing::Ours));
        drop(old);
        assert_eq!(new.standing(), Standing::Ours, "the older agent leaves the newer one's socket alone");
        assert!(answers(new.path()).await);
        drop(new);
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 0, "nothing is left");
    }
}
