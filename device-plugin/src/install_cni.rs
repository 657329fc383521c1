//! Puts the CNI plugins of this image into the host's folder: `spiderpool-agent install-cni`, before the agent starts; and gives a
//! `vlan` that was there before back when the agent goes for good: `spiderpool-agent restore-cni`.
//!
//! ```text
//! vlan on the host       none, or ours    foreign, we were never here    foreign, put there since
//! install-cni            ours             kept as vlan.before-spiderpool left alone
//! restore-cni            the kept one comes back, if there is one; if not, ours stays                left alone
//! ```
//!
//! Plugins stay there when the agent goes: pods that have addresses need them to give them back. The `vlan` of before does that,
//! too.

mod vlan;

use crate::multus;
use anyhow::{Context, ensure};
use runtime::Tasks;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// From where to where.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A plugin, in this image; may be given again.
    #[arg(long, value_name = "FILE", default_values = ["/usr/libexec/cni/spiderpool"])]
    pub(crate) program: Vec<PathBuf>,

    /// The runtime's folder of CNI plugins, as it is mounted here.
    #[arg(long, value_name = "FOLDER", default_value = "/host/opt/cni/bin")]
    pub(crate) into: PathBuf,

    /// Least severity that is logged: debug, info, warn, error.
    #[arg(long, env = "SPIDERPOOL_LOG_LEVEL", value_name = "LEVEL", default_value = "info")]
    pub(crate) log_level: runtime::log::Level,

    /// Shape of log lines: text, json.
    #[arg(long, env = "SPIDERPOOL_LOG_FORMAT", value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: runtime::log::Format,
}

/// Where, and whose end it waits for.
#[derive(Debug, clap::Args)]
pub(crate) struct Restore {
    /// The runtime's folder of CNI plugins, as it is mounted here.
    #[arg(long, value_name = "FOLDER", default_value = "/host/opt/cni/bin")]
    pub(crate) into: PathBuf,

    /// Namespace of the DaemonSet.
    #[arg(long, env = "SPIDERPOOL_POD_NAMESPACE", value_name = "NAMESPACE")]
    pub(crate) namespace: String,

    /// The DaemonSet that this runs in.
    #[arg(long, value_name = "NAME")]
    pub(crate) daemon_set: String,

    /// Least severity that is logged: debug, info, warn, error.
    #[arg(long, env = "SPIDERPOOL_LOG_LEVEL", value_name = "LEVEL", default_value = "info")]
    pub(crate) log_level: runtime::log::Level,

    /// Shape of log lines: text, json.
    #[arg(long, env = "SPIDERPOOL_LOG_FORMAT", value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: runtime::log::Format,
}

/// The question to the API server and a rename.
const GRACE: Duration = Duration::from_secs(10);

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let Args { program, into, log_level: _, log_format: _ } = args;
    program.iter().try_for_each(|program| install(program, into))
}

fn install(program: &Path, into: &Path) -> anyhow::Result<()> {
    let name = program.file_name().with_context(|| format!("{} is no file", program.display()))?;
    ensure!(program.is_file(), "this image has no {}; it is older than the chart", program.display());
    let to = into.join(name);
    let installed = if name == vlan::NAME { vlan::install(program, into) } else { multus::install(program, &to) };
    installed.with_context(|| format!("cannot install {}", to.display()))
}

/// Waits for SIGTERM. Only if the DaemonSet goes, and not this pod alone, is anything done.
pub(crate) fn restore(args: Restore) -> anyhow::Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let client = kube::Client::try_default().await.context("cannot tell where the API server is")?;
        let mut tasks = Tasks::default();
        let stop = tasks.stop();
        tasks.spawn("waiting for the end of the agent", farewell(args, client, stop));
        Ok(tasks.run(GRACE).await?)
    })
}

async fn farewell(args: Restore, client: kube::Client, stop: CancellationToken) -> Result<(), Infallible> {
    let Restore { into, namespace, daemon_set, log_level: _, log_format: _ } = args;
    stop.cancelled().await;
    if multus::stays(client, &namespace, &daemon_set).await {
        tracing::info!("the DaemonSet stays, and with it the CNI plugins on this node");
        return Ok(());
    }
    if let Err(error) = vlan::restore(&into) {
        tracing::error!(%error, "cannot restore vlan; rename vlan.before-spiderpool by hand");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    fn args(folder: &Path) -> Args {
        Args {
            program: vec![folder.join("image/spiderpool")],
            into: folder.join("host/bin"),
            log_level: "info".parse().expect("a level"),
            log_format: runtime::log::Format::Text,
        }
    }

    #[test]
    fn the_plugin_is_replaced_whole_and_only_if_it_differs() {
        let folder = tempfile::tempdir().expect("a folder");
        let args = args(folder.path());
        assert!(run(&args).expect_err("no plugin").to_string().contains("older than the chart"));
        fs::create_dir(folder.path().join("image")).expect("makes");
        fs::write(&args.program[0], "first").expect("writes");
        run(&args).expect("installs");
        let to = args.into.join("spiderpool");
        let meta = fs::metadata(&to).expect("there");
        assert_eq!(meta.permissions().mode() & 0o777, 0o755);
        run(&args).expect("again");
        assert_eq!(fs::metadata(&to).expect("there").ino(), meta.ino(), "the same content is left alone");
        let running = fs::File::open(&to).expect("opens");
        fs::write(&args.program[0], "other").expect("writes");
        fs::write(args.into.join("spiderpool.spiderpool-new"), "of a killed run").expect("writes");
        run(&args).expect("replaces");
        assert_eq!(fs::read_to_string(&to).expect("there"), "other");
        assert_eq!(running.metadata().expect("open").ino(), meta.ino(), "who runs the old one goes on with it");
        assert_eq!(fs::read_dir(&args.into).expect("reads").count(), 1, "nothing else is left");
    }
}
