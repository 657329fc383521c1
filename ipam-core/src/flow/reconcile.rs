//! What an agent does with allocations of its node that no call is about.

use super::{Flows, Stopped, at};
use crate::{Address, Allocation, Host, Kept, PodFacts, Provider, State, Step, Store, Stored, Then};
use std::time::Duration;

/// How long an allocation without a provider may be unpublished: nobody else says that its flow is dead.
const UNPUBLISHED: Duration = Duration::from_mins(1);

/// What a look at an allocation came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looked {
    /// There is nothing to do, or it was done.
    Done,
    /// There is something to do once a sandbox is gone, a call has settled or a flow has ended.
    Waits,
}

impl<S: Store, P: Provider, H: Host> Flows<S, P, H> {
    /// Goes on with what somebody left, frees what nobody needs. Where a flow is running, nothing is done.
    pub async fn reconcile(&self, address: Address) -> Result<Looked, Stopped> {
        let Some(seen) = self.store.of_address(address) else { return Ok(Looked::Done) };
        let key = (seen.value.pod.uid.clone(), seen.value.interface.clone());
        let Some(_lock) = self.locks.try_take(key) else { return Ok(Looked::Waits) };
        // What was seen before the lock may have been changed by who had it.
        let Some(stored) = self.store.of_address(address).filter(|now| now.value.pod == seen.value.pod) else {
            return Ok(Looked::Waits);
        };
        match stored.value.state {
            State::Held => self.reconcile_held(stored).await,
            State::Releasing(_) => self.take_over(stored).await,
        }
    }

    async fn reconcile_held(&self, stored: Stored<Allocation>) -> Result<Looked, Stopped> {
        let allocation = &stored.value;
        let pod = &allocation.pod;
        self.host.at(Step::ReadPod).await;
        let facts = self.store.pod(&pod.namespace, &pod.name).await.map_err(at(Step::ReadPod))?;
        let there = facts.filter(|facts| facts.is(&pod.uid) && !facts.terminal);
        match &there {
            None if allocation.sandbox_unknown() => {
                self.ended.note(allocation.address, &pod.uid, self.host.now());
            }
            _ => self.ended.forget(allocation.address),
        }
        let retained = self.retained(&pod.namespace, &pod.name, allocation.owner.as_ref()).await?;
        match there {
            None if retained => self.reconcile_retained(stored).await,
            None => self.reconcile_dead(stored).await,
            Some(facts) => self.reconcile_living(stored, &facts, retained).await,
        }
    }

    /// The pod is gone or terminal, and nobody keeps the address for another.
    async fn reconcile_dead(&self, stored: Stored<Allocation>) -> Result<Looked, Stopped> {
        if stored.value.provider.is_some() {
            if !self.is_settled(&stored).await? {
                return Ok(Looked::Waits);
            }
            self.free(stored, Then::Delete).await?;
        } else {
            if !self.sandbox_gone(&stored.value).await {
                return Ok(Looked::Waits);
            }
            self.remove(&stored).await?;
        }
        Ok(Looked::Done)
    }

    /// The pod is gone and will come back, here or elsewhere. Its DEL may have been lost: without the mark, nobody could move it.
    async fn reconcile_retained(&self, stored: Stored<Allocation>) -> Result<Looked, Stopped> {
        if stored.value.detached {
            return Ok(Looked::Done);
        }
        if !self.sandbox_gone(&stored.value).await {
            return Ok(Looked::Waits);
        }
        let container = stored.value.container_id.clone();
        self.detach(stored, &container).await?;
        Ok(Looked::Done)
    }

    /// An orphan of a living pod, or one that is in order.
    async fn reconcile_living(
        &self,
        stored: Stored<Allocation>,
        facts: &PodFacts,
        retained: bool,
    ) -> Result<Looked, Stopped> {
        let allocation = &stored.value;
        let pod = &allocation.pod;
        self.host.at(Step::ReadEndpoint).await;
        let endpoint = self.store.endpoint(&pod.namespace, &pod.name).await.map_err(at(Step::ReadEndpoint))?;
        let endpoint = endpoint.map(|endpoint| endpoint.value);
        if endpoint.as_ref().is_some_and(|endpoint| endpoint.entry(allocation).is_some()) {
            self.follow_node(stored).await?;
            return Ok(Looked::Done);
        }
        // Nothing tells a sandbox that uses it from one that never came to be, until the pod ends or comes for it.
        if allocation.sandbox_unknown() {
            return Ok(Looked::Done);
        }
        let quiet = match allocation.provider {
            Some(_) => self.settled(&stored, endpoint.as_ref()),
            None => self.host.now() >= stored.seen.saturating_add(UNPUBLISHED),
        };
        if !quiet {
            return Ok(Looked::Waits);
        }
        if facts.terminating || self.may_be_shown_again(allocation).await {
            return Ok(Looked::Done);
        }
        if retained && !self.has_another(&stored).await? {
            return Ok(Looked::Done);
        }
        self.free(stored, Then::Delete).await?;
        Ok(Looked::Done)
    }

    /// Its result is on disk and its sandbox is there: the next ADD publishes it from there.
    async fn may_be_shown_again(&self, allocation: &Allocation) -> bool {
        self.host.at(Step::ReadKept).await;
        let kept = match self.host.kept(&allocation.pod.uid, &allocation.interface).await {
            Kept::Nothing => false,
            Kept::Unreadable => true,
            Kept::Result(kept) => {
                kept.bind_id.as_deref() == allocation.bind_id()
                    && kept.addresses.iter().any(|assigned| assigned.address == allocation.address)
            }
        };
        if !kept {
            return false;
        }
        !self.sandbox_gone(allocation).await
    }

    async fn has_another(&self, stored: &Stored<Allocation>) -> Result<bool, Stopped> {
        let Allocation { pod, owner, .. } = &stored.value;
        self.host.at(Step::LookUp).await;
        let named = self.store.named(&pod.namespace, &pod.name, owner.as_ref()).await.map_err(at(Step::LookUp))?;
        Ok(named.iter().any(|other| {
            other.value.address != stored.value.address
                && other.value.address.family() == stored.value.address.family()
                && other.value.interface == stored.value.interface
        }))
    }

    /// The same machine under a new Node.
    async fn follow_node(&self, stored: Stored<Allocation>) -> Result<(), Stopped> {
        let node = &stored.value.node;
        let me = &self.me.node;
        if node.name != me.name || node.machine_id != me.machine_id || node.uid == me.uid {
            return Ok(());
        }
        let next = Allocation { node: me.clone(), ..stored.value.clone() };
        self.host.at(Step::Swap).await;
        self.store.advance(next.address, &stored.version, next).await.map_err(at(Step::Swap))?;
        Ok(())
    }

    /// Somebody's release whose process is gone, or gave up.
    pub(super) async fn take_over(&self, stored: Stored<Allocation>) -> Result<Looked, Stopped> {
        let State::Releasing(releasing) = &stored.value.state else { return Ok(Looked::Done) };
        if !self.settled(&stored, None) {
            return Ok(Looked::Waits);
        }
        self.served(&stored.value)?;
        let pod = &stored.value.pod;
        let then = match releasing.then {
            Then::Delete => Then::Delete,
            Then::Keep => {
                self.host.at(Step::ReadPod).await;
                let facts = self.store.pod(&pod.namespace, &pod.name).await.map_err(at(Step::ReadPod))?;
                let live = facts.is_some_and(|facts| facts.lives_as(&pod.uid));
                let owner = stored.value.owner.as_ref();
                if live || self.retained(&pod.namespace, &pod.name, owner).await? { Then::Keep } else { Then::Delete }
            }
        };
        self.host.at(Step::TakeOver).await;
        let unbound = self.unbind(stored, then, Duration::ZERO).await?;
        match then {
            Then::Keep => self.give_back(unbound, None).await?,
            Then::Delete => self.remove(&unbound).await?,
        }
        Ok(Looked::Done)
    }

    /// By the endpoint as it is now.
    pub(super) async fn is_settled(&self, stored: &Stored<Allocation>) -> Result<bool, Stopped> {
        if self.settled(stored, None) {
            return Ok(true);
        }
        let pod = &stored.value.pod;
        self.host.at(Step::ReadEndpoint).await;
        let endpoint = self.store.endpoint(&pod.namespace, &pod.name).await.map_err(at(Step::ReadEndpoint))?;
        Ok(self.settled(stored, endpoint.as_ref().map(|endpoint| &endpoint.value)))
    }
}
