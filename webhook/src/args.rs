//! The command line.

use clap::{Parser, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Controller of Spiderpool.
#[derive(Debug, Parser)]
#[command(name = "spiderpool-controller", version, about)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Least severity that is logged: debug, info, warn, error.
    #[arg(long, global = true, env = "SPIDERPOOL_LOG_LEVEL", value_name = "LEVEL", default_value = "info")]
    pub(crate) log_level: runtime::log::Level,

    /// Shape of log lines: text, json.
    #[arg(long, global = true, env = "SPIDERPOOL_LOG_FORMAT", value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: runtime::log::Format,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run until SIGTERM.
    Daemon(Daemon),
    /// Create a pod that names a network, as a dry run; fails if no controller was asked about it.
    Check(Check),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Daemon {
    /// The file conf.yml of the `ConfigMap` spiderpool-conf.
    #[arg(long, value_name = "FILE", default_value = "/etc/spiderpool/conf.yml")]
    pub(crate) config_path: PathBuf,

    /// Certificate of the webhook, PEM, with its chain.
    #[arg(long, value_name = "FILE", default_value = "/etc/tls/tls.crt")]
    pub(crate) tls_server_cert: PathBuf,

    /// Private key of the webhook, PEM; in the folder of the certificate.
    #[arg(long, value_name = "FILE", default_value = "/etc/tls/tls.key")]
    pub(crate) tls_server_key: PathBuf,

    /// Address and port of the webhook.
    #[arg(long, env = "SPIDERPOOL_WEBHOOK_ADDRESS", value_name = "ADDRESS", default_value = "0.0.0.0:5722")]
    pub(crate) webhook_address: SocketAddr,

    /// Address and port of /live, /ready and /metrics.
    #[arg(long, env = "SPIDERPOOL_ADMIN_ADDRESS", value_name = "ADDRESS", default_value = "0.0.0.0:5720")]
    pub(crate) admin_address: SocketAddr,

    /// Namespace of this controller, where its lease lies.
    #[arg(long, env = "SPIDERPOOL_POD_NAMESPACE", value_name = "NAMESPACE")]
    pub(crate) namespace: String,

    /// Name of this controller's pod: no other controller may have it.
    #[arg(long, env = "SPIDERPOOL_POD_NAME", value_name = "NAME")]
    pub(crate) pod_name: String,

    /// Name of the Lease that one of the controllers holds.
    #[arg(long, value_name = "NAME", default_value = "spiderpool-controller")]
    pub(crate) lease: String,

    /// Worker threads.
    #[arg(long, env = "SPIDERPOOL_THREADS", value_name = "COUNT", default_value = "2", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) threads: u8,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Check {
    /// Where the pod would be created; not one that is excluded from injection.
    #[arg(long, value_name = "NAMESPACE", default_value = "default")]
    pub(crate) namespace: String,
}
