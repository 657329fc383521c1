//! What is known, by namespace and name. Reading it costs no request.

use crate::injection::Attachment;
use k8s_api::attachment::{NETWORK_NAME, Needs};
use k8s_api::crd::multus_config::MultusConfigSpec;
use k8s_api::multus::Reference;
use kube::ResourceExt;
use kube::api::DynamicObject;
use runtime::Chain;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// Everything that the watches have shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    configs: ByName<Config>,
    definitions: HashMap<String, HashSet<String>>,
    /// Own names of configs by the network's name, where they differ. Of several the first counts.
    renamed: ByName<BTreeSet<String>>,
    /// Whether both lists have been seen whole: before that, what is not here says nothing.
    pub(crate) synced: bool,
}

/// Namespace, then name: neither is copied to look something up.
type ByName<T> = HashMap<String, HashMap<String, T>>;

/// One SpiderMultusConfig.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) namespace: String,
    pub(crate) name: String,
    network: Arc<str>,
    needs: Result<Arc<Needs>, Arc<str>>,
}

impl Config {
    /// Reads the object as far as it matters here. One that cannot be read is known as such; it stops nothing.
    pub(crate) fn of(object: &DynamicObject) -> Self {
        let spec = object.data.get("spec").cloned().unwrap_or_default();
        let needs = serde_json::from_value::<MultusConfigSpec>(spec);
        let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
        let network = object.annotations().get(NETWORK_NAME).filter(|network| !network.is_empty()).unwrap_or(&name);
        Self {
            network: network.as_str().into(),
            namespace,
            needs: needs.map(|spec| Arc::new(Needs::of(&spec))).map_err(|error| Chain(&error).to_string().into()),
            name,
        }
    }

    /// What stands behind the config's own name.
    pub(crate) fn by_own_name(&self) -> Attachment {
        if *self.network == *self.name { self.attachment() } else { Attachment::Renamed(Arc::clone(&self.network)) }
    }

    /// The name by which Multus knows it.
    pub(crate) fn network(&self) -> &str {
        &self.network
    }

    fn attachment(&self) -> Attachment {
        match &self.needs {
            Ok(needs) => Attachment::Ours(Arc::clone(needs)),
            Err(error) => Attachment::Unreadable(Arc::clone(error)),
        }
    }
}

impl Index {
    /// What stands behind a name, the way Multus would find it; `None` if nothing is known of it.
    pub(crate) fn find(&self, Reference { namespace, name, .. }: &Reference) -> Option<Attachment> {
        let config = |name: &str| self.configs.get(namespace)?.get(name);
        let own = config(name);
        if let Some(config) = own.filter(|config| *config.network == **name) {
            return Some(config.attachment());
        }
        if let Some(config) = self.renamed.get(namespace).and_then(|names| config(names.get(name)?.first()?)) {
            return Some(config.attachment());
        }
        if self.definitions.get(namespace).is_some_and(|names| names.contains(name)) {
            return Some(Attachment::Foreign);
        }
        own.map(Config::by_own_name)
    }

    /// Adds or replaces a config.
    pub(crate) fn put_config(&mut self, config: Config) {
        self.remove_config(&config.namespace, &config.name);
        if *config.network != *config.name {
            let renamed = self.renamed.entry(config.namespace.clone()).or_default();
            renamed.entry(config.network.to_string()).or_default().insert(config.name.clone());
        }
        self.configs.entry(config.namespace.clone()).or_default().insert(config.name.clone(), config);
    }

    /// Forgets a config.
    pub(crate) fn remove_config(&mut self, namespace: &str, name: &str) {
        let Some(old) = take(&mut self.configs, namespace, name) else { return };
        let Some(names) = self.renamed.get_mut(namespace).and_then(|names| names.get_mut(&*old.network)) else {
            return;
        };
        names.remove(&old.name);
        if names.is_empty() {
            take(&mut self.renamed, namespace, &old.network);
        }
    }

    /// Adds a NetworkAttachmentDefinition.
    pub(crate) fn put_definition(&mut self, namespace: String, name: String) {
        self.definitions.entry(namespace).or_default().insert(name);
    }

    /// Forgets a NetworkAttachmentDefinition.
    pub(crate) fn remove_definition(&mut self, namespace: &str, name: &str) {
        let Some(names) = self.definitions.get_mut(namespace) else { return };
        names.remove(name);
        if names.is_empty() {
            self.definitions.remove(namespace);
        }
    }

    /// Forgets every config that is not in `listed`.
    pub(crate) fn keep_configs(&mut self, listed: &HashSet<(String, String)>) {
        let all = self.configs.iter().flat_map(|(namespace, names)| names.keys().map(move |name| (namespace, name)));
        for (namespace, name) in missing(all, listed) {
            self.remove_config(&namespace, &name);
        }
    }

    /// Forgets every definition that is not in `listed`.
    pub(crate) fn keep_definitions(&mut self, listed: &HashSet<(String, String)>) {
        let all =
            self.definitions.iter().flat_map(|(namespace, names)| names.iter().map(move |name| (namespace, name)));
        for (namespace, name) in missing(all, listed) {
            self.remove_definition(&namespace, &name);
        }
    }

    /// A config whose network has this name, other than the one that is called `but`.
    pub(crate) fn other_of_network(&self, namespace: &str, network: &str, but: &str) -> Option<String> {
        let own = self.configs.get(namespace)?.get(network).filter(|config| *config.network == *network);
        let renamed = self.renamed.get(namespace).and_then(|names| names.get(network)).into_iter().flatten();
        own.map(|config| &config.name).into_iter().chain(renamed).find(|name| *name != but).cloned()
    }

    /// Whether a NetworkAttachmentDefinition that is not ours has this name.
    pub(crate) fn has_foreign_definition(&self, namespace: &str, name: &str) -> bool {
        self.definitions.get(namespace).is_some_and(|names| names.contains(name))
    }

    /// SpiderMultusConfigs and NetworkAttachmentDefinitions.
    pub(crate) fn sizes(&self) -> (usize, usize) {
        (self.configs.values().map(HashMap::len).sum(), self.definitions.values().map(HashSet::len).sum())
    }
}

fn take<T>(map: &mut ByName<T>, namespace: &str, name: &str) -> Option<T> {
    let names = map.get_mut(namespace)?;
    let taken = names.remove(name);
    if names.is_empty() {
        map.remove(namespace);
    }
    taken
}

fn missing<'i>(
    all: impl Iterator<Item = (&'i String, &'i String)>,
    listed: &HashSet<(String, String)>,
) -> Vec<(String, String)> {
    all.map(|(namespace, name)| (namespace.clone(), name.clone())).filter(|key| !listed.contains(key)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn config(name: &str, network: Option<&str>, spec: &serde_json::Value) -> Config {
        let annotations = network.map(|network| json!({ NETWORK_NAME: network }));
        let object = json!({"metadata": {"namespace": "ns", "name": name, "annotations": annotations}, "spec": spec});
        Config::of(&serde_json::from_value(object).expect("an object"))
    }

    fn reference(name: &str) -> Reference {
        Reference { namespace: "ns".to_owned(), name: name.to_owned(), interface: String::new() }
    }

    fn vlan(master: &str) -> serde_json::Value {
        json!({"cniType": "vlan", "vlan": {"master": [master]}})
    }

    #[test]
    fn a_config_is_found_by_the_name_of_its_network() {
        let mut index = Index::default();
        index.put_config(config("a", None, &vlan("eth1")));
        index.put_config(config("b", Some("net-b"), &vlan("eth2")));
        assert!(matches!(index.find(&reference("a")), Some(Attachment::Ours(_))));
        assert!(matches!(index.find(&reference("net-b")), Some(Attachment::Ours(_))));
        assert_eq!(index.find(&reference("b")), Some(Attachment::Renamed("net-b".into())));
        assert_eq!(index.find(&reference("c")), None);
        index.put_config(config("b", None, &vlan("eth2")));
        assert_eq!(index.find(&reference("net-b")), None, "the old name is gone");
        assert!(matches!(index.find(&reference("b")), Some(Attachment::Ours(_))));
        index.remove_config("ns", "b");
        assert_eq!(index.find(&reference("b")), None);
        assert!(index.renamed.is_empty());
    }

    #[test]
    fn two_configs_of_one_network_are_told_apart() {
        let mut index = Index::default();
        for name in ["b", "a", "c"] {
            index.put_config(config(name, Some("net"), &vlan(&format!("eth-{name}"))));
        }
        let master = |index: &Index| match index.find(&reference("net")) {
            Some(Attachment::Ours(needs)) => needs.masters.first().cloned(),
            _ => None,
        };
        assert_eq!(master(&index).as_deref(), Some("eth-a"), "whatever the order");
        index.remove_config("ns", "a");
        assert_eq!(master(&index).as_deref(), Some("eth-b"));
        index.remove_config("ns", "b");
        index.remove_config("ns", "c");
        assert_eq!(master(&index), None);
    }

    #[test]
    fn ours_wins_over_its_definition_and_a_foreign_one_is_known() {
        let mut index = Index::default();
        index.put_definition("ns".to_owned(), "a".to_owned());
        assert_eq!(index.find(&reference("a")), Some(Attachment::Foreign));
        index.put_config(config("a", None, &vlan("eth1")));
        assert!(matches!(index.find(&reference("a")), Some(Attachment::Ours(_))));
    }

    #[test]
    fn one_that_cannot_be_read_stops_nothing() {
        let mut index = Index::default();
        index.put_config(config("bad", None, &json!({"cniType": "vlan", "vlan": {"master": 5}})));
        assert!(matches!(index.find(&reference("bad")), Some(Attachment::Unreadable(_))));
        assert_eq!(index.sizes(), (1, 0));
    }

    #[test]
    fn a_new_list_replaces_the_old() {
        let mut index = Index::default();
        for name in ["a", "b"] {
            index.put_config(config(name, None, &vlan("eth1")));
            index.put_definition("ns".to_owned(), name.to_owned());
        }
        let listed = HashSet::from([("ns".to_owned(), "b".to_owned())]);
        index.keep_configs(&listed);
        index.keep_definitions(&listed);
        assert_eq!(index.sizes(), (1, 1));
    }
}
