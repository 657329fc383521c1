//! The command line.

use clap::{Parser, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Node agent of Spiderpool.
#[derive(Debug, Parser)]
#[command(name = "spiderpool-agent", version, about)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run until SIGTERM.
    Daemon(Daemon),
    /// Put CNI plugins where this node's container runtime looks for them, and end.
    InstallCni(crate::install_cni::Args),
    /// Wait for SIGTERM, and give the node's own plugin `vlan` back if the agent goes for good.
    RestoreCni(crate::install_cni::Restore),
    /// Keep Multus in use on this node until SIGTERM.
    Multus(Box<crate::multus::Args>),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Daemon {
    /// The file conf.yml of the `ConfigMap` spiderpool-conf.
    #[arg(long, value_name = "FILE", default_value = "/etc/spiderpool/conf.yml")]
    pub(crate) config_path: PathBuf,

    /// Name of the Node object of this node.
    #[arg(long, env = "SPIDERPOOL_NODE_NAME", value_name = "NAME")]
    pub(crate) node_name: String,

    /// Namespace of the release: where attachments are that pools name without one.
    #[arg(long, env = "SPIDERPOOL_POD_NAMESPACE", value_name = "NAMESPACE", default_value = "kube-system")]
    pub(crate) namespace: String,

    /// Folder on the host's disk for results of CNI plugins.
    #[arg(long, value_name = "FOLDER", default_value = "/var/lib/spidernet")]
    pub(crate) state_dir: PathBuf,

    /// Address and port of /live, /ready and /metrics.
    #[arg(long, env = "SPIDERPOOL_ADMIN_ADDRESS", value_name = "ADDRESS", default_value = "127.0.0.1:5710")]
    pub(crate) admin_address: SocketAddr,

    /// Least severity that is logged: debug, info, warn, error.
    #[arg(long, env = "SPIDERPOOL_LOG_LEVEL", value_name = "LEVEL", default_value = "info")]
    pub(crate) log_level: runtime::log::Level,

    /// Shape of log lines: text, json.
    #[arg(long, env = "SPIDERPOOL_LOG_FORMAT", value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: runtime::log::Format,

    /// Where sysfs is mounted; says which interfaces are hardware.
    #[arg(long, value_name = "FOLDER", default_value = "/sys")]
    pub(crate) sysfs_root: PathBuf,
}
