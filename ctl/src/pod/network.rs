//! What stands behind the name of a network: our attachment, and the definition that Multus reads.

use super::mentions::Mention;
use crate::fault::Seen;
use k8s_api::attachment::NETWORK_NAME;
use k8s_api::crd::multus_config::{MultusConfigSpec, MultusConfigStatus, Pools};
use k8s_api::ipam::{Names, PoolName};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::DynamicObject;
use serde_json::Value;

/// One network of a pod.
#[derive(Clone, Debug)]
pub(super) struct Network {
    pub(super) mention: Mention,
    pub(super) config: Seen<Option<Config>>,
    pub(super) definition: Seen<Option<Definition>>,
}

/// A SpiderMultusConfig.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Config {
    pub(super) name: String,
    pub(super) spec: Result<MultusConfigSpec, String>,
    /// Condition `Ready`.
    pub(super) ready: Option<Condition>,
}

/// A NetworkAttachmentDefinition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Definition {
    /// Pools that its IPAM configuration names, where that is ours; or what is no CNI configuration.
    pub(super) pools: Result<Option<Names>, String>,
}

impl Config {
    /// The name by which Multus knows it, and what it says.
    pub(super) fn read(object: &DynamicObject) -> (String, Self) {
        let name = object.metadata.name.clone().unwrap_or_default();
        let renamed = object.metadata.annotations.as_ref().and_then(|all| all.get(NETWORK_NAME)).cloned();
        let part = |key: &str| object.data.get(key).cloned().unwrap_or(Value::Null);
        let spec = serde_json::from_value::<MultusConfigSpec>(part("spec")).map_err(|error| error.to_string());
        let status = serde_json::from_value::<MultusConfigStatus>(part("status")).unwrap_or_default();
        let ready = status.conditions.into_iter().find(|condition| condition.type_ == "Ready");
        (renamed.filter(|name| !name.is_empty()).unwrap_or_else(|| name.clone()), Self { name, spec, ready })
    }
}

impl Definition {
    pub(super) fn read(object: &DynamicObject) -> Self {
        let text = object.data.pointer("/spec/config").and_then(Value::as_str).unwrap_or_default();
        // Without a configuration Multus takes the file of that name on the node.
        if text.is_empty() {
            return Self { pools: Ok(None) };
        }
        let read = serde_json::from_str::<Value>(text).map_err(|error| format!("spec.config is not JSON: {error}"));
        Self { pools: read.map(|config| ipam(&config)) }
    }
}

/// Pools of a CNI configuration whose addresses come from us: of the plugin, or of the first of a chain that says so.
fn ipam(config: &Value) -> Option<Names> {
    let chain = config.get("plugins").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let all = std::iter::once(config).chain(chain);
    let ipam =
        all.filter_map(|plugin| plugin.get("ipam")).find(|ipam| ipam.get("type") == Some(&"spiderpool".into()))?;
    let list = |key: &str| -> Vec<PoolName> {
        let names = ipam.get(key).and_then(Value::as_array).into_iter().flatten();
        names.filter_map(|name| PoolName::read(name.as_str()?).ok()).collect()
    };
    Some(Names { ipv4: list("default_ipv4_ippool"), ipv6: list("default_ipv6_ippool") })
}

impl Network {
    /// Pools that the network's configuration names; none where its addresses are not ours.
    pub(super) fn pools(&self) -> Option<Names> {
        if let Ok(Some(Definition { pools: Ok(pools) })) = &self.definition {
            return pools.clone();
        }
        // It is about to be made.
        let spec = self.config.as_ref().ok()?.as_ref()?.spec.as_ref().ok()?;
        if spec.disable_ipam {
            return None;
        }
        let named = spec.vlan.as_ref().map(|vlan| vlan.ippools.as_ref());
        let named = named.or_else(|| spec.macvlan.as_ref().map(|macvlan| macvlan.ippools.as_ref()));
        let named = named.or_else(|| spec.ipvlan.as_ref().map(|ipvlan| ipvlan.ippools.as_ref()));
        let named = named.or_else(|| spec.ipoib.as_ref().map(|ipoib| ipoib.ippools.as_ref()))?;
        Some(named.map(names).unwrap_or_default())
    }
}

fn names(pools: &Pools) -> Names {
    let read = |names: &[String]| names.iter().filter_map(|name| PoolName::read(name).ok()).collect();
    Names { ipv4: read(&pools.ipv4), ipv6: read(&pools.ipv6) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pools_of_a_definition_are_those_of_our_plugin() {
        let read = |config: Value| {
            let object = json!({"metadata": {"name": "n"}, "spec": {"config": config.to_string()}});
            Definition::read(&serde_json::from_value(object).expect("an object")).pools
        };
        let ours = json!({"type": "spiderpool", "default_ipv4_ippool": ["a", "b*", 5]});
        let found = read(json!({"type": "macvlan", "ipam": ours})).expect("read").expect("ours");
        assert_eq!(found.ipv4.iter().map(ToString::to_string).collect::<Vec<_>>(), ["a", "b*"]);
        let found = read(json!({"plugins": [{"type": "tuning"}, {"type": "vlan", "ipam": ours}]}));
        assert!(found.expect("read").is_some());
        assert_eq!(read(json!({"type": "macvlan", "ipam": {"type": "host-local"}})), Ok(None));
        let object = json!({"metadata": {"name": "n"}, "spec": {"config": "{"}});
        let odd = Definition::read(&serde_json::from_value(object).expect("an object"));
        assert!(odd.pools.expect_err("no JSON").contains("is not JSON"));
    }

    #[test]
    fn an_attachment_may_have_another_name() {
        let object = json!({"metadata": {"name": "n", "annotations": {NETWORK_NAME: "m"}}, "spec": {"cniType": "x"}});
        let (name, config) = Config::read(&serde_json::from_value(object).expect("an object"));
        assert_eq!((name.as_str(), config.name.as_str(), config.spec.is_err()), ("m", "n", true));
    }
}
