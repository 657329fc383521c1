//! Arguments and `conf.yml` to a checked configuration.

use crate::args::Daemon;
use k8s_api::conf::{Conf, Faults};
use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Everything that the agent was told.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) node: String,
    pub(crate) admin: SocketAddr,
    pub(crate) sysfs: PathBuf,
    pub(crate) conf: Conf,
}

/// A `ConfigMap` holds at most 1 MiB.
const CONF_BYTES_MAX: u64 = 1024 * 1024;

/// The agent cannot start with what it was told.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Invalid {
    #[error("empty value of SPIDERPOOL_NODE_NAME: set it to the name of this node's Node object")]
    NodeName,
    #[error("cannot read {0}; it is the key conf.yml of the ConfigMap spiderpool-conf")]
    Read(PathBuf, #[source] io::Error),
    #[error("Failed to load Configmap spiderpool-conf, {file}")]
    Conf { file: PathBuf, source: Faults },
}

impl TryFrom<Daemon> for Config {
    type Error = Invalid;

    fn try_from(daemon: Daemon) -> Result<Self, Invalid> {
        let Daemon { config_path, node_name, admin_address, log_level: _, log_format: _, sysfs_root } = daemon;
        if node_name.is_empty() {
            return Err(Invalid::NodeName);
        }
        let text = read(&config_path).map_err(|source| Invalid::Read(config_path.clone(), source))?;
        let conf = Conf::parse(&text).map_err(|source| Invalid::Conf { file: config_path, source })?;
        Ok(Self { node: node_name, admin: admin_address, sysfs: sysfs_root, conf })
    }
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(CONF_BYTES_MAX + 1).read_to_string(&mut text)?;
    if u64::try_from(text.len()).unwrap_or(u64::MAX) > CONF_BYTES_MAX {
        return Err(io::Error::other("larger than 1 MiB"));
    }
    Ok(text)
}
