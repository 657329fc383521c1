//! Names by something that several of them have in common.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(crate) struct Lookup(BTreeMap<String, BTreeSet<String>>);

impl Lookup {
    pub(crate) fn insert(&mut self, by: &str, name: &str) {
        self.0.entry(by.to_owned()).or_default().insert(name.to_owned());
    }

    pub(crate) fn remove(&mut self, by: &str, name: &str) {
        let Some(names) = self.0.get_mut(by) else { return };
        names.remove(name);
        if names.is_empty() {
            self.0.remove(by);
        }
    }

    pub(crate) fn names(&self, by: &str) -> impl Iterator<Item = &String> {
        self.0.get(by).into_iter().flatten()
    }
}
