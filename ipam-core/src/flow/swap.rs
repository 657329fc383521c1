//! An allocation that is there, for another sandbox, binding or pod.

use super::add::{Pod, Problem, Ready};
use super::settled::{GRACE, settled_at};
use super::{Add, Candidate, Flows, NotYet, Stopped, Wanted, at};
use crate::{Allocation, Binding, Deadline, Endpoint, Host, Owner, Provider, Step, Store, Stored};

fn is_unnamed(allocation: &Allocation, wanted: &Wanted) -> bool {
    allocation.interface.is_empty() && wanted.candidates.iter().any(|candidate| candidate.pool == allocation.pool)
}

impl<S: Store, P: Provider, H: Host> Flows<S, P, H> {
    /// Writes the sandbox and the pod of this ADD into an allocation. Done even if nothing differs: it fences every publish
    /// of before.
    pub(super) async fn swap(
        &self,
        add: &Add,
        own: &Stored<Allocation>,
        provider: Option<Binding>,
    ) -> Result<Stored<Allocation>, Stopped> {
        let next = Allocation {
            pod: add.pod.clone(),
            node: self.me.node.clone(),
            container_id: add.container_id.clone(),
            interface: add.interface.clone(),
            network: add.network.clone(),
            netns: add.netns.clone(),
            boot_id: add.boot_id.clone(),
            flow_id: self.fresh(),
            detached: false,
            provider,
            // Whoever asked meant the one before.
            release_request: None,
            ..own.value.clone()
        };
        self.host.at(Step::Swap).await;
        self.store.advance(own.value.address, &own.version, next).await.map_err(at(Step::Swap))
    }

    /// An own allocation that the cloud knows nothing of, before the cloud is asked.
    pub(super) async fn bind_again(&self, pod: &Pod<'_>, own: &Stored<Allocation>) -> Result<Ready, Problem> {
        self.budget(pod.add)?;
        let (binding, deadline) = self.binding(pod.add, &pod.pool(&own.value)?).unzip();
        let own = self.swap(pod.add, own, binding).await?;
        Ok(deadline.map_or_else(|| Ready::Known(own.clone(), None), |deadline| Ready::Unbound(own.clone(), deadline)))
    }

    /// On a provider's network: the binding that precedes a call, and until when the call may take. Others count its `settle`
    /// from when they see it, which is after this.
    pub(super) fn binding(&self, add: &Add, pool: &Candidate) -> Option<(Binding, Deadline)> {
        let parent = add.parent.as_ref()?;
        let now = self.host.now();
        let deadline = Deadline::new(now, self.provider.limit(), Some(add.deadline.saturating_sub(now)));
        let binding = Binding {
            server: parent.server.clone(),
            subnet: pool.subnet.to_string(),
            parent_nic_mac: parent.mac.clone(),
            bind_id: self.fresh(),
            settle: deadline.at.saturating_sub(now).saturating_add(GRACE),
        };
        Some((binding, deadline))
    }

    /// An address of the pod of which an earlier system did not say what interface it is for: this one's, if it may have it.
    pub(super) fn unnamed(&self, pod: &Pod<'_>, wanted: &Wanted) -> Option<Stored<Allocation>> {
        let own = self.store.of_pod(&pod.add.pod.uid);
        own.into_iter().find(|one| one.value.held() && is_unnamed(&one.value, wanted))
    }

    /// The address of the pod's predecessor, if it is retained.
    pub(super) async fn inherit(&self, pod: &Pod<'_>, wanted: &Wanted) -> Result<Option<Ready>, Problem> {
        let add = pod.add;
        self.host.at(Step::LookUp).await;
        let owner = pod.facts.owner.as_ref();
        let named = self.store.named(&add.pod.namespace, &add.pod.name, owner).await.map_err(at(Step::LookUp))?;
        let same = |one: &&Stored<Allocation>| {
            let named = one.value.interface == add.interface && one.value.address.family() == wanted.family;
            (named || is_unnamed(&one.value, wanted))
                && one.value.owner.as_ref().map(|owner| &owner.uid) == owner.map(|owner| &owner.uid)
        };
        let Some(old) = named.iter().find(same) else { return Ok(None) };
        let address = old.value.address;
        if old.value.node.name != self.me.node.name {
            return Err(NotYet::HeldElsewhere { address, node: old.value.node.name.clone() }.into());
        }
        if !old.value.held() {
            return Err(self.releasing(address).into());
        }
        if old.value.pod.uid != add.pod.uid && !self.sandbox_gone(&old.value).await {
            return Err(NotYet::OldSandbox(address).into());
        }
        if old.value.provider.is_none() && add.parent.is_some() {
            return Ok(Some(self.bind_again(pod, old).await?));
        }
        let entry = pod.endpoint.as_ref().and_then(|endpoint| endpoint.value.shows(&old.value)).cloned();
        let own = self.swap(add, old, old.value.provider.clone()).await?;
        match (&own.value.provider, entry) {
            (Some(_), None) => Err(NotYet::BoundAnew(address).into()),
            (_, entry) => Ok(Some(Ready::Known(own, entry))),
        }
    }

    /// Whether the pod's controller keeps its addresses for it.
    pub(super) async fn retained(&self, namespace: &str, pod: &str, owner: Option<&Owner>) -> Result<bool, Stopped> {
        match owner.filter(|owner| owner.retains()) {
            None => Ok(false),
            Some(owner) => {
                self.host.at(Step::ReadOwner).await;
                self.store.retained(namespace, owner, pod).await.map_err(at(Step::ReadOwner))
            }
        }
    }

    /// Whether nothing uses it any more. An address that was moved to this node and never used has no sandbox.
    pub(super) async fn sandbox_gone(&self, allocation: &Allocation) -> bool {
        if allocation.container_id.is_empty() {
            return true;
        }
        if allocation.sandbox_unknown() {
            let Allocation { address, pod, detached, .. } = allocation;
            return *detached || self.ended.is_torn_down(*address, &pod.uid, self.host.now());
        }
        self.host.at(Step::LookAtSandbox).await;
        self.host.sandbox_gone(allocation).await
    }

    /// Whether no earlier call for it can take effect any more.
    pub(super) fn settled(&self, stored: &Stored<Allocation>, endpoint: Option<&Endpoint>) -> bool {
        self.host.now() >= settled_at(stored, endpoint)
    }
}
