//! Work in a pod's network namespace.

use super::netlink::Netlink;
use crate::error::{Code, Fault};
use nix::sched::{CloneFlags, setns};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// A network namespace that is kept as long as this is.
pub(super) struct Namespace {
    file: File,
}

/// Entering one and opening a socket there waits for nothing but locks of the kernel.
const ENTERED: Duration = Duration::from_secs(5);

impl Namespace {
    pub(super) fn open(path: &str) -> io::Result<Self> {
        Ok(Self { file: File::open(path)? })
    }

    /// That of this program: the node's.
    pub(super) fn own() -> io::Result<Self> {
        Self::open("/proc/self/ns/net")
    }

    /// What tells it from all others.
    pub(super) fn inode(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.ino())
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    pub(super) fn netlink(&self) -> io::Result<Netlink> {
        self.within(Netlink::open)?
    }

    /// On a thread of its own: which namespace a thread is in nobody else must notice, and it ends in it.
    pub(super) fn within<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
        let file = self.file.try_clone()?;
        let (tell, told) = channel();
        thread::Builder::new().spawn(move || {
            let entered = setns(file, CloneFlags::CLONE_NEWNET).map_err(io::Error::from);
            // Who does not wait any more need not hear it.
            let _ = tell.send(entered.map(|()| work()));
        })?;
        told.recv_timeout(ENTERED).map_err(|error| io::Error::other(format!("the kernel does not answer: {error}")))?
    }
}

/// `what` cannot be done, in words of this program and the kernel's reason.
pub(super) fn failed(what: &str) -> impl FnOnce(io::Error) -> Fault + '_ {
    move |error| Fault::new(Code::Plugin, format!("{what}: {error}"))
}
