//! What is known, by namespace and name. Reading it costs no request.

use super::config::Config;
use super::definition::Definition;
use super::values::ByValue;
use crate::injection::Attachment;
use k8s_api::attachment::by_annotation::Kind;
use k8s_api::multus::Reference;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Everything that the watches have shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    configs: ByName<Config>,
    definitions: ByName<Definition>,
    /// Own names of configs by the network's name, where they differ. Of several the first counts.
    renamed: ByName<BTreeSet<String>>,
    by_value: ByValue,
    /// Whether both lists have been seen whole: before that, what is not here says nothing.
    pub(crate) synced: bool,
    /// Whether the API server knows NetworkAttachmentDefinitions.
    pub(crate) multus: bool,
}

/// Namespace, then name: neither is copied to look something up.
type ByName<T> = HashMap<String, HashMap<String, T>>;

impl Index {
    /// What stands behind a name, the way Multus would find it; `None` if nothing is known of it.
    pub(crate) fn find(&self, Reference { namespace, name, .. }: &Reference) -> Option<Attachment> {
        if let Some(config) = self.of_network(namespace, name) {
            return Some(config.attachment());
        }
        // One of ours says nothing that the config does not, and may be seen before it.
        if self.definition(namespace, name) == Some(&Definition::Foreign) {
            return Some(Attachment::Foreign);
        }
        self.config(namespace, name).map(Config::by_own_name)
    }

    /// Every config.
    pub(crate) fn configs(&self) -> impl Iterator<Item = &Config> {
        self.configs.values().flat_map(HashMap::values)
    }

    /// A config by its own name.
    pub(crate) fn config(&self, namespace: &str, name: &str) -> Option<&Config> {
        self.configs.get(namespace)?.get(name)
    }

    /// The config whose network has this name; of several the first by name, as for [`Index::find`].
    pub(crate) fn of_network(&self, namespace: &str, network: &str) -> Option<&Config> {
        let own = self.config(namespace, network).filter(|config| *config.network == *network);
        own.or_else(|| self.config(namespace, self.renamed.get(namespace)?.get(network)?.first()?))
    }

    /// The configs that an annotation with this value selects, wherever they are.
    pub(crate) fn selected(&self, kind: Kind, value: &str) -> impl Iterator<Item = &Config> {
        self.by_value.get(kind, value).filter_map(|(namespace, name)| self.config(namespace, name))
    }

    /// A definition.
    pub(crate) fn definition(&self, namespace: &str, name: &str) -> Option<&Definition> {
        self.definitions.get(namespace)?.get(name)
    }

    /// The definitions of a namespace.
    pub(crate) fn definitions_in(&self, namespace: &str) -> impl Iterator<Item = (&String, &Definition)> {
        self.definitions.get(namespace).into_iter().flatten()
    }

    /// Adds or replaces a config.
    pub(crate) fn put_config(&mut self, config: Config) {
        self.remove_config(&config.namespace, &config.name);
        if *config.network != *config.name {
            let renamed = self.renamed.entry(config.namespace.clone()).or_default();
            renamed.entry(config.network.to_string()).or_default().insert(config.name.clone());
        }
        self.by_value.put(&config);
        self.configs.entry(config.namespace.clone()).or_default().insert(config.name.clone(), config);
    }

    /// Forgets a config.
    pub(crate) fn remove_config(&mut self, namespace: &str, name: &str) {
        let Some(old) = take(&mut self.configs, namespace, name) else { return };
        self.by_value.remove(&old);
        let Some(names) = self.renamed.get_mut(namespace).and_then(|names| names.get_mut(&*old.network)) else {
            return;
        };
        names.remove(&old.name);
        if names.is_empty() {
            take(&mut self.renamed, namespace, &old.network);
        }
    }

    /// Adds or replaces a definition.
    pub(crate) fn put_definition(&mut self, namespace: String, name: String, definition: Definition) {
        self.definitions.entry(namespace).or_default().insert(name, definition);
    }

    /// Forgets a definition.
    pub(crate) fn remove_definition(&mut self, namespace: &str, name: &str) {
        take(&mut self.definitions, namespace, name);
    }

    /// Forgets every config that is not in `listed`.
    pub(crate) fn keep_configs(&mut self, listed: &HashSet<(String, String)>) {
        for (namespace, name) in missing(&self.configs, listed) {
            self.remove_config(&namespace, &name);
        }
    }

    /// Forgets every definition that is not in `listed`.
    pub(crate) fn keep_definitions(&mut self, listed: &HashSet<(String, String)>) {
        for (namespace, name) in missing(&self.definitions, listed) {
            self.remove_definition(&namespace, &name);
        }
    }

    /// A config whose network has this name, other than the one that is called `but`.
    pub(crate) fn other_of_network(&self, namespace: &str, network: &str, but: &str) -> Option<String> {
        let own = self.config(namespace, network).filter(|config| *config.network == *network);
        let renamed = self.renamed.get(namespace).and_then(|names| names.get(network)).into_iter().flatten();
        own.map(|config| &config.name).into_iter().chain(renamed).find(|name| *name != but).cloned()
    }

    /// Whether a NetworkAttachmentDefinition that is not ours has this name.
    pub(crate) fn has_foreign_definition(&self, namespace: &str, name: &str) -> bool {
        self.definition(namespace, name) == Some(&Definition::Foreign)
    }

    /// SpiderMultusConfigs and NetworkAttachmentDefinitions.
    pub(crate) fn sizes(&self) -> (usize, usize) {
        (self.configs.values().map(HashMap::len).sum(), self.definitions.values().map(HashMap::len).sum())
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

fn missing<T>(map: &ByName<T>, listed: &HashSet<(String, String)>) -> Vec<(String, String)> {
    let all = map.iter().flat_map(|(namespace, names)| names.keys().map(move |name| (namespace, name)));
    all.map(|(namespace, name)| (namespace.clone(), name.clone())).filter(|key| !listed.contains(key)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::definition::Made;
    use super::*;
    use k8s_api::attachment::NETWORK_NAME;
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
        index.put_definition("ns".to_owned(), "b".to_owned(), Definition::Ours(Box::new(Made::default())));
        assert_eq!(index.find(&reference("b")), None, "its config has not been seen yet");
        index.put_definition("ns".to_owned(), "a".to_owned(), Definition::Foreign);
        assert_eq!(index.find(&reference("a")), Some(Attachment::Foreign));
        index.put_config(config("a", None, &vlan("eth1")));
        assert!(matches!(index.find(&reference("a")), Some(Attachment::Ours(_))));
    }

    #[test]
    fn a_config_is_found_by_what_selects_it() {
        let object = |annotations: serde_json::Value, labels: serde_json::Value| {
            let metadata = json!({"namespace": "ns", "name": "a", "annotations": annotations, "labels": labels});
            Config::of(&serde_json::from_value(json!({"metadata": metadata, "spec": {}})).expect("an object"))
        };
        let (rdma, network) = (Kind::Rdma.annotation(), Kind::Network.annotation());
        let mut index = Index::default();
        let selects = |index: &Index, kind, value: &str| index.selected(kind, value).count();
        index.put_config(object(json!({rdma: "red", network: "blue"}), json!({rdma: "green"})));
        assert_eq!((selects(&index, Kind::Rdma, "red"), selects(&index, Kind::Network, "blue")), (1, 1));
        assert_eq!((selects(&index, Kind::Rdma, "green"), selects(&index, Kind::Network, "red")), (0, 0));
        index.put_config(object(json!({}), json!({rdma: "green"})));
        assert_eq!((selects(&index, Kind::Rdma, "green"), selects(&index, Kind::Rdma, "red")), (1, 0));
        index.put_config(object(json!({rdma: ""}), json!({rdma: "green"})));
        assert_eq!((selects(&index, Kind::Rdma, "green"), selects(&index, Kind::Rdma, "")), (0, 0), "empty is nothing");
        index.put_config(object(json!({network: "blue"}), json!({})));
        index.keep_configs(&HashSet::new());
        assert!(index.by_value.is_empty());
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
            index.put_definition("ns".to_owned(), name.to_owned(), Definition::Foreign);
        }
        let listed = HashSet::from([("ns".to_owned(), "b".to_owned())]);
        index.keep_configs(&listed);
        index.keep_definitions(&listed);
        assert_eq!(index.sizes(), (1, 1));
    }
}
