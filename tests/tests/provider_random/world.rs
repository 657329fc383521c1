//! What is true: an API server and the machines as plain values. Everybody sees them as they are, some milliseconds late.

use ipam_core::{Address, Allocation, Endpoint, Interface, Owner, PodFacts, Stored, Version};
use provider_sim::Handle;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Address, and name of the pod.
pub type Held = BTreeMap<String, String>;

#[derive(Default)]
pub struct World {
    pub allocations: BTreeMap<Address, Stored<Allocation>>,
    pub endpoints: BTreeMap<String, Stored<Endpoint>>,
    /// By name.
    pub pods: BTreeMap<String, PodFacts>,
    /// Of the StatefulSet.
    pub replicas: usize,
    /// Results on the disks of the nodes.
    pub kept: BTreeMap<String, Interface>,
    /// Containers whose sandbox is gone.
    pub gone: BTreeSet<String>,
    /// Addresses of pods that are there and have a sandbox: UID and name.
    pub used: BTreeMap<Address, (String, String)>,
    /// Rules that were broken.
    pub broken: Vec<String>,
    versions: u64,
}

#[derive(Clone)]
pub struct Shared {
    world: Arc<Mutex<World>>,
    pub cloud: Handle,
}

impl Shared {
    pub fn new(cloud: Handle, replicas: usize) -> Self {
        Self { world: Arc::new(Mutex::new(World { replicas, ..World::default() })), cloud }
    }

    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An address is about to become free or unbound. Nobody may do that while the cloud has it.
    pub fn unbinding(&self, world: &mut World, address: Address) {
        let text = address.to_string();
        if let Some(bound) = self.cloud.bindings().into_iter().find(|one| one.ip_address == text) {
            world.broken.push(format!("{text} is given up while it is bound for {}", bound.pod_name));
        }
    }

    /// A pod was given this. It has it alone, it is shown, and it is bound as it is shown.
    pub fn given(&self, name: &str, uid: &str, node: &str, given: &Interface) {
        let mut world = self.world();
        let Some(address) = given.addresses.first().map(|one| one.address) else {
            world.broken.push(format!("{name} was given nothing"));
            return;
        };
        let text = address.to_string();
        if let Some((other, of)) = world.used.insert(address, (uid.to_owned(), name.to_owned()))
            && other != uid
        {
            world.broken.push(format!("{text} is given to {name} {uid} while {of} {other} has it"));
        }
        let bound = self.cloud.bindings().into_iter().find(|one| one.ip_address == text);
        let here = bound.as_ref().is_some_and(|one| one.pod_name == name && one.node_name == node);
        let vlan = given.vlan.is_none() || given.vlan == bound.as_ref().map(|one| one.vlan_id);
        if !here || !vlan && !self.lied(&text) {
            world.broken.push(format!("{name} {uid} on {node} was given {given:?}; bound is {bound:?}"));
        }
    }

    /// The provider said another VLAN than that of the binding. (One that the agent knows in use is refused.)
    fn lied(&self, address: &str) -> bool {
        let calls = self.cloud.records(0);
        let last = calls.iter().rfind(|one| one.body["iaasIPsAllocationRequest"][0]["ipAddress"] == address);
        last.is_some_and(|one| one.fault.as_deref() == Some("same-vlan"))
    }

    /// Kubernetes' collector by ownerReferences, and ours of endpoints that nobody keeps.
    pub fn collect_endpoints(&self) {
        let mut world = self.world();
        let World { endpoints, pods, allocations, .. } = &mut *world;
        let named: BTreeSet<&str> = allocations.values().map(|one| one.value.pod.name.as_str()).collect();
        endpoints.retain(|name, endpoint| match &endpoint.value.goes_with {
            Some(uid) => pods.values().any(|pod| pod.uid == *uid),
            None => {
                pods.get(name).is_some_and(|pod| pod.uid == endpoint.value.pod.uid) || named.contains(name.as_str())
            }
        });
    }

    /// By allocations, endpoints, the cloud, and the pods that were given something.
    pub fn sets(&self) -> [Held; 4] {
        let bound = self.cloud.bindings().into_iter().map(|one| (one.ip_address, one.pod_name)).collect();
        let world = self.world();
        let held = world.allocations.values().filter(|one| one.value.held());
        let held = held.map(|one| (one.value.address.to_string(), one.value.pod.name.clone())).collect();
        let mut shown = Held::new();
        for (name, endpoint) in &world.endpoints {
            let all = endpoint.value.interfaces.iter().flat_map(|interface| &interface.addresses);
            shown.extend(all.map(|assigned| (assigned.address.to_string(), name.clone())));
        }
        let used = world.used.iter().map(|(address, (_, name))| (address.to_string(), name.clone())).collect();
        [held, shown, bound, used]
    }
}

impl World {
    pub fn store<T>(&mut self, value: T, uid: Option<String>, seen: std::time::Duration) -> Stored<T> {
        self.versions += 1;
        let uid = uid.unwrap_or_else(|| format!("object-{}", self.versions));
        Stored { value, version: Version { uid, resource: self.versions.to_string() }, seen }
    }

    /// The pod, or its sandbox, is no more.
    pub fn unused(&mut self, uid: &str) {
        self.used.retain(|_, (of, _)| of != uid);
    }
}

pub fn stateful_set() -> Owner {
    let text = str::to_owned;
    Owner { api_version: text("apps/v1"), kind: text("StatefulSet"), name: text("db"), uid: text("set") }
}
