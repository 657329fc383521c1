//! What is there, by live reads.

use super::Adopter;
use super::pods::{LivePod, Pods};
use super::record::records;
use crate::call::Caller;
use crate::path;
use crate::pod::Metadata;
use futures::{StreamExt, TryStreamExt, stream};
use ipam_core::{Address, Node, Owner, Pod, StoreError, Subnet};
use k8s_api::attachment::Needs;
use k8s_api::crd::endpoint::SpiderEndpoint;
use k8s_api::crd::ip_allocation::SpiderIPAllocation;
use k8s_api::crd::ip_pool::{SpiderIPPool, has_records};
use k8s_api::crd::multus_config::{MultusConfigSpec, SpiderMultusConfig};
use k8s_api::ipam::PoolName;
use k8s_api::names::POOL_FINALIZER;
use kube::api::{DynamicObject, GetParams, ListParams, ObjectList};
use kube::core::Request;
use kube::{Resource, ResourceExt};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The status of a pool may have 1 MB: this many are in memory at a time.
const POOLS: u32 = 20;
const PAGE: u32 = 500;
/// Nodes are large.
const NODES: u32 = 50;
/// Reads at a time.
const AT_ONCE: usize = 16;
/// Without a VLAN 0 is written.
const NO_VLAN: i64 = 0;

/// Everything that a plan needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gathered {
    /// Pools that have records.
    pub pools: Vec<OldPool>,
    /// Endpoints, by namespace and name.
    pub endpoints: BTreeMap<(String, String), OldEndpoint>,
    /// Pods that are there, by the UID in the records.
    pub(super) pods: BTreeMap<String, LivePod>,
    pub(super) nodes: BTreeMap<String, Node>,
    pub(super) existing: BTreeMap<Address, Existing>,
    /// By namespace, kind and name.
    pub(super) owners: BTreeMap<(String, String, String), Owner>,
    /// Identity of the provider that binds addresses here, if one does, and pools that its networks name.
    pub(super) provider: Option<String>,
    pub(super) provided: BTreeSet<String>,
}

/// A pool of an earlier system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OldPool {
    /// Its name.
    pub name: String,
    /// UID of the object.
    pub uid: String,
    /// Its subnet, if that can be read.
    pub subnet: Option<Subnet>,
    /// `status.allocatedIPs`.
    pub text: String,
}

/// An endpoint, as an earlier system wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OldEndpoint {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    pub(super) version: String,
    pub(super) pod_uid: String,
    pub(super) node: String,
    /// Kind and name.
    pub(super) owner: Option<(String, String)>,
    pub(super) entries: Vec<Entry>,
    /// The same with all of their fields, where there is a provider.
    pub(super) ips: Vec<Value>,
    pub(super) finalizers: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) interface: String,
    pub(super) addresses: Vec<Address>,
    pub(super) pools: Vec<String>,
    pub(super) vlan: bool,
    pub(super) bind_id: String,
}

/// Who has an address already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Existing {
    /// With the binding, as long as it is not being released.
    Held {
        pool: String,
        pod: Pod,
        bind_id: Option<String>,
    },
    Unreadable,
}

impl Gathered {
    pub(super) fn endpoint(&self, namespace: &str, name: &str) -> Option<&OldEndpoint> {
        self.endpoints.get(&(namespace.to_owned(), name.to_owned()))
    }

    /// The name of a pod that is recorded by that of its virtual machine.
    pub(super) fn name_of<'a>(&'a self, pod: &'a Pod) -> &'a str {
        self.pods.get(&pod.uid).map_or(&pod.name, |live| &live.pod.name)
    }
}

impl OldEndpoint {
    /// Whether an earlier system holds it.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.finalizers.iter().any(|one| one == POOL_FINALIZER)
    }

    /// Whether it shows an address of one of these pools.
    #[must_use]
    pub fn is_of(&self, pools: &BTreeSet<&str>) -> bool {
        self.entries.iter().flat_map(|entry| &entry.pools).any(|pool| pools.contains(pool.as_str()))
    }

    pub(super) fn interface(&self, address: Address) -> Option<String> {
        self.entry(address).map(|entry| entry.interface.clone())
    }

    /// Whether it shows an address with a VLAN; nothing if it does not show it.
    pub(super) fn has_vlan(&self, address: Address) -> Option<bool> {
        self.entry(address).map(|entry| entry.vlan)
    }

    fn entry(&self, address: Address) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.addresses.contains(&address))
    }
}

impl Adopter {
    /// Reads all that the plans need. `provider`: identity of the provider that binds addresses here, if one does.
    pub async fn gather(&self, provider: Option<String>) -> Result<Gathered, StoreError> {
        let caller = &self.caller;
        let bound = provider.is_some();
        let mut found = Gathered { provider, ..Gathered::default() };
        pages(caller, &all::<SpiderIPPool>(), POOLS, |object| found.pools.extend(pool(&object))).await?;
        if found.pools.is_empty() {
            return Ok(found);
        }
        pages(caller, &all::<SpiderEndpoint>(), PAGE, |object| {
            let endpoint = endpoint(&object, bound);
            found.endpoints.insert((endpoint.namespace.clone(), endpoint.name.clone()), endpoint);
        })
        .await?;
        pages(caller, &Request::new("/api/v1/nodes"), NODES, |object| {
            found.nodes.insert(object.name_any(), node(&object));
        })
        .await?;
        if bound {
            pages(caller, &all::<SpiderMultusConfig>(), PAGE, |object| {
                found.provided.extend(provided(&object, &found.pools));
            })
            .await?;
        }
        let pods: Vec<Pod> =
            found.pools.iter().flat_map(|pool| records(&pool.text).0).map(|record| record.pod).collect();
        found.pods = Pods::of(self).find(&pods).await?;
        found.owners = self.owners_of(&found, &pods).await?;
        // Last: who is missed here is missed.
        pages(caller, &all::<SpiderIPAllocation>(), PAGE, |object| found.existing.extend(existing(&object))).await?;
        Ok(found)
    }

    /// Controllers of pods that are gone: they may keep addresses for the next ones.
    async fn owners_of(
        &self,
        found: &Gathered,
        pods: &[Pod],
    ) -> Result<BTreeMap<(String, String, String), Owner>, StoreError> {
        let gone = pods.iter().filter(|pod| !found.pods.contains_key(&pod.uid));
        let wanted: BTreeSet<_> = gone
            .filter_map(|pod| {
                let (kind, name) = found.endpoint(&pod.namespace, &pod.name)?.owner.clone()?;
                Some((pod.namespace.clone(), kind, name))
            })
            .collect();
        let reads = wanted.into_iter().map(|key| async move {
            let owner = self.owner(&key.0, &key.1, &key.2).await?;
            Ok::<_, StoreError>(owner.map(|owner| (key, owner)))
        });
        let read: Vec<_> = stream::iter(reads).buffer_unordered(AT_ONCE).try_collect().await?;
        Ok(read.into_iter().flatten().collect())
    }

    async fn owner(&self, namespace: &str, kind: &str, name: &str) -> Result<Option<Owner>, StoreError> {
        let (api_version, plural) = match kind {
            "StatefulSet" => ("apps/v1", "statefulsets"),
            "VirtualMachine" => ("kubevirt.io/v1", "virtualmachines"),
            "VirtualMachineInstance" => ("kubevirt.io/v1", "virtualmachineinstances"),
            _ => return Ok(None),
        };
        let Ok(name) = path::name(name) else { return Ok(None) };
        let asked = path::within(api_version, namespace, plural)?.get_metadata(name, &GetParams::default());
        let found = self.caller.find::<Metadata>(asked).await?;
        let uid = found.and_then(|found| found.metadata.uid);
        Ok(uid.map(|uid| Owner {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
            uid,
        }))
    }
}

fn all<K: Resource<DynamicType = ()>>() -> Request {
    Request::new(K::url_path(&(), None))
}

/// All pages of a list are of one version.
pub(super) async fn pages(
    caller: &Caller,
    collection: &Request,
    size: u32,
    mut each: impl FnMut(DynamicObject),
) -> Result<(), StoreError> {
    let mut wanted = ListParams::default().limit(size);
    loop {
        let page: ObjectList<DynamicObject> = match caller.json(collection.list(&wanted)).await {
            Err(StoreError::Gone) => {
                return Err(StoreError::Unknown("a list could not be read to its end".to_owned()));
            }
            page => page?,
        };
        page.items.into_iter().for_each(&mut each);
        match page.metadata.continue_.filter(|next| !next.is_empty()) {
            Some(next) => wanted = wanted.continue_token(&next),
            None => return Ok(()),
        }
    }
}

fn pool(object: &DynamicObject) -> Option<OldPool> {
    let text = object.data.pointer("/status/allocatedIPs").and_then(Value::as_str).filter(|text| has_records(text))?;
    let subnet = object.data.pointer("/spec/subnet").and_then(Value::as_str).and_then(|text| text.parse().ok());
    Some(OldPool { name: object.name_any(), uid: object.uid().unwrap_or_default(), subnet, text: text.to_owned() })
}

fn endpoint(object: &DynamicObject, bound: bool) -> OldEndpoint {
    let text = |at: &str| text(&object.data, at);
    let entries = object.data.pointer("/status/current/ips").and_then(Value::as_array);
    let owner = (text("/status/ownerControllerType"), text("/status/ownerControllerName"));
    OldEndpoint {
        namespace: object.namespace().unwrap_or_default(),
        name: object.name_any(),
        version: object.resource_version().unwrap_or_default(),
        pod_uid: text("/status/current/uid"),
        node: text("/status/current/node"),
        owner: Some(owner).filter(|(kind, name)| !kind.is_empty() && !name.is_empty()),
        entries: entries.into_iter().flatten().map(entry).collect(),
        ips: entries.filter(|_| bound).cloned().unwrap_or_default(),
        finalizers: object.finalizers().to_vec(),
    }
}

fn entry(value: &Value) -> Entry {
    let bare = |at: &str| text(value, at).split('/').next().and_then(|text| text.parse().ok());
    Entry {
        interface: text(value, "/interface"),
        addresses: ["/ipv4", "/ipv6"].into_iter().filter_map(bare).collect(),
        pools: ["/ipv4Pool", "/ipv6Pool"].map(|at| text(value, at)).into_iter().filter(|one| !one.is_empty()).collect(),
        vlan: value.get("vlan").and_then(Value::as_i64).is_some_and(|vlan| vlan != NO_VLAN),
        bind_id: text(value, "/bindId"),
    }
}

fn node(object: &DynamicObject) -> Node {
    let machine_id = text(&object.data, "/status/nodeInfo/machineID");
    Node { name: object.name_any(), uid: object.uid().unwrap_or_default(), machine_id }
}

/// Of these pools those that a network of the provider's names.
fn provided(object: &DynamicObject, pools: &[OldPool]) -> Vec<String> {
    let spec = object.data.get("spec").cloned().unwrap_or_default();
    let Ok(spec) = serde_json::from_value::<MultusConfigSpec>(spec) else { return Vec::new() };
    if !Needs::of(&spec).sub_eni {
        return Vec::new();
    }
    let named = spec.vlan.and_then(|vlan| vlan.ippools).map(|named| [named.ipv4, named.ipv6].concat());
    let named: Vec<_> = named.into_iter().flatten().filter_map(|text| PoolName::read(&text).ok()).collect();
    let covers = |pool: &&OldPool| {
        named.iter().any(|named| match named {
            PoolName::Exact(name) => *name == pool.name,
            PoolName::Pattern(glob) => glob.matches(&pool.name),
        })
    };
    pools.iter().filter(covers).map(|pool| pool.name.clone()).collect()
}

fn existing(object: &DynamicObject) -> Option<(Address, Existing)> {
    let address = crate::name::address(&object.name_any())?;
    let held = crate::allocation::read(object).ok().and_then(|object| object.what.ok());
    let found = held.map_or(Existing::Unreadable, |held| Existing::Held {
        bind_id: held.bind_id().filter(|_| held.held()).map(str::to_owned),
        pool: held.pool,
        pod: held.pod,
    });
    Some((address, found))
}

fn text(value: &Value, at: &str) -> String {
    value.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned()
}
