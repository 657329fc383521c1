//! Puts the CNI plugin of this image into the host's folder: `spiderpool-agent install-cni`, before the agent starts.
//!
//! It stays there when the agent goes: pods that have addresses need it to give them back.

use crate::multus;
use anyhow::{Context, ensure};
use std::path::PathBuf;

/// From where to where.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The plugin, in this image.
    #[arg(long, value_name = "FILE", default_value = "/usr/libexec/cni/spiderpool")]
    pub(crate) program: PathBuf,

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

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let Args { program, into, log_level: _, log_format: _ } = args;
    let name = program.file_name().with_context(|| format!("{} is no file", program.display()))?;
    ensure!(program.is_file(), "this image has no {}; it is older than the chart", program.display());
    let to = into.join(name);
    multus::install(program, &to).with_context(|| format!("cannot install {}", to.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::path::Path;

    fn args(folder: &Path) -> Args {
        Args {
            program: folder.join("image/spiderpool"),
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
        fs::write(&args.program, "first").expect("writes");
        run(&args).expect("installs");
        let to = args.into.join("spiderpool");
        let meta = fs::metadata(&to).expect("there");
        assert_eq!(meta.permissions().mode() & 0o777, 0o755);
        run(&args).expect("again");
        assert_eq!(fs::metadata(&to).expect("there").ino(), meta.ino(), "the same content is left alone");
        let running = fs::File::open(&to).expect("opens");
        fs::write(&args.program, "other").expect("writes");
        fs::write(args.into.join("spiderpool.spiderpool-new"), "of a killed run").expect("writes");
        run(&args).expect("replaces");
        assert_eq!(fs::read_to_string(&to).expect("there"), "other");
        assert_eq!(running.metadata().expect("open").ino(), meta.ino(), "who runs the old one goes on with it");
        assert_eq!(fs::read_dir(&args.into).expect("reads").count(), 1, "nothing else is left");
    }
}
