//! `conf.yml`: text in, a whole configuration or every fault in it out. Never half of one.

mod adoption;
mod detection;
mod fault;
mod gc;
pub mod plugin;
pub mod provider;
mod section;
mod selector;
mod yaml;

use crate::Quoted;
use crate::syntax;
pub use adoption::Adoption;
pub use detection::Detection;
pub use fault::{Fault, Faults};
pub use gc::Gc;
use plugin::NetworkResourcePlugin;
use provider::Provider;
pub use provider::{Former, PROVIDER_WORST, Server};
use section::{Found, Section};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

/// Where plugins look for the agent unless they are told.
pub const IPAM_SOCKET: &str = "/var/run/spidernet/spiderpool.sock";

/// A configuration that passed every check.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "switches of a file, each of its own")]
pub struct Conf {
    /// `enableIPv4`: whether pods get IPv4 addresses.
    pub ipv4: bool,
    /// `enableIPv6`: whether pods get IPv6 addresses.
    pub ipv6: bool,
    /// What CNI plugins ask a pod's network before they give its addresses on.
    pub detection: Detection,
    /// `iaasNetworkProvider.serverUrl`: the cloud provider that binds addresses.
    pub provider: Option<Server>,
    /// `iaasNetworkProvider.httpRequestTimeout`: one call's limit.
    pub call_timeout: Duration,
    /// `iaasNetworkProvider.formerServers`: providers that are still asked to release what they bound.
    pub former_servers: Vec<Former>,
    /// `ipamUnixSocketPath`: where CNI plugins find the agent of their node.
    pub socket: PathBuf,
    /// `agent.networkResourcePlugin`: what nodes advertise.
    pub plugin: NetworkResourcePlugin,
    /// `podResourceInject.enabled`: whether pods get their requests by themselves.
    pub inject: bool,
    /// `enableStatefulSet`: whether pods of a StatefulSet keep their addresses.
    pub stateful_sets: bool,
    /// `enableKubevirtStaticIP`: whether virtual machines do.
    pub machines: bool,
    /// `gc`: what is done about what was left behind.
    pub gc: Gc,
    /// `adoption`: how an earlier system is taken over.
    pub adoption: Adoption,
    /// `multus`: what has to be known of Multus to read what pods write for it.
    pub multus: Multus,
    /// `plugins.present`: CNI plugins that every node has besides those that the chart installs.
    pub plugins: BTreeSet<String>,
}

impl Default for Conf {
    fn default() -> Self {
        Self {
            ipv4: true,
            ipv6: true,
            detection: Detection::default(),
            provider: None,
            call_timeout: provider::CALL_TIMEOUT,
            former_servers: Vec::new(),
            socket: IPAM_SOCKET.into(),
            plugin: NetworkResourcePlugin::default(),
            inject: false,
            stateful_sets: true,
            machines: true,
            gc: Gc::default(),
            adoption: Adoption::default(),
            multus: Multus::default(),
            plugins: BTreeSet::new(),
        }
    }
}

/// How Multus is set up on this cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Multus {
    /// Where it looks up bare names in `v1.multus-cni.io/default-network` (its `multusNamespace`).
    pub namespace: String,
    /// The attachment, `namespace/name`, that pods get as their first interface without naming it.
    pub cluster_network: Option<(String, String)>,
    /// Namespaces that pods of others may name attachments of, where it keeps namespaces apart (its `namespaceIsolation`
    /// and `globalNamespaces`); `None` where it does not.
    pub isolation: Option<BTreeSet<String>>,
}

impl Multus {
    /// Whether Multus lets a pod of `namespace` name an attachment of `other` in `k8s.v1.cni.cncf.io/networks`.
    #[must_use]
    pub fn reaches(&self, namespace: &str, other: &str) -> bool {
        namespace == other || self.isolation.as_ref().is_none_or(|global| global.contains(other))
    }
}

impl Default for Multus {
    fn default() -> Self {
        Self { namespace: "kube-system".to_owned(), cluster_network: None, isolation: None }
    }
}

impl Conf {
    /// Reads the text of `conf.yml`. On failure every fault is listed, in the order of the text.
    pub fn parse(text: &str) -> Result<Self, Faults> {
        let tree = yaml::parse(text)?;
        let mut faults = Faults::default();
        let conf = Section::root(&tree, &mut faults).map(Self::read);
        match conf {
            Some(conf) if faults.is_empty() => Ok(conf),
            _ => Err(faults.in_order()),
        }
    }

    fn read(mut root: Section<'_, '_>) -> Self {
        for key in FLAGS {
            root.flag(key);
        }
        let ipv4 = root.flag("enableIPv4").unwrap_or(true);
        let ipv6 = root.flag("enableIPv6").unwrap_or(true);
        let stateful_sets = root.flag("enableStatefulSet").unwrap_or(true);
        let machines = root.flag("enableKubevirtStaticIP").unwrap_or(true);
        let plugins = root.section("plugins").map(plugins);
        let socket = root.text("ipamUnixSocketPath").filter(|path| !path.value.is_empty());
        let socket = socket.map_or_else(|| IPAM_SOCKET.into(), |path| path.value.into());
        root.number("clusterSubnetDefaultFlexibleIPNumber");
        let inject = root.section("podResourceInject").is_some_and(|mut inject| {
            let enabled = inject.flag("enabled").unwrap_or_default();
            // The API server sorts namespaces out before it asks.
            inject.texts("namespacesExclude");
            inject.texts("namespacesInclude");
            inject.end();
            enabled
        });
        let gc = root.section("gc").map(Gc::read).unwrap_or_default();
        let adoption = root.section("adoption").map(Adoption::read).unwrap_or_default();
        let multus = root.section("multus").map(Multus::read).unwrap_or_default();
        let Provider { named, server, call_timeout, former_servers } = Provider::of(&mut root);
        let (plugins, vlan) = plugins.unwrap_or_default();
        if let Some(found) = vlan.filter(|found| named && !found.value) {
            let why = "no other plugin gives a pod's interface the VLAN and the MAC that a provider answers";
            root.fault(found.line, format!("{} must be true with iaasNetworkProvider.serverUrl: {why}", found.path));
        }
        let plugin = root.section("agent").map(|mut agent| {
            let plugin = agent.section("networkResourcePlugin").map(NetworkResourcePlugin::read);
            agent.end();
            plugin
        });
        let detection = Detection::read(&mut root, named);
        root.end();
        let plugin = plugin.flatten().unwrap_or_default();
        Self {
            ipv4,
            ipv6,
            detection,
            provider: server,
            call_timeout,
            former_servers,
            socket,
            plugin,
            inject,
            stateful_sets,
            machines,
            gc,
            adoption,
            multus,
            plugins,
        }
    }
}

/// Those that nodes have, and what stands at `installVlanCNI`.
fn plugins(mut section: Section<'_, '_>) -> (BTreeSet<String>, Option<Found<bool>>) {
    let vlan = section.flag_found("installVlanCNI");
    let mut present = BTreeSet::new();
    for found in section.texts("present") {
        if syntax::is_name(found.value) {
            present.insert(found.value.to_owned());
        } else {
            section
                .fault(found.line, format!("{} {} is not the name of a CNI plugin", found.path, Quoted(found.value)));
        }
    }
    section.end();
    (present, vlan)
}

impl Multus {
    fn read(mut section: Section<'_, '_>) -> Self {
        let mut multus = Self::default();
        if let Some(found) = section.text("namespace").filter(|found| !found.value.is_empty()) {
            if syntax::is_label(found.value) {
                found.value.clone_into(&mut multus.namespace);
            } else {
                section.fault(
                    found.line,
                    format!("{} {} is not the name of a namespace", found.path, Quoted(found.value)),
                );
            }
        }
        if let Some(found) = section.text("clusterNetwork").filter(|found| !found.value.is_empty()) {
            match found.value.split_once('/') {
                Some((namespace, name)) if syntax::is_label(namespace) && syntax::is_subdomain(name) => {
                    multus.cluster_network = Some((namespace.to_owned(), name.to_owned()));
                }
                _ => {
                    section.fault(found.line, format!("{} {} must be namespace/name", found.path, Quoted(found.value)));
                }
            }
        }
        let isolated = section.flag("namespaceIsolation").unwrap_or_default();
        let mut global = BTreeSet::new();
        for found in section.texts("globalNamespaces") {
            if syntax::is_label(found.value) {
                global.insert(found.value.to_owned());
            } else {
                section.fault(
                    found.line,
                    format!("{} {} is not the name of a namespace", found.path, Quoted(found.value)),
                );
            }
        }
        if isolated {
            // As Multus has it: `default` is for everybody where nothing else is said.
            multus.isolation = Some(if global.is_empty() { BTreeSet::from(["default".to_owned()]) } else { global });
        }
        section.end();
        multus
    }
}

/// Switches that exist in the configuration of running installations. Their readers come with the parts that use them;
/// until then their type is checked and nothing else.
const FLAGS: [&str; 5] = [
    "enableCleanOutdatedEndpoint",
    "enableSpiderSubnet",
    "enableAutoPoolForApplication",
    "enableValidatingResourcesDeletedWebhook",
    "tuneSysctlConfig",
];

#[cfg(test)]
mod tests;
