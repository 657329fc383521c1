//! A retained pod that came back on another node.

use super::{Flows, Stopped, at};
use crate::{Address, Allocation, Endpoint, Host, Node, Owner, Pod, PodFacts, Provider, Step, Store, Stored, Then};
use std::time::Duration;

/// The pod that has the name now, or the machine, and its node.
#[derive(Clone, Debug)]
pub struct Successor {
    /// The pod.
    pub pod: Pod,
    /// Where it runs.
    pub node: Node,
}

impl<S: Store, P: Provider, H: Host> Flows<S, P, H> {
    /// Hands a retained address to the pod's new node. `node_gone` as for [`Flows::collect`].
    pub async fn move_to(&self, address: Address, to: &Successor, node_gone: bool) -> Result<(), Stopped> {
        let Some(seen) = self.store.of_address(address) else { return Ok(()) };
        let key = (seen.value.pod.uid.clone(), seen.value.interface.clone());
        let Some(_lock) = self.locks.try_take(key) else { return Ok(()) };
        let Some(stored) = self.store.of_address(address).filter(|now| now.value.pod == seen.value.pod) else {
            return Ok(());
        };
        let old = &stored.value;
        let machine = old.owner.as_ref().is_some_and(Owner::is_machine);
        let same = old.pod.namespace == to.pod.namespace && (machine || old.pod.name == to.pod.name);
        if !same || old.pod.uid == to.pod.uid || old.node.name == to.node.name {
            return Ok(());
        }
        if !self.lives(to).await? || !self.retained(&old.pod.namespace, &old.pod.name, old.owner.as_ref()).await? {
            return Ok(());
        }
        let unbound = if old.provider.is_some() {
            if !self.is_settled(&stored).await? {
                return Ok(());
            }
            self.served(old)?;
            let releasing = !old.held();
            let shown = if releasing { false } else { self.withdraw(&stored).await? };
            let quiet = if shown || releasing { Duration::ZERO } else { super::settled::settled_at(&stored, None) };
            self.unbind(stored, Then::Keep, quiet).await?
        } else if old.detached || node_gone || old.container_id.is_empty() {
            stored
        } else {
            return Ok(());
        };
        if !self.lives(to).await? {
            // Unbound, it waits for the next one.
            return if unbound.value.held() { Ok(()) } else { self.give_back(unbound, None).await };
        }
        let moved = Allocation {
            node: to.node.clone(),
            pod: to.pod.clone(),
            container_id: String::new(),
            netns: None,
            boot_id: String::new(),
            flow_id: self.fresh(),
            detached: false,
            release_request: None,
            ..unbound.value.clone()
        };
        self.give_back(unbound, Some(moved.clone())).await?;
        self.follow(&moved).await
    }

    /// Makes an endpoint that still names an earlier pod, elsewhere, name the pod and node of an allocation that is held, with
    /// nothing shown. A move ends with it; and whoever finds it undone does it, since the one who moved may have died then.
    pub async fn follow(&self, held: &Allocation) -> Result<(), Stopped> {
        let pod = &held.pod;
        self.host.at(Step::ReadEndpoint).await;
        let found = self.store.endpoint(&pod.namespace, &pod.name).await.map_err(at(Step::ReadEndpoint))?;
        let earlier = |found: &Stored<Endpoint>| found.value.pod.uid != pod.uid && found.value.node != held.node.name;
        let Some(found) = found.filter(earlier) else { return Ok(()) };
        // Read after the endpoint: one of a later pod names the pod that is there.
        self.host.at(Step::ReadPod).await;
        let facts = self.store.pod(&pod.namespace, &pod.name).await.map_err(at(Step::ReadPod))?;
        if facts.is_some_and(|facts| facts.is(&found.value.pod.uid)) {
            return Ok(());
        }
        let endpoint =
            Endpoint { pod: pod.clone(), node: held.node.name.clone(), interfaces: Vec::new(), ..found.value };
        self.host.at(Step::Follow).await;
        self.store.publish(Some(&found.version), endpoint).await.map_err(at(Step::Follow))?;
        Ok(())
    }

    async fn lives(&self, to: &Successor) -> Result<bool, Stopped> {
        self.host.at(Step::ReadPod).await;
        let facts: Option<PodFacts> =
            self.store.pod(&to.pod.namespace, &to.pod.name).await.map_err(at(Step::ReadPod))?;
        Ok(facts.is_some_and(|facts| facts.lives_as(&to.pod.uid) && facts.node == to.node.name))
    }
}
