//! Keeps Multus in use on one node: `spiderpool-agent multus`, in a DaemonSet of its own.
//!
//! ```text
//! settings, the pod's token and authority ─┐
//! the node's own network configuration ────┴─> layout: what has to lie where ──> files, written whole or not at all
//! SIGTERM ──> farewell: does the DaemonSet stay? ──> leave everything, or take everything away
//! ```
//!
//! While the runtime finds our configuration, no pod starts without Multus; once it does not, pods start with the node's own
//! network and silently without their attachments, and what they held in those is never given back. So the files outlive the
//! pod: an upgrade, a crash or a restarted node changes nothing. Only when the DaemonSet itself goes do they go too, because
//! the token that they hold dies with it. Every name is our own, so another Multus's files are never touched.

mod args;
mod farewell;
mod files;
mod layout;

pub(crate) use args::Args;
pub(crate) use farewell::stays;
pub(crate) use files::{install, remove};

use anyhow::{Context, ensure};
use files::{Folder, Upkeep};
use layout::Layout;
use runtime::{Chain, Tasks, inotify};
use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Second line, should a change of a folder be missed.
const POLL: Duration = Duration::from_secs(10);
/// A change is several events; one look answers for all within this time.
const BURST: Duration = Duration::from_millis(50);
/// The question to the API server and the removal of a few files; less than the pod's grace period.
const GRACE: Duration = Duration::from_secs(10);

/// Runs until SIGTERM, or looks once.
pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    if args.check {
        return check(&args);
    }
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(serve(args))
}

async fn serve(args: Args) -> anyhow::Result<()> {
    let client = kube::Client::try_default().await.context("cannot tell where the API server is")?;
    let folder = Folder::new(args.in_host(&args.cni_conf_folder));
    let program = args.in_host(&args.cni_bin_folder).join(layout::PROGRAM);
    install(&args.program, &program).with_context(|| format!("cannot install {}", program.display()))?;
    let own = folder.path().join(layout::OWN_FOLDER);
    std::fs::create_dir_all(&own).with_context(|| format!("cannot make {}", own.display()))?;
    let (mut watcher, changed) = inotify::watcher()?;
    for watched in [folder.path(), &own, &args.service_account] {
        inotify::add(&mut watcher, watched)?;
    }

    let mut tasks = Tasks::default();
    let stop = tasks.stop();
    tasks.spawn("keeping Multus in use", async move {
        let _watcher = watcher;
        keep(&args, &folder, &program, &changed, &stop).await;
        if stays(client, &args.pod_namespace, &args.daemon_set).await {
            tracing::info!("the DaemonSet stays, and with it Multus on this node");
            return Ok::<(), Infallible>(());
        }
        // The configuration first: from then on the runtime uses the node's own network.
        let ours = [folder.path().join(layout::CONF), own, program];
        for path in &ours {
            match remove(path) {
                Ok(()) => tracing::info!(path = %path.display(), "removed"),
                Err(error) => tracing::error!(path = %path.display(), %error, "cannot remove; remove it by hand"),
            }
        }
        Ok(())
    });
    Ok(tasks.run(GRACE).await?)
}

/// Puts everything in its place, again and again, until `stop`.
async fn keep(args: &Args, folder: &Folder, program: &Path, changed: &tokio::sync::Notify, stop: &CancellationToken) {
    let mut upkeep = Upkeep::default();
    let mut told = String::new();
    loop {
        let fault = match pass(args, folder, program, &mut upkeep) {
            Ok(()) => String::new(),
            Err(error) => Chain(error.as_ref()).to_string(),
        };
        if fault != told {
            if fault.is_empty() {
                tracing::info!("all is in its place");
            } else {
                tracing::error!(fault, "Multus is not in use as it should be");
            }
            told = fault;
        }
        let look = async {
            if timeout(POLL, changed.notified()).await.is_ok() {
                sleep(BURST).await;
            }
        };
        if stop.run_until_cancelled(look).await.is_none() {
            return;
        }
    }
}

fn pass(args: &Args, folder: &Folder, program: &Path, upkeep: &mut Upkeep) -> anyhow::Result<()> {
    if files::length(program) != files::length(&args.program) {
        install(&args.program, program).with_context(|| format!("cannot install {}", program.display()))?;
    }
    let layout = Layout::of(args, folder)?;
    for file in &layout.files {
        upkeep.keep(file).with_context(|| format!("cannot write {}", file.path.display()))?;
    }
    layout::usable(folder)
}

/// Whether everything lies where it has to, with this pod's token: the pod is ready then.
fn check(args: &Args) -> anyhow::Result<()> {
    let folder = Folder::new(args.in_host(&args.cni_conf_folder));
    let layout = Layout::of(args, &folder)?;
    for file in layout.files.iter().filter(|file| !file.others_may_change) {
        let found = std::fs::read(&file.path).with_context(|| format!("cannot read {}", file.path.display()))?;
        ensure!(found == file.content, "{} is another pod's", file.path.display());
    }
    let program = args.in_host(&args.cni_bin_folder).join(layout::PROGRAM);
    ensure!(files::length(&program) == files::length(&args.program), "{} is not installed", program.display());
    layout::usable(&folder)
}
