//! What a cloud keeps: which address is bound to which NIC, for whom. Pure: chance is handed in.
//!
//! An address is bound for one pod on one NIC. Asked again for the same, the cloud answers as before; for anybody else it
//! refuses, and nothing moves. One call binds all of its addresses or none. A release is believed, whoever sends it: a simple
//! cloud knows addresses, not pods. Whether it came for somebody else is said, so that tests can see it.

mod binding;

pub use binding::View;
pub(crate) use binding::{Binding, Unreadable};

use crate::ask::{Allocate, Release, Wanted};
use crate::mac::Mac;
use ipam_core::Address;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

/// The last VLAN id that a frame can carry for us; 0 and 4095 mean something else.
pub(crate) const LAST_VLAN: u16 = 4094;
/// Tries to find a MAC address that is not in use; of 2^40 one is always found at once.
const DRAWS: usize = 16;

/// Everything that is bound.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cloud {
    bindings: BTreeMap<Address, Binding>,
    /// VLAN ids in use, by NIC.
    vlans: BTreeMap<Nic, BTreeSet<u16>>,
    macs: BTreeSet<Mac>,
    capacity: Option<NonZeroUsize>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Nic {
    node: String,
    parent: Mac,
}

/// Why the cloud binds nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    /// Somebody has it.
    #[error("ipAddress: {address} is bound for {holder}; release it there first")]
    Taken {
        /// The address.
        address: Address,
        /// Who has it, in words.
        holder: String,
    },
    /// No more on this node.
    #[error("nodeName: {node} carries {capacity} addresses and can carry no more; release some")]
    Full {
        /// The node.
        node: String,
        /// What it can carry.
        capacity: usize,
    },
    /// Every VLAN id of this NIC is in use.
    #[error("parentNicMac: all VLAN ids of {parent} on {node} are in use; release some addresses")]
    NoVlan {
        /// The node.
        node: String,
        /// The NIC.
        parent: Mac,
    },
}

/// What a release found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Released {
    /// It was bound and is no more.
    Unbound {
        /// It was bound for a pod of another UID than the one that sent it.
        foreign: bool,
    },
    /// It was not bound.
    NotBound,
}

impl Cloud {
    /// One whose nodes carry so many addresses each; `None`: as many as there are VLAN ids.
    #[must_use]
    pub(crate) fn new(capacity: Option<NonZeroUsize>) -> Self {
        Self { capacity, ..Self::default() }
    }

    /// Binds all addresses of a call, or none.
    pub(crate) fn allocate(
        &mut self,
        asked: &Allocate,
        chance: &mut impl FnMut() -> u64,
    ) -> Result<Vec<Binding>, Refusal> {
        let mut new = 0;
        for wanted in &asked.addresses {
            match self.bindings.get(&wanted.address) {
                Some(held) if held.is_for(asked, wanted) => {}
                Some(held) => return Err(Refusal::Taken { address: wanted.address, holder: held.holder() }),
                None => new += 1,
            }
        }
        if let Some(capacity) = self.capacity.map(NonZeroUsize::get)
            && new > 0
            && self.carried(&asked.node).saturating_add(new) > capacity
        {
            return Err(Refusal::Full { node: asked.node.clone(), capacity });
        }
        let mut bound = Vec::with_capacity(asked.addresses.len());
        let mut added = Vec::new();
        for wanted in &asked.addresses {
            if let Some(held) = self.bindings.get(&wanted.address) {
                bound.push(held.clone());
                continue;
            }
            let Some(vlan) = self.free_vlan(&asked.node, wanted.parent, chance()) else {
                for address in added {
                    self.remove(address);
                }
                return Err(Refusal::NoVlan { node: asked.node.clone(), parent: wanted.parent });
            };
            let binding = Binding::new(asked, wanted, self.free_mac(chance), vlan);
            added.push(wanted.address);
            bound.push(binding.clone());
            self.insert(binding);
        }
        Ok(bound)
    }

    /// Unbinds an address.
    pub(crate) fn release(&mut self, asked: &Release) -> Released {
        let Some(held) = self.remove(asked.address) else { return Released::NotBound };
        let foreign = !asked.pod.uid.is_empty() && !held.pod.uid.is_empty() && asked.pod.uid != held.pod.uid;
        Released::Unbound { foreign }
    }

    /// Everything that is bound, in the order of addresses.
    pub(crate) fn bindings(&self) -> impl Iterator<Item = &Binding> {
        self.bindings.values()
    }

    /// What is bound under this address.
    #[must_use]
    pub(crate) fn get(&self, address: Address) -> Option<&Binding> {
        self.bindings.get(&address)
    }

    /// A VLAN id that another address of the same NIC has.
    #[must_use]
    pub(crate) fn vlan_of_another(&self, node: &str, wanted: &Wanted) -> Option<u16> {
        let others = self.bindings.values().filter(|held| held.address != wanted.address);
        others.filter(|held| held.node == node && held.parent == wanted.parent).map(|held| held.vlan).next()
    }

    /// Loses everything.
    pub(crate) fn forget(&mut self) {
        *self = Self::new(self.capacity);
    }

    /// Takes over what another process has kept. Says which address cannot be as kept.
    pub(crate) fn restore(&mut self, kept: Vec<Binding>) -> Result<(), Address> {
        for binding in kept {
            let address = binding.address;
            let vlan_is_used = self.vlans.get(&binding.nic()).is_some_and(|used| used.contains(&binding.vlan));
            if self.bindings.contains_key(&address) || vlan_is_used || self.macs.contains(&binding.mac) {
                return Err(address);
            }
            self.insert(binding);
        }
        Ok(())
    }

    fn carried(&self, node: &str) -> usize {
        self.vlans.iter().filter(|(nic, _)| nic.node == node).map(|(_, used)| used.len()).sum()
    }

    /// The first free id from a chosen one on.
    fn free_vlan(&self, node: &str, parent: Mac, chance: u64) -> Option<u16> {
        let used = self.vlans.get(&Nic { node: node.to_owned(), parent });
        let start = u16::try_from(chance % u64::from(LAST_VLAN)).unwrap_or(0);
        let from = |start: u16| (start..LAST_VLAN).map(|id| id + 1);
        from(start).chain(from(0)).find(|id| used.is_none_or(|used| !used.contains(id)))
    }

    fn free_mac(&self, chance: &mut impl FnMut() -> u64) -> Mac {
        let mut drawn = Mac::local(chance());
        for _ in 0..DRAWS {
            if !self.macs.contains(&drawn) {
                break;
            }
            drawn = Mac::local(chance());
        }
        drawn
    }

    fn insert(&mut self, binding: Binding) {
        self.vlans.entry(binding.nic()).or_default().insert(binding.vlan);
        self.macs.insert(binding.mac);
        self.bindings.insert(binding.address, binding);
    }

    fn remove(&mut self, address: Address) -> Option<Binding> {
        let held = self.bindings.remove(&address)?;
        self.macs.remove(&held.mac);
        let nic = held.nic();
        if let Some(used) = self.vlans.get_mut(&nic) {
            used.remove(&held.vlan);
            if used.is_empty() {
                self.vlans.remove(&nic);
            }
        }
        Some(held)
    }
}

#[cfg(test)]
mod tests;
