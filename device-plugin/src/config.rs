//! Arguments to a checked configuration.

use crate::args::Daemon;
use k8s_api::conf::{Conf, Faults};
use runtime::conf_file::{self, Unusable};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Everything that the agent was told.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) node: String,
    /// That of the release: of attachments that pools name without one.
    pub(crate) own_namespace: String,
    pub(crate) state: PathBuf,
    pub(crate) admin: SocketAddr,
    pub(crate) sysfs: PathBuf,
    pub(crate) conf_file: PathBuf,
    pub(crate) conf: Conf,
}

/// The agent cannot start with what it was told.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Invalid {
    #[error(
        "empty value of SPIDERPOOL_NODE_NAME, or one that is no name: set it to the name of this node's Node object"
    )]
    NodeName,
    #[error(transparent)]
    Conf(#[from] Unusable<Faults>),
}

impl TryFrom<Daemon> for Config {
    type Error = Invalid;

    fn try_from(daemon: Daemon) -> Result<Self, Invalid> {
        let Daemon {
            config_path,
            node_name,
            namespace,
            state_dir,
            admin_address,
            log_level: _,
            log_format: _,
            sysfs_root,
        } = daemon;
        if node_name.is_empty() || node_name.contains(|c: char| c.is_whitespace() || c == ',' || c == '=') {
            return Err(Invalid::NodeName);
        }
        let conf = conf_file::load(&config_path, Conf::parse)?;
        Ok(Self {
            node: node_name,
            own_namespace: namespace,
            state: state_dir,
            admin: admin_address,
            sysfs: sysfs_root,
            conf_file: config_path,
            conf,
        })
    }
}
