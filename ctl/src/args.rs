//! What is asked, as typed.

use clap::{Args as Part, Parser, Subcommand, ValueEnum};
use k8s_api::duration;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

const ABOUT: &str = "Says who has which address, why a pod has none, and what to do about it.\n\n\
                     Ends with 0 when all is well, 1 when something is wrong, 2 when it could not ask.";

/// Says who has which address, why a pod has none, and what to do about it.
#[derive(Parser, Debug)]
#[command(name = "spiderpoolctl", version, about = ABOUT, subcommand_required = true)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Part, Debug)]
pub(crate) struct Global {
    #[command(flatten)]
    pub(crate) cluster: Cluster,
    /// How the answer is written.
    #[arg(short, long, global = true, value_enum, default_value_t)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) system: System,
}

/// Where spiderpool itself is.
#[derive(Part, Debug)]
pub(crate) struct System {
    /// Namespace of spiderpool itself: its configuration is read there.
    // `namespace` is the id of that of a pod.
    #[arg(
        id = "system_namespace",
        long = "system-namespace",
        global = true,
        value_name = "NAMESPACE",
        default_value = "kube-system"
    )]
    pub(crate) namespace: String,
    /// Its ConfigMap (`global.configName` of the chart).
    #[arg(long, global = true, value_name = "NAME", default_value = "spiderpool-conf")]
    pub(crate) config_map: String,
}

/// Which API server.
#[derive(Part, Debug)]
pub(crate) struct Cluster {
    /// Context of the kubeconfig.
    #[arg(long, global = true)]
    pub(crate) context: Option<String>,
    /// The kubeconfig, instead of KUBECONFIG or ~/.kube/config.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// How long to wait for each answer of the API server, such as 10s or 1m.
    #[arg(long, global = true, value_name = "TIME", default_value = "10s")]
    pub(crate) request_timeout: Wait,
}

/// How the answer is written.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Output {
    /// For people.
    #[default]
    Table,
    /// For programs; docs/spiderpoolctl.md has the fields.
    Json,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Pools, and how many addresses are free; with a name, who has which.
    Pools {
        /// One pool.
        name: Option<String>,
    },
    /// Explains why a pod has its addresses, or has none.
    Pod(Which),
    /// What a node offers, who uses it, and which addresses are held there.
    Node {
        /// The node.
        name: String,
    },
    /// What is held for nobody, and who will free it when. Ends with 1 if nobody will.
    Leaks,
    /// Asks the controller to free addresses that nobody else frees.
    Release(Wish),
    /// Shows what the controller would take over of an earlier Spiderpool. Ends with 1 if it could not take over all of it.
    Adopt {
        /// Says it and does nothing. The controller adopts by itself; there is no other way to run this.
        #[arg(long, required = true)]
        dry_run: bool,
    },
    /// Writes the completion script of a shell.
    Completion {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// Which pod.
#[derive(Part, Debug)]
pub(crate) struct Which {
    /// Its namespace; that of the kubeconfig's context otherwise.
    #[arg(short, long)]
    pub(crate) namespace: Option<String>,
    /// NAME, or NAMESPACE/NAME.
    #[arg(value_name = "POD")]
    pub(crate) pod: String,
}

/// What shall be released.
#[derive(Part, Debug)]
pub(crate) struct Wish {
    /// Addresses.
    #[arg(required = true, value_name = "ADDRESS")]
    pub(crate) addresses: Vec<String>,
    /// Do not ask the provider: the address is known to be free there, or that is accepted.
    #[arg(long)]
    pub(crate) abandon: bool,
    /// Do not ask for confirmation.
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// How long to wait until the addresses are free.
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(crate) timeout: Wait,
}

/// A time that is not nothing, as Go writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait(Duration);

impl From<Wait> for Duration {
    fn from(Wait(time): Wait) -> Self {
        time
    }
}

impl FromStr for Wait {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        const MOST: Duration = Duration::from_hours(1);
        let wrong = "write a time from 1ms to 1h, such as 10s";
        let time = duration::read(text).ok_or(wrong)?;
        if (Duration::from_millis(1)..=MOST).contains(&time) { Ok(Self(time)) } else { Err(wrong) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Args::command().debug_assert();
        let Args { global, command } = Args::parse_from(["spiderpoolctl", "pod", "-n", "a", "b", "--config-map", "c"]);
        let Command::Pod(Which { namespace, pod }) = command else { panic!("a pod") };
        assert_eq!((namespace.as_deref(), pod.as_str()), (Some("a"), "b"));
        assert_eq!((global.system.namespace.as_str(), global.system.config_map.as_str()), ("kube-system", "c"));
    }

    #[test]
    fn times_are_positive() {
        assert_eq!("1m".parse(), Ok(Wait(Duration::from_mins(1))));
        for text in ["", "0s", "-1s", "1h-5m", "10", "2h", "soon", "99999999999999999999999999h"] {
            assert!(text.parse::<Wait>().is_err(), "{text}");
        }
    }
}
