//! Which VLANs are in use on the NICs of this node: a kernel has one interface for each id on a NIC, so that an id that the
//! cloud gives twice would leave the second pod without a network.

use super::Flows;
use crate::{Allocation, Host, Kept, Provider, Store};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// By binding. One whose allocation is gone counts no more, and is forgotten when others are looked for.
#[derive(Debug, Default)]
pub(super) struct Vlans(Mutex<HashMap<String, Option<u16>>>);

impl Vlans {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Option<u16>>> {
        // An insertion is whole or not at all.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that `own` has `vlan`, unless one of `others` has it: which one.
    fn claim<'a>(&self, own: &str, vlan: Option<u16>, others: &'a [Allocation]) -> Option<&'a Allocation> {
        let mut all = self.all();
        let has = |other: &&Allocation| {
            vlan.is_some() && other.bind_id().is_some_and(|id| all.get(id).is_some_and(|known| *known == vlan))
        };
        let taken = others.iter().find(has);
        if taken.is_none() {
            all.insert(own.to_owned(), vlan);
        }
        taken
    }
}

impl<S: Store, P: Provider, H: Host> Flows<S, P, H> {
    /// Takes a VLAN for a binding of this node. Why not, if another one on the same NIC has it.
    pub(super) async fn claim(&self, own: &Allocation, vlan: Option<u16>) -> Option<String> {
        let parent = own.provider.as_ref().map(|binding| &binding.parent_nic_mac);
        let bound: Vec<_> =
            self.store.all().into_iter().map(|one| one.value).filter(|one| one.provider.is_some()).collect();
        let of_parent = |one: &Allocation| one.provider.as_ref().map(|binding| &binding.parent_nic_mac) == parent;
        let others: Vec<_> = bound
            .iter()
            // What is being released may be free at the provider already; the kernel is the judge then.
            .filter(|one| one.held() && one.address != own.address && one.node.name == own.node.name && of_parent(one))
            .cloned()
            .collect();
        self.vlans.all().retain(|id, _| bound.iter().any(|one| one.bind_id() == Some(id)));
        for other in &others {
            self.remember(other).await;
        }
        let taken = self.vlans.claim(own.bind_id()?, vlan, &others)?;
        let (pod, vlan) = (&taken.pod, vlan.unwrap_or_default());
        Some(format!(
            "iaas response has the vlanId {vlan} for IP {}: {} of pod {}/{} has it on the same NIC",
            own.address, taken.address, pod.namespace, pod.name
        ))
    }

    /// What an earlier start of this process bound is on disk.
    async fn remember(&self, other: &Allocation) {
        let Some(id) = other.bind_id() else { return };
        if self.vlans.all().contains_key(id) {
            return;
        }
        let kept = self.host.kept(&other.pod.uid, &other.interface).await;
        if let Kept::Result(kept) = kept
            && kept.bind_id.as_deref() == Some(id)
        {
            self.vlans.all().entry(id.to_owned()).or_insert(kept.vlan);
        }
    }
}
