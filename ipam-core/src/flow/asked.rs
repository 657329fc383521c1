//! What a person asked to be released.

use super::settled::settled_at;
use super::{Flows, Stopped, at};
use crate::{Address, Allocation, Host, Provider, State, Step, Store, Stored, Then};
use std::time::Duration;

/// What became of a person's request ([`Allocation::release_request`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Nobody asks for it any more.
    Nothing,
    /// Something has to settle first, or the provider to be asked.
    Waits,
    /// Who asked can be told.
    Answered(Answered),
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    /// The pod is there and has not ended: its sandbox may run. The request is taken off.
    Declined,
    /// The address is free.
    Released,
    /// The address is free, and nobody asked the provider.
    Abandoned,
}

impl<S: Store, P: Provider, H: Host> Flows<S, P, H> {
    /// Frees what a person says that nothing uses any more, though a controller of pods keeps it, or its node cannot tell. An
    /// address of a pod that is there is not given up for a word.
    pub async fn carry_out(&self, address: Address) -> Result<Asked, Stopped> {
        let Some(seen) = self.store.of_address(address) else { return Ok(Asked::Nothing) };
        let key = (seen.value.pod.uid.clone(), seen.value.interface.clone());
        let Some(_lock) = self.locks.try_take(key) else { return Ok(Asked::Waits) };
        let Some(stored) = self.store.of_address(address).filter(|now| now.value.pod == seen.value.pod) else {
            return Ok(Asked::Waits);
        };
        let Allocation { pod, provider, release_request: Some(request), .. } = &stored.value else {
            return Ok(Asked::Nothing);
        };
        self.host.at(Step::ReadPod).await;
        let facts = self.store.pod(&pod.namespace, &pod.name).await.map_err(at(Step::ReadPod))?;
        if facts.is_some_and(|facts| facts.is(&pod.uid) && !facts.terminal) {
            self.decline(stored).await?;
            return Ok(Asked::Answered(Answered::Declined));
        }
        if provider.is_none() || request.abandon {
            let done = if provider.is_some() { Answered::Abandoned } else { Answered::Released };
            let shown = self.withdraw(&stored).await?;
            let quiet = if shown { Duration::ZERO } else { settled_at(&stored, None) };
            // A call that is on its way must not meet whoever gets the address next.
            let over = self.give_up(stored, quiet).await?;
            self.remove(&over).await?;
            return Ok(Asked::Answered(done));
        }
        if stored.value.state != State::Held {
            // A release that goes on does what was asked for; of one that was cut off, nobody else may be left to go on.
            self.take_over(stored).await?;
            let done = self.store.of_address(address).is_none();
            return Ok(if done { Asked::Answered(Answered::Released) } else { Asked::Waits });
        }
        if !self.is_settled(&stored).await? {
            return Ok(Asked::Waits);
        }
        self.free(stored, Then::Delete).await?;
        Ok(Asked::Answered(Answered::Released))
    }

    async fn decline(&self, stored: Stored<Allocation>) -> Result<(), Stopped> {
        let next = Allocation { release_request: None, ..stored.value };
        self.host.at(Step::Decline).await;
        self.store.advance(next.address, &stored.version, next).await.map_err(at(Step::Decline))?;
        Ok(())
    }
}
