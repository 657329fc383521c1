//! What is to be done for each pool: a function of what was read.

use super::gather::{Existing, Gathered, OldEndpoint, OldPool};
use super::record::{Record, Unreadable, records};
use ipam_core::{Address, Allocation, Binding, Family, Node, Owner, Pod, State, Subnet, UNKNOWN_SANDBOX};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A plugin of the earlier system waits for 100 s, and its agent no longer for the provider.
const LAST_CALL: Duration = Duration::from_secs(102);

/// What is to be done for one pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Its name.
    pub pool: String,
    /// How many records it has.
    pub records: usize,
    /// How many of them are allocations already.
    pub there: usize,
    /// Allocations to make: without ids of flow and binding, which their writer chooses.
    pub imports: Vec<Allocation>,
    /// Records that no allocation can be made of. While there is one, the pool gives nothing.
    pub faults: Vec<Fault>,
}

/// Why no allocation can be made of a record. Each text says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It cannot be read.
    #[error("{0}: correct it in the pool's status")]
    Unreadable(Unreadable),
    /// Of which the pool's addresses cannot be.
    #[error("{address} of {} is not in the pool's subnet {subnet}: delete the pod, then remove the record from the pool's status", Of(.pod))]
    Outside {
        /// Of the record.
        address: Address,
        /// Of the record.
        pod: Pod,
        /// Of the pool.
        subnet: String,
    },
    /// Several pools have a record of the address.
    #[error("{address} of {} is recorded in pool {other} too: remove the record of the pod that has not the address, or delete one of the pods and then its record", Of(.pod))]
    Twice {
        /// Of the record.
        address: Address,
        /// Of the record.
        pod: Pod,
        /// Another pool.
        other: String,
    },
    /// Another pod has it.
    #[error("{address} of {} is held by {holder}: delete one of the two pods, and if that is the former, remove its record from the pool's status", Of(.pod))]
    Held {
        /// Of the record.
        address: Address,
        /// Of the record.
        pod: Pod,
        /// Whom the allocation names.
        holder: String,
    },
}

struct Of<'a>(&'a Pod);

impl std::fmt::Display for Of<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.0.namespace, self.0.name)
    }
}

/// The plan of each pool that has records, in the order of their names.
#[must_use]
pub fn plans(gathered: &Gathered) -> Vec<Plan> {
    let read: Vec<_> = gathered.pools.iter().map(|pool| (pool, records(&pool.text))).collect();
    let mut of_address: BTreeMap<Address, BTreeSet<&str>> = BTreeMap::new();
    for (pool, (records, _)) in &read {
        for record in records {
            of_address.entry(record.address).or_default().insert(&pool.name);
        }
    }
    read.iter()
        .map(|(pool, (records, odd))| {
            let faults = odd.iter().cloned().map(Fault::Unreadable).collect();
            let total = records.len() + odd.len();
            let mut plan = Plan { pool: pool.name.clone(), records: total, faults, ..Plan::default() };
            for record in records {
                let pools = of_address.get(&record.address);
                let other = pools.into_iter().flatten().find(|other| **other != pool.name);
                match judge(gathered, pool, record, other.copied()) {
                    Ok(None) => plan.there += 1,
                    Ok(Some(import)) => plan.imports.push(import),
                    Err(fault) => plan.faults.push(*fault),
                }
            }
            plan
        })
        .collect()
}

/// The allocation that is missing, if one is.
fn judge(
    gathered: &Gathered,
    pool: &OldPool,
    record: &Record,
    other: Option<&str>,
) -> Result<Option<Allocation>, Box<Fault>> {
    let Record { address, pod } = record.clone();
    if let Some(other) = other {
        return Err(Fault::Twice { address, pod, other: other.to_owned() }.into());
    }
    if !pool.subnet.is_some_and(|subnet| subnet.contains(address)) {
        let subnet = pool.subnet.as_ref().map_or_else(|| "(which cannot be read)".to_owned(), Subnet::to_string);
        return Err(Fault::Outside { address, pod, subnet }.into());
    }
    match gathered.existing.get(&address) {
        None => Ok(Some(allocation(gathered, pool, record))),
        Some(Existing::Unreadable) => {
            Err(Fault::Held { address, pod, holder: "a SpiderIPAllocation that cannot be read".to_owned() }.into())
        }
        Some(Existing::Held { pool: from, pod: by, .. }) => {
            // A name that is kept may be its next pod's by now.
            let same = by.uid == pod.uid || (&by.namespace, &by.name) == (&pod.namespace, &pod.name);
            if *from == pool.name && (same || gathered.name_of(&pod) == by.name && by.namespace == pod.namespace) {
                return Ok(None);
            }
            Err(Fault::Held { address, pod, holder: format!("{} of pool {from}", Of(by)) }.into())
        }
    }
}

fn allocation(gathered: &Gathered, pool: &OldPool, Record { address, pod }: &Record) -> Allocation {
    let named = gathered.endpoint(&pod.namespace, &pod.name);
    let endpoint = named.filter(|endpoint| endpoint.pod_uid == pod.uid);
    let live = gathered.pods.get(&pod.uid);
    let on = endpoint.map(|endpoint| endpoint.node.as_str()).filter(|node| !node.is_empty());
    let on = on.or_else(|| live.map(|live| live.node.as_str())).unwrap_or_default();
    let node = gathered.nodes.get(on).cloned().unwrap_or_else(|| Node { name: on.to_owned(), ..Node::default() });
    let owner = match live {
        Some(live) => live.owner.clone(),
        None => named.and_then(|endpoint| owner(gathered, &pod.namespace, endpoint)),
    };
    Allocation {
        pool: pool.name.clone(),
        address: *address,
        node,
        pod: live.map_or_else(|| pod.clone(), |live| live.pod.clone()),
        owner,
        container_id: UNKNOWN_SANDBOX.to_owned(),
        interface: endpoint.and_then(|endpoint| endpoint.interface(*address)).unwrap_or_default(),
        network: String::new(),
        netns: None,
        boot_id: String::new(),
        flow_id: String::new(),
        state: State::Held,
        provider: binding(gathered, pool, *address, named),
        detached: false,
        release_request: None,
    }
}

fn owner(gathered: &Gathered, namespace: &str, endpoint: &OldEndpoint) -> Option<Owner> {
    let (kind, name) = endpoint.owner.clone()?;
    gathered.owners.get(&(namespace.to_owned(), kind, name)).cloned()
}

/// What the cloud has, or may have, bound: what an endpoint shows with a VLAN, whoever's it is; and of a pool that a network of
/// the provider's names, what no endpoint shows. An earlier system had it bound before it wrote an endpoint, and asked for no
/// release of IPv6. It did not record the NIC, which a release does without.
fn binding(gathered: &Gathered, pool: &OldPool, address: Address, named: Option<&OldEndpoint>) -> Option<Binding> {
    let server = gathered.provider.clone()?;
    let shown = named.and_then(|endpoint| endpoint.has_vlan(address));
    let bound = address.family() == Family::V4 && shown.unwrap_or_else(|| gathered.provided.contains(&pool.name));
    bound.then(|| Binding {
        server,
        subnet: pool.subnet.as_ref().map(Subnet::to_string).unwrap_or_default(),
        parent_nic_mac: String::new(),
        bind_id: String::new(),
        // What is shown was answered. Of all else the last call may have left just before the earlier system was stopped.
        settle: if shown.is_some() { Duration::ZERO } else { LAST_CALL },
    })
}

#[cfg(test)]
mod tests;
