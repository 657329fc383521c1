//! The socket that plugins call.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};
use tokio::time::{sleep, timeout};

/// Listens at its path. Dropping it removes the file if it is still the one we made.
#[derive(Debug)]
pub(crate) struct Socket {
    listener: UnixListener,
    path: PathBuf,
    inode: (u64, u64),
    /// Who may call.
    uid: u32,
}

/// The socket cannot be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CannotListen {
    #[error("cannot listen at {}", .0.display())]
    Io(PathBuf, #[source] io::Error),
    #[error("{} is not a socket; remove it", .0.display())]
    Foreign(PathBuf),
}

/// How often an agent that is about to go is looked after.
const LOOK: Duration = Duration::from_millis(200);
const CONNECT: Duration = Duration::from_secs(1);
/// Out of file descriptors an accept fails at once, again and again.
const PAUSE: Duration = Duration::from_millis(200);

impl Socket {
    /// Waits for as long as another process answers at `path`: an older agent has flows to finish. What nobody answers at is
    /// a leftover and replaced. Only processes of `uid` are served.
    pub(crate) async fn listen(path: &Path, uid: u32) -> Result<Self, CannotListen> {
        let failed = |error| CannotListen::Io(path.to_owned(), error);
        if let Some(folder) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o755).create(folder).map_err(failed)?;
        }
        let mut told = false;
        while taken(path).await? {
            if !told {
                tracing::info!(socket = %path.display(), "another process serves CNI plugins; waiting for its end");
                told = true;
            }
            sleep(LOOK).await;
        }
        let (listener, inode) = bind(path).map_err(failed)?;
        Ok(Self { listener, path: path.to_owned(), inode, uid })
    }

    /// The next connection of who may call.
    pub(super) async fn accept(&self) -> io::Result<UnixStream> {
        loop {
            match self.listener.accept().await {
                Ok((connection, _)) => match connection.peer_cred() {
                    Ok(peer) if peer.uid() == self.uid => return Ok(connection),
                    Ok(peer) => {
                        tracing::warn!(uid = peer.uid(), pid = peer.pid(), "a caller without rights is not served");
                    }
                    Err(error) => tracing::warn!(%error, "cannot tell who calls; not served"),
                },
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection of a CNI plugin");
                    sleep(PAUSE).await;
                }
            }
        }
    }
}

/// Whether somebody answers at `path`.
async fn taken(path: &Path) -> Result<bool, CannotListen> {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.file_type().is_socket() => {}
        Ok(_) => return Err(CannotListen::Foreign(path.to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(CannotListen::Io(path.to_owned(), error)),
    }
    match timeout(CONNECT, UnixStream::connect(path)).await {
        Ok(Err(error)) if matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound) => Ok(false),
        // A full queue belongs to somebody.
        Err(_) | Ok(Ok(_)) => Ok(true),
        Ok(Err(error)) if error.kind() == ErrorKind::WouldBlock => Ok(true),
        Ok(Err(error)) => Err(CannotListen::Io(path.to_owned(), error)),
    }
}

/// Listens first and moves into place then: nobody finds a file without a listener, or with other rights.
fn bind(path: &Path) -> io::Result<(UnixListener, (u64, u64))> {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    let temporary = path.with_file_name(name);
    remove(&temporary)?;
    let moved = UnixListener::bind(&temporary).and_then(|listener| {
        fs::set_permissions(&temporary, Permissions::from_mode(0o600))?;
        let inode = inode(&temporary)?;
        fs::rename(&temporary, path)?;
        Ok((listener, inode))
    });
    if moved.is_err() {
        let _ = remove(&temporary);
    }
    moved
}

fn inode(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|meta| (meta.dev(), meta.ino()))
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if inode(&self.path).is_ok_and(|inode| inode == self.inode)
            && let Err(error) = remove(&self.path)
        {
            tracing::warn!(socket = %self.path.display(), %error, "cannot remove the socket of CNI plugins");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own_uid(folder: &Path) -> u32 {
        fs::metadata(folder).expect("there").uid()
    }

    #[tokio::test]
    async fn a_leftover_is_replaced_and_a_stranger_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let uid = own_uid(folder.path());
        let path = folder.path().join("sub/s");
        let first = Socket::listen(&path, uid).await.expect("makes the folder");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        let second = timeout(Duration::from_millis(500), Socket::listen(&path, uid)).await;
        assert!(second.is_err(), "it waits for the first");
        drop(first);
        assert!(!path.exists());
        drop(std::os::unix::net::UnixListener::bind(&path).expect("binds"));
        assert!(path.exists(), "a dead process leaves its file");
        drop(Socket::listen(&path, uid).await.expect("a leftover"));
        fs::write(&path, "a file").expect("writes");
        assert!(matches!(Socket::listen(&path, uid).await, Err(CannotListen::Foreign(_))));
        assert!(path.exists());
    }

    #[tokio::test]
    async fn only_one_user_is_served() {
        let folder = tempfile::tempdir().expect("a folder");
        let uid = own_uid(folder.path());
        for (uid, served) in [(uid, true), (uid + 1, false)] {
            let path = folder.path().join(uid.to_string());
            let socket = Socket::listen(&path, uid).await.expect("listens");
            let _caller = UnixStream::connect(&path).await.expect("connects");
            let accepted = timeout(Duration::from_millis(300), socket.accept()).await;
            assert_eq!(accepted.is_ok(), served, "{uid}");
        }
    }
}
