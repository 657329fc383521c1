//! The command line.

use clap::{Parser, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

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
    Daemon(Box<Daemon>),
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

    #[command(flatten)]
    pub(crate) own: OwnAuthority,

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

/// With the first of these the controllers make authority and certificate themselves, and no files are read.
#[derive(Debug, clap::Args)]
pub(crate) struct OwnAuthority {
    /// Secret that the controllers keep authority and certificate in.
    #[arg(long, value_name = "NAME")]
    pub(crate) tls_self_secret: Option<String>,

    /// Names of the certificate.
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "tls_self_secret")]
    pub(crate) tls_self_names: Vec<String>,

    /// Name of the webhook configurations that are to trust it.
    #[arg(long, value_name = "NAME", requires = "tls_self_secret")]
    pub(crate) tls_self_webhooks: Option<String>,

    /// How long a certificate lives; the authority lives four times as long.
    #[arg(long, value_name = "HOURS", default_value = "2160h", value_parser = crate::authority::lifetime)]
    pub(crate) tls_self_valid: Duration,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Check {
    /// Where the pod would be created; not one that is excluded from injection.
    #[arg(long, value_name = "NAMESPACE", default_value = "default")]
    pub(crate) namespace: String,
}
