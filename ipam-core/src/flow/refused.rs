//! What a provider said last to releases that it did not carry out: for the pods that wait for them.

use crate::Address;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// As many as releases run in this process.
#[derive(Debug, Default)]
pub(super) struct Refused(Mutex<HashMap<Address, String>>);

impl Refused {
    pub(super) fn note(&self, address: Address, why: &str) {
        self.all().insert(address, why.to_owned());
    }

    pub(super) fn why(&self, address: Address) -> Option<String> {
        self.all().get(&address).cloned()
    }

    /// Its release has ended.
    pub(super) fn forget(&self, address: Address) {
        self.all().remove(&address);
    }

    fn all(&self) -> std::sync::MutexGuard<'_, HashMap<Address, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
