//! The flows, as the CNI edge asks for them.

use super::attachment::attachment;
use super::{Addresses, Flows};
use crate::agent::{Asked, Ipam};
use crate::pools;
use ipam_core::{
    Add, AddError, Answer, Candidate, Chosen, Del, Interface, NoPool, NotYet, Pod, PodFacts, Pools, Store,
};
use k8s_api::conf::Detection;
use k8s_api::ipam::{Names, PoolName};
use runtime::Chain;
use std::time::Duration;
use tokio::time::timeout;

/// Of a GC at one address.
const LOOK: Duration = Duration::from_secs(5);

/// Pools, for one request.
struct ForPod<'a> {
    addresses: &'a Addresses,
    add: &'a Add,
    configured: Names,
}

impl Pools for ForPod<'_> {
    fn wanted(&self, pod: &PodFacts) -> Result<Chosen, NoPool> {
        let Addresses { conf, pools, node, .. } = self.addresses;
        let conf = conf.borrow();
        let found = attachment(pod, &self.add.pod.namespace, &self.add.interface, &conf.multus);
        let node = node.borrow();
        pools.borrow().candidates(&pools::Asked {
            namespace: &self.add.pod.namespace,
            pod,
            node_labels: node.as_ref().map(|node| &node.labels),
            interface: &self.add.interface,
            index: found.index,
            network: &found.network,
            configured: &self.configured,
            ipv4: conf.ipv4,
            ipv6: conf.ipv6,
        })
    }

    fn of(&self, pool: &str) -> Option<Candidate> {
        self.addresses.pools.borrow().pool(pool)
    }
}

/// The lists of a network's configuration.
fn configured(asked: &Asked) -> Result<Names, NoPool> {
    let read = |texts: &[String]| {
        let name = |text: &String| {
            PoolName::read(text).map_err(|why| NoPool::new(format!("the network's configuration: {text:?} {why}")))
        };
        texts.iter().map(name).collect::<Result<Vec<_>, _>>()
    };
    Ok(Names { ipv4: read(&asked.ipv4_pools)?, ipv6: read(&asked.ipv6_pools)? })
}

impl Addresses {
    fn flows(&self) -> Result<&Flows, NotYet> {
        if self.ready().is_ok() { Ok(&self.flows) } else { Err(NotYet::NotSynced) }
    }
}

impl Ipam for Addresses {
    async fn add(&self, mut asked: Asked) -> Result<Answer, ipam_core::Failed> {
        let failed = |error: AddError| ipam_core::Failed { error, undo: None };
        let flows = self.flows().map_err(|why| failed(why.into()))?;
        if asked.match_master_subnet {
            let why = "match_master_subnet is not supported: name the pools of the master's subnet".to_owned();
            return Err(failed(AddError::NoPool(NoPool::new(why))));
        }
        asked.add.parent = self.parent(&asked).map_err(failed)?;
        let configured = configured(&asked).map_err(|why| failed(AddError::NoPool(why)))?;
        flows.add(&asked.add, &ForPod { addresses: self, add: &asked.add, configured }).await
    }

    async fn undo(&self, undo: ipam_core::Undo) {
        let address = undo.address();
        if let Err(stopped) = self.flows.undo(undo).await {
            tracing::info!(%address, error = %Chain(&stopped), "a failed ADD is taken back later");
            let _ = self.unended.try_send(address);
        }
    }

    async fn del(&self, del: Del) {
        if let Err(stopped) = self.flows.del(&del).await {
            let (container, interface) = (&del.container_id, &del.interface);
            tracing::info!(container, interface, error = %Chain(&stopped), "a DEL is done later");
            for one in self.store.of_container(container) {
                let _ = self.unended.try_send(one.value.address);
            }
        }
    }

    async fn check(&self, add: Add, cidrs: Vec<String>) -> Result<(), String> {
        let Pod { namespace, name, uid } = &add.pod;
        let found = self.store.endpoint(namespace, name).await.map_err(|error| error.to_string())?;
        let endpoint = found.map(|found| found.value).filter(|endpoint| endpoint.pod.uid == *uid);
        let entry = endpoint.into_iter().flat_map(|endpoint| endpoint.interfaces).find(|one| one.name == add.interface);
        let entry =
            entry.ok_or_else(|| format!("the SpiderEndpoint of the pod shows no interface {}", add.interface))?;
        let shown: Vec<_> = entry.addresses.iter().map(|one| format!("{}/{}", one.address, one.prefix)).collect();
        match cidrs.iter().find(|cidr| !shown.contains(cidr)) {
            None => Ok(()),
            Some(cidr) => Err(format!("{cidr} is not the pod's: it has {}", shown.join(", "))),
        }
    }

    async fn gc(&self, network: String, in_use: Vec<Del>) -> Result<(), String> {
        let flows = self.flows().map_err(|why| why.to_string())?;
        for one in self.store.all() {
            let value = &one.value;
            let used =
                in_use.iter().any(|del| del.container_id == value.container_id && del.interface == value.interface);
            if value.network == network && !used {
                if let Ok(looked) = timeout(LOOK, flows.reconcile(value.address)).await {
                    looked.map_err(|stopped| Chain(&stopped).to_string())?;
                } else {
                    // A provider that does not answer; the address is gone on with as any that was left behind.
                    tracing::info!(address = %value.address, "a GC leaves an address to a later look");
                }
            }
        }
        Ok(())
    }

    async fn get(&self, pod: Pod) -> Result<Vec<Interface>, String> {
        let found = self.store.endpoint(&pod.namespace, &pod.name).await.map_err(|error| error.to_string())?;
        let endpoint = found.map(|found| found.value);
        let same = endpoint.filter(|endpoint| pod.uid.is_empty() || endpoint.pod.uid == pod.uid);
        let named = || format!("SpiderEndpoint not found for pod {}/{}", pod.namespace, pod.name);
        Ok(same.ok_or_else(named)?.interfaces)
    }

    fn detection(&self) -> Detection {
        self.conf.borrow().detection
    }

    fn ready(&self) -> Result<(), String> {
        if !self.store.is_synced() {
            return Err("the node's allocations have not been read".to_owned());
        }
        if !self.pools.borrow().is_whole() {
            return Err("the pools have not been read".to_owned());
        }
        Ok(())
    }
}
