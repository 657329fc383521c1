//! `conf.yml`: text in, a whole configuration or every fault in it out. Never half of one.

mod fault;
pub mod plugin;
mod section;
mod selector;
mod yaml;

pub use fault::{Fault, Faults};
use plugin::NetworkResourcePlugin;
use section::Section;

/// A configuration that passed every check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conf {
    /// Whether `iaasNetworkProvider.serverUrl` names a cloud provider.
    pub provider: bool,
    /// `agent.networkResourcePlugin`: what nodes advertise.
    pub plugin: NetworkResourcePlugin,
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
        root.text("ipamUnixSocketPath");
        root.number("clusterSubnetDefaultFlexibleIPNumber");
        if let Some(mut tune) = root.section("podResourceInject") {
            tune.flag("enabled");
            tune.texts("namespacesExclude");
            tune.texts("namespacesInclude");
            tune.end();
        }
        let provider = root.section("iaasNetworkProvider").is_some_and(|mut provider| {
            let url = provider.text("serverUrl").filter(|url| !url.value.is_empty());
            provider.text("httpRequestTimeout");
            if let Some((line, fault)) = url.as_ref().and_then(|url| Some((url.line, server_url_fault(url.value)?))) {
                // Not with the URL: it may carry a password.
                provider.fault(line, format!("invalid iaasNetworkProvider.serverUrl: {fault}"));
            }
            provider.end();
            url.is_some()
        });
        let plugin = root.section("agent").map(|mut agent| {
            let plugin = agent.section("networkResourcePlugin").map(NetworkResourcePlugin::read);
            agent.end();
            plugin
        });
        root.end();
        Self { provider, plugin: plugin.flatten().unwrap_or_default() }
    }
}

/// What is wrong with the provider's URL at first sight; its client will say more.
fn server_url_fault(url: &str) -> Option<&'static str> {
    let lower = url.to_ascii_lowercase();
    let Some(rest) = lower.strip_prefix("http://").or_else(|| lower.strip_prefix("https://")) else {
        return Some("must start with http:// or https://");
    };
    if rest.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Some("must not contain blanks");
    }
    rest.split(['/', '?', '#']).next().is_none_or(str::is_empty).then_some("host is empty")
}

/// Switches that exist in the configuration of running installations. Their readers come with the parts that use them;
/// until then their type is checked and nothing else.
const FLAGS: [&str; 11] = [
    "enableIPv4",
    "enableIPv6",
    "enableStatefulSet",
    "enableKubevirtStaticIP",
    "enableCleanOutdatedEndpoint",
    "enableSpiderSubnet",
    "enableAutoPoolForApplication",
    "enableIPConflictDetection",
    "enableGatewayDetection",
    "enableValidatingResourcesDeletedWebhook",
    "tuneSysctlConfig",
];

#[cfg(test)]
mod tests;
