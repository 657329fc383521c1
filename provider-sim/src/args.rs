//! The command line.

use clap::{Parser, Subcommand};
use ipam_core::{Address, Subnet};
use provider_sim::check::Id;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

/// A provider of the IaaS contract that binds nothing, and a check of real ones.
#[derive(Debug, Parser)]
#[command(name = "provider-sim", version, about)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Least severity that is logged: debug, info, warn, error.
    #[arg(long, global = true, value_name = "LEVEL", default_value = "info")]
    pub(crate) log_level: runtime::log::Level,

    /// Shape of log lines: text, json.
    #[arg(long, global = true, value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: runtime::log::Format,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Be a provider until SIGTERM. Prints where it listens.
    Serve(Serve),
    /// Look whether a provider keeps the contract. Ends with 0 only if every check passed or was skipped.
    Check(Check),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Check {
    /// The provider's serverUrl, with scheme and port.
    pub(crate) url: String,

    /// Send the token in this file (Authorization: Bearer …).
    #[arg(long, value_name = "FILE")]
    pub(crate) token: Option<PathBuf>,

    /// Trust this authority alone, in PEM; else those of the system.
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,

    /// Show this certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) cert: Option<PathBuf>,

    /// Its key, in PEM.
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,

    /// A subnet that the provider knows. Its addresses are bound and released: nobody else may use them.
    #[arg(long, value_name = "CIDR", default_value = "198.18.0.0/24")]
    pub(crate) subnet: Subnet,

    /// The first address that is used; about thirty that follow are, too. The tenth of the subnet if it is not said.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) first: Option<Address>,

    /// MAC address of a NIC that the provider knows.
    #[arg(long, value_name = "MAC", default_value = "fa:16:3e:00:00:01")]
    pub(crate) parent_mac: String,

    /// The node that has this NIC.
    #[arg(long, value_name = "NAME", default_value = "provider-check")]
    pub(crate) node: String,

    /// Budget of a usual call.
    #[arg(long, value_name = "TIME", default_value = "50s", value_parser = time)]
    pub(crate) budget: Duration,

    /// Budget of calls that are to come to their end: less than your provider needs for --burst of them.
    #[arg(long, value_name = "TIME", default_value = "1500ms", value_parser = time)]
    pub(crate) small_budget: Duration,

    /// How many of them are sent at once.
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub(crate) burst: u16,

    /// How long to watch for bindings that come after their budget.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = time)]
    pub(crate) watch: Duration,

    /// Run this check alone; can be given more than once.
    #[arg(long, value_name = "CHECK")]
    pub(crate) only: Vec<Id>,

    /// Print one JSON object at the end, not lines.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    /// Address and port; port 0 is any free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,

    /// How many addresses a node can carry; 0: as many as there are VLAN ids.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) capacity: usize,

    /// How many calls the cloud takes, such as 5/s; more wait, up to 30 s or their budget.
    #[arg(long, value_name = "N/s", value_parser = rate)]
    pub(crate) rate: Option<f64>,

    /// How many calls it takes at once before --rate holds.
    #[arg(long, value_name = "N", default_value = "1", requires = "rate")]
    pub(crate) burst: NonZeroU32,

    /// How long a call of the cloud takes, such as 200ms or 2s.
    #[arg(long, value_name = "TIME", default_value = "0ms", value_parser = time)]
    pub(crate) latency: Duration,

    /// Keep what is bound in this file. Without it a restart forgets.
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,

    /// What chance begins with, so that a run can be repeated.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,

    /// Speak TLS with this certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// Its key, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,

    /// Clients need a certificate of this authority, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) client_ca: Option<PathBuf>,

    /// Clients need the token in this file (Authorization: Bearer …).
    #[arg(long, value_name = "FILE")]
    pub(crate) token: Option<PathBuf>,
}

/// `5/s`, `0.5/s`.
fn rate(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix("/s").and_then(|number| number.parse().ok());
    let positive = number.filter(|rate: &f64| rate.is_finite() && *rate > 0.0);
    positive.ok_or_else(|| "write a positive number of calls a second, such as 5/s".to_owned())
}

/// `250ms`, `2s`.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let number = digits.parse::<u32>().ok();
    match (number, unit) {
        (Some(number), "ms") => Ok(Duration::from_millis(number.into())),
        (Some(number), "s") => Ok(Duration::from_secs(number.into())),
        _ => Err("write a number of ms or s, such as 200ms or 2s".to_owned()),
    }
}
