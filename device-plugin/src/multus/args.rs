//! The command line of `spiderpool-agent multus`.

use std::path::{Path, PathBuf};

/// What the chart says.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only look whether Multus is in use with this pod's rights; exit code 1 and a reason if not.
    #[arg(long)]
    pub(crate) check: bool,

    /// Where the host's folders are mounted.
    #[arg(long, value_name = "FOLDER", default_value = "/host")]
    pub(crate) host: PathBuf,

    /// The runtime's folder of network configurations, on the host.
    #[arg(long, value_name = "FOLDER", default_value = "/etc/cni/net.d")]
    pub(crate) cni_conf_folder: PathBuf,

    /// The runtime's folder of CNI plugins, on the host.
    #[arg(long, value_name = "FOLDER", default_value = "/opt/cni/bin")]
    pub(crate) cni_bin_folder: PathBuf,

    /// The program Multus, to be installed.
    #[arg(long, value_name = "FILE", default_value = "/multus/multus")]
    pub(crate) program: PathBuf,

    /// Token and authority by which Multus reads pods and attachments.
    #[arg(long, value_name = "FOLDER", default_value = "/var/run/secrets/kubernetes.io/serviceaccount")]
    pub(crate) service_account: PathBuf,

    /// Address of the API server.
    #[arg(long, env = "KUBERNETES_SERVICE_HOST", value_name = "ADDRESS")]
    pub(crate) api_host: String,

    /// Port of the API server.
    #[arg(long, env = "KUBERNETES_SERVICE_PORT", value_name = "PORT", default_value_t = 443)]
    pub(crate) api_port: u16,

    /// Where Multus looks up the cluster network, and bare names in v1.multus-cni.io/default-network.
    #[arg(long, value_name = "NAMESPACE", default_value = "kube-system")]
    pub(crate) multus_namespace: String,

    /// The attachment that every pod gets as its first interface; without it that is the node's own network.
    #[arg(long, value_name = "NAME")]
    pub(crate) cluster_network: Option<String>,

    /// Pods may name attachments of their own namespace and of --global-namespaces alone.
    #[arg(long)]
    pub(crate) namespace_isolation: bool,

    /// Namespaces whose attachments all pods may name; Multus takes `default` if none is given.
    #[arg(long, value_name = "NAMESPACE,…", value_delimiter = ',', requires = "namespace_isolation")]
    pub(crate) global_namespaces: Vec<String>,

    /// The DaemonSet that this pod belongs to.
    #[arg(long, value_name = "NAME", default_value = "spiderpool-multus")]
    pub(crate) daemon_set: String,

    /// The namespace of this pod.
    #[arg(long, env = "SPIDERPOOL_POD_NAMESPACE", value_name = "NAMESPACE", default_value = "kube-system")]
    pub(crate) pod_namespace: String,

    /// Least severity that is logged: debug, info, warn, error.
    #[arg(long, env = "SPIDERPOOL_LOG_LEVEL", value_name = "LEVEL", default_value = "info")]
    pub(crate) log_level: runtime::log::Level,

    /// Shape of log lines: text, json.
    #[arg(long, env = "SPIDERPOOL_LOG_FORMAT", value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: runtime::log::Format,
}

impl Args {
    /// Where this process finds a folder of the host.
    pub(crate) fn in_host(&self, folder: &Path) -> PathBuf {
        self.host.join(folder.strip_prefix("/").unwrap_or(folder))
    }
}
