//! Sandboxes of which nobody knows anything: of addresses that were taken over from an earlier system.
//!
//! A kubelet deletes a pod's object once it has torn down the sandboxes, and calls it terminal once no container runs. Only who
//! deletes a pod by force is faster than the kubelet, which follows within its grace. So such a sandbox is gone when its pod
//! has been gone or terminal for a while, by live reads of this process; or at a DEL after the pod is gone or terminal.

use crate::Address;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Since the pod was first seen to have ended.
const TORN_DOWN: Duration = Duration::from_mins(2);

/// Since when pods are known to have ended: UID, and time on the own clock.
#[derive(Debug, Default)]
pub(super) struct Ended(Mutex<HashMap<Address, (String, Duration)>>);

impl Ended {
    /// The pod is gone or terminal, as was just read.
    pub(super) fn note(&self, address: Address, uid: &str, now: Duration) {
        let mut all = self.all();
        let known = all.get(&address).is_some_and(|(noted, _)| noted == uid);
        if !known {
            all.insert(address, (uid.to_owned(), now));
        }
    }

    /// It is there, or its address is dealt with.
    pub(super) fn forget(&self, address: Address) {
        self.all().remove(&address);
    }

    pub(super) fn is_torn_down(&self, address: Address, uid: &str, now: Duration) -> bool {
        let all = self.all();
        all.get(&address).is_some_and(|(noted, since)| noted == uid && now >= since.saturating_add(TORN_DOWN))
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Address, (String, Duration)>> {
        // An insertion is whole or not at all.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
