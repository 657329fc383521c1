//! The host's network interfaces, watched.
//!
//! Any message on the kernel's link group means "look again": the whole list is read anew, so that a lost message costs
//! nothing but time. Bursts, as when hundreds of pods start, are taken together.

use futures::{StreamExt, TryStreamExt};
use k8s_api::nic::{Nic, NicKind};
use rtnetlink::packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use rtnetlink::{Handle, MulticastGroup, new_multicast_connection};
use runtime::{Chain, Hold};
use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

/// A burst is over after this much silence.
const QUIET: Duration = Duration::from_millis(10);
/// And is looked at no later than this after its first message.
const AT_MOST: Duration = Duration::from_millis(50);
/// Second line, should the kernel drop messages.
const LOOK_AGAIN: Duration = Duration::from_mins(1);
/// The kernel answers a dump in milliseconds.
const DUMP: Duration = Duration::from_secs(5);
/// Pause before the netlink socket is opened again.
const REOPEN: Duration = Duration::from_secs(1);

/// Why the list of links could not be read.
#[derive(Debug, thiserror::Error)]
enum Unreadable {
    #[error("cannot open a netlink socket")]
    Open(#[source] io::Error),
    #[error("cannot list links")]
    List(#[source] rtnetlink::Error),
    #[error("the kernel did not list links within {DUMP:?}")]
    Slow,
    #[error("the netlink socket closed")]
    Closed,
}

/// Latest interfaces in order of their names, and the task that keeps them. `None` until they were read once.
pub(crate) fn watch(
    sysfs: PathBuf,
    seen: Hold,
) -> (watch::Receiver<Option<Vec<Nic>>>, impl Future<Output = Result<(), Infallible>>) {
    let (nics, latest) = watch::channel(None);
    (latest, run(sysfs, seen, nics))
}

async fn run(sysfs: PathBuf, seen: Hold, nics: watch::Sender<Option<Vec<Nic>>>) -> Result<(), Infallible> {
    let mut seen = Some(seen);
    loop {
        let Err(error) = follow(&sysfs, &mut seen, &nics).await;
        tracing::warn!(error = %Chain(&error), "cannot watch network interfaces; the last ones seen stay in force");
        tokio::time::sleep(REOPEN).await;
    }
}

async fn follow(
    sysfs: &Path,
    seen: &mut Option<Hold>,
    nics: &watch::Sender<Option<Vec<Nic>>>,
) -> Result<Infallible, Unreadable> {
    let (connection, handle, mut messages) =
        new_multicast_connection(&[MulticastGroup::Link]).map_err(Unreadable::Open)?;
    let mut connection = std::pin::pin!(connection);
    let looking = async {
        loop {
            let mut now = look(&handle, sysfs).await?;
            if lacks(&now, nics.borrow().as_deref().unwrap_or_default()) {
                // A dump that links come and go under may skip one; a NIC is gone when two dumps say so.
                now = look(&handle, sysfs).await?;
            }
            if let Some(hold) = seen.take() {
                hold.release();
            }
            nics.send_if_modified(|before| before.replace(now.clone()).as_ref() != Some(&now));
            if let Ok(message) = timeout(LOOK_AGAIN, messages.next()).await {
                message.ok_or(Unreadable::Closed)?;
                let deadline = Instant::now() + AT_MOST;
                let quiet = async { while let Ok(Some(_)) = timeout(QUIET, messages.next()).await {} };
                tokio::select! { () = quiet => {}, () = sleep_until(deadline) => {} }
            }
        }
    };
    tokio::select! {
        ended = looking => ended,
        () = &mut connection => Err(Unreadable::Closed),
    }
}

fn lacks(now: &[Nic], before: &[Nic]) -> bool {
    before.iter().any(|nic| !now.contains(nic))
}

async fn look(handle: &Handle, sysfs: &Path) -> Result<Vec<Nic>, Unreadable> {
    let links = handle.link().get().execute().try_collect::<Vec<_>>();
    let links = timeout(DUMP, links).await.map_err(|_| Unreadable::Slow)?.map_err(Unreadable::List)?;
    let mut nics: Vec<Nic> = links.into_iter().filter_map(|link| nic(link, sysfs)).collect();
    nics.sort();
    Ok(nics)
}

fn nic(link: LinkMessage, sysfs: &Path) -> Option<Nic> {
    let loopback = link.header.flags.contains(LinkFlags::Loopback);
    let name = link.attributes.into_iter().find_map(|attribute| match attribute {
        LinkAttribute::IfName(name) => Some(name),
        _ => None,
    })?;
    let kind = if loopback { NicKind::Loopback } else { kind(&name, sysfs) };
    Some(Nic { name, kind })
}

/// Hardware has a `device` link in sysfs: NICs, SR-IOV functions and their representors.
fn kind(name: &str, sysfs: &Path) -> NicKind {
    match sysfs.join("class/net").join(name).join("device").try_exists() {
        Ok(true) => NicKind::Physical,
        Ok(false) | Err(_) => NicKind::Virtual,
    }
}
