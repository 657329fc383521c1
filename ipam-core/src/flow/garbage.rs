//! What a controller does with allocations of pods that are gone.

use super::{Flows, Looked, Stopped, at};
use crate::{Address, Host, Provider, State, Step, Store, Then};

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
        let pod = &stored.value.pod;
        self.host.at(Step::ReadPod).await;
        let facts = self.store.pod(&pod.namespace, &pod.name).await.map_err(at(Step::ReadPod))?;
        if facts.is_some_and(|facts| facts.is(&pod.uid) && !facts.terminal) {
            return Ok(Looked::Done);
        }
        if self.retained(&pod.namespace, &pod.name, stored.value.owner.as_ref()).await? {
            return Ok(Looked::Done);
        }
        if stored.value.provider.is_some() {
            if !self.is_settled(&stored).await? {
                return Ok(Looked::Waits);
            }
            self.free(stored, Then::Delete).await?;
        } else if node_gone {
            self.remove(&stored).await?;
        }
        Ok(Looked::Done)
    }
}
