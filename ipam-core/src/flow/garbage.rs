//! What a controller does with allocations of pods that are gone.

use super::{Flows, Looked, Stopped, at};
use crate::{Address, Allocation, Host, Provider, State, Step, Store, Stored, Then};

/// What becomes of an allocation of which a controller was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A pod needs it, or its node's agent frees it.
    Kept,
    /// It is freed once what was asked of the provider has settled.
    Waits,
    /// Nobody needs it and nobody else frees it.
    Garbage,
}

impl<S: Store, P: Provider, H: Host> Flows<S, P, H> {
    /// Frees what no pod needs and no agent will free. `node_gone`: nothing runs on the allocation's node any more, by what the
    /// administrator states (no such Node for a time, or the out-of-service taint).
    pub async fn collect(&self, address: Address, node_gone: bool) -> Result<Looked, Stopped> {
        let Some(seen) = self.store.of_address(address) else { return Ok(Looked::Done) };
        let key = (seen.value.pod.uid.clone(), seen.value.interface.clone());
        let Some(_lock) = self.locks.try_take(key) else { return Ok(Looked::Waits) };
        let Some(stored) = self.store.of_address(address).filter(|now| now.value.pod == seen.value.pod) else {
            return Ok(Looked::Waits);
        };
        if matches!(stored.value.state, State::Releasing(_)) {
            return self.take_over(stored).await;
        }
        match self.judge(&stored, node_gone).await? {
            Verdict::Kept => return Ok(Looked::Done),
            Verdict::Waits => return Ok(Looked::Waits),
            Verdict::Garbage => {}
        }
        if stored.value.provider.is_some() {
            self.free(stored, Then::Delete).await?;
        } else {
            self.remove(&stored).await?;
        }
        Ok(Looked::Done)
    }

    /// Whether [`Flows::collect`] would free an allocation that is held: by live reads, and nothing is written.
    pub async fn judge(&self, stored: &Stored<Allocation>, node_gone: bool) -> Result<Verdict, Stopped> {
        let Allocation { pod, owner, provider, .. } = &stored.value;
        self.host.at(Step::ReadPod).await;
        let facts = self.store.pod(&pod.namespace, &pod.name).await.map_err(at(Step::ReadPod))?;
        if facts.is_some_and(|facts| facts.is(&pod.uid) && !facts.terminal) {
            return Ok(Verdict::Kept);
        }
        if self.retained(&pod.namespace, &pod.name, owner.as_ref()).await? {
            return Ok(Verdict::Kept);
        }
        if provider.is_some() {
            return Ok(if self.is_settled(stored).await? { Verdict::Garbage } else { Verdict::Waits });
        }
        Ok(if node_gone { Verdict::Garbage } else { Verdict::Kept })
    }
}
