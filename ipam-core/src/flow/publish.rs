//! Showing addresses on the endpoint, and taking them off.

use super::add::Pod;
use super::{Candidate, Chosen, Flows, Stopped, at};
use crate::{
    Address, Allocation, Assigned, Endpoint, Host, Interface, Owner, Provider, Step, Store, StoreError, Stored,
};

impl<S: Store, P: Provider, H: Host> Flows<S, P, H> {
    /// Writes the entry of an interface into the endpoint that was read at the beginning.
    pub(super) async fn publish(&self, pod: &Pod<'_>, entry: &Interface) -> Result<(), Stopped> {
        let before = pod.endpoint.as_ref();
        // Entries of a predecessor are its own, unless they will be inherited one by one.
        let kept = before.filter(|before| pod.retained || before.value.pod.uid == pod.add.pod.uid);
        let others = kept.into_iter().flat_map(|before| &before.value.interfaces);
        let mut interfaces: Vec<_> = others.filter(|other| other.name != entry.name).cloned().collect();
        interfaces.push(entry.clone());
        let machine = pod.facts.owner.as_ref().is_some_and(Owner::is_machine);
        let endpoint = Endpoint {
            pod: pod.add.pod.clone(),
            node: self.me.node.name.clone(),
            owner: pod.facts.owner.clone(),
            // No later pod of a machine has the name.
            goes_with: (!pod.retained || machine).then(|| pod.facts.uid.clone()),
            interfaces,
        };
        self.host.at(Step::Publish).await;
        let version = before.map(|before| &before.version);
        self.store.publish(version, endpoint).await.map_err(at(Step::Publish))?;
        Ok(())
    }

    /// Takes the entry of an allocation off the endpoint. Always a write, so that a publish in flight is a conflict: without
    /// an entry, and without an endpoint, too. Whether there was one, which says that the cloud had answered.
    pub(super) async fn withdraw(&self, stored: &Stored<Allocation>) -> Result<bool, Stopped> {
        let allocation = &stored.value;
        let pod = &allocation.pod;
        self.host.at(Step::ReadEndpoint).await;
        let found = self.store.endpoint(&pod.namespace, &pod.name).await.map_err(at(Step::ReadEndpoint))?;
        self.host.at(Step::Withdraw).await;
        if let Some(found) = found {
            let mut endpoint = found.value;
            let shown = endpoint.entry(allocation).map(|entry| entry.name.clone());
            endpoint.interfaces.retain(|entry| Some(&entry.name) != shown.as_ref());
            self.store.publish(Some(&found.version), endpoint).await.map_err(at(Step::Withdraw))?;
            return Ok(shown.is_some());
        }
        let goes_with = Some(pod.uid.clone());
        let (pod, node) = (pod.clone(), allocation.node.name.clone());
        let empty = Endpoint { pod, node, owner: None, goes_with, interfaces: Vec::new() };
        match self.store.publish(None, empty).await {
            // A namespace that is going, or gone, takes no publish either.
            Ok(_) | Err(StoreError::Gone) => Ok(false),
            Err(source) => Err(Stopped::Store { step: Step::Withdraw, source }),
        }
    }
}

impl Pod<'_> {
    /// An entry of the interface that shows nothing yet.
    pub(super) fn blank(&self, chosen: &Chosen) -> Interface {
        Interface {
            name: self.add.interface.clone(),
            addresses: Vec::new(),
            vlan: None,
            mac: None,
            clean_gateway: chosen.clean_gateway.unwrap_or(self.add.clean_gateway),
            routes: chosen.routes.clone(),
            bind_id: None,
        }
    }
}

impl Interface {
    /// One more address, with what its pool says.
    pub(super) fn assign(&mut self, address: Address, pool: Candidate) {
        let (prefix, gateway) = (pool.subnet.prefix(), pool.gateway);
        self.addresses.push(Assigned { address, prefix, pool: pool.pool, gateway });
        self.routes.extend(pool.routes);
    }
}
