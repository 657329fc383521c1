//! All namespaces.

use super::facts::Facts;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Everything that the watch has shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Namespaces {
    by_name: HashMap<String, Facts>,
    /// Those whose label is not as it should be.
    due: BTreeSet<String>,
    /// Whether the list has been seen whole: before that, what is not here says nothing.
    pub(crate) synced: bool,
}

impl Namespaces {
    pub(crate) fn get(&self, name: &str) -> Option<&Facts> {
        self.by_name.get(name)
    }

    /// Whether pods of `pods` may get the attachments of `attachments` by annotation.
    pub(crate) fn shares(&self, attachments: &str, pods: &str) -> bool {
        attachments == pods || self.get(attachments).is_some_and(|facts| facts.shares_with(pods))
    }

    /// Those whose label is not as it should be.
    pub(super) fn due(&self) -> &BTreeSet<String> {
        &self.due
    }

    pub(crate) fn put(&mut self, name: String, facts: Facts) {
        if facts.step().is_some() {
            self.due.insert(name.clone());
        } else {
            self.due.remove(&name);
        }
        self.by_name.insert(name, facts);
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.due.remove(name);
        self.by_name.remove(name);
    }

    /// Forgets every namespace that is not in `listed`.
    pub(super) fn keep(&mut self, listed: &HashSet<String>) {
        self.due.retain(|name| listed.contains(name));
        self.by_name.retain(|name, _| listed.contains(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_api::names::INJECT;
    use serde_json::json;

    #[test]
    fn what_is_due_follows_what_is_known() {
        let facts = |annotations: serde_json::Value| {
            Facts::of(
                &serde_json::from_value(json!({"annotations": annotations, "labels": {"a": "b"}})).expect("metadata"),
            )
        };
        let mut known = Namespaces::default();
        for name in ["a", "b", "c"] {
            known.put(name.to_owned(), facts(json!({INJECT[0]: "red"})));
        }
        assert_eq!(known.due().len(), 3);
        known.put("a".to_owned(), facts(json!({})));
        known.remove("b");
        assert_eq!(known.due().iter().map(String::as_str).collect::<Vec<_>>(), ["c"]);
        assert!(known.get("a").is_some() && known.get("b").is_none());
        known.keep(&HashSet::from(["a".to_owned()]));
        assert!(known.due().is_empty() && known.get("c").is_none());
        assert!(known.shares("a", "a") && !known.shares("a", "b") && !known.shares("nowhere", "b"));
    }
}
