//! Giving an address back, to the pool or to its pod unbound.
//!
//! ```text
//! withdraw ──> fence {Releasing, me} ──┬─ earlier calls settled ──────────────> unbind ─┬─ 2xx ──────────────> remove | give back
//!                                      └─ not: settle ──> renew ──> unbind ─┘     ^     ├─ 2xx after unknown: settle ──┘
//!                                                                                └ renew ┘ no, or unknown
//! ```

use super::bind::call;
use super::locks::Lock;
use super::settled::{GRACE, settle, settled_at};
use super::{Flows, Stopped, at};
use crate::{Allocation, Host, Outcome, Provider, Releasing, State, Step, Store, Stored, Then};
use std::time::Duration;

/// Something to give back, with the lock under which that was decided.
#[derive(Debug)]
pub struct Undo {
    pub(super) allocation: Stored<Allocation>,
    pub(super) then: Then,
    /// Every call that was sent for it has a complete answer.
    pub(super) answered: bool,
    pub(super) lock: Lock,
}

/// Between two tries of a release.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));

impl<S: Store, P: Provider, H: Host> Flows<S, P, H> {
    /// Does what a failed ADD left to do.
    pub async fn undo(&self, undo: Undo) -> Result<(), Stopped> {
        let _lock = undo.lock;
        self.free_answered(undo.allocation, undo.then, undo.answered).await
    }

    /// Frees an allocation whose lock the caller holds.
    pub(super) async fn free(&self, stored: Stored<Allocation>, then: Then) -> Result<(), Stopped> {
        self.free_answered(stored, then, false).await
    }

    async fn free_answered(&self, stored: Stored<Allocation>, then: Then, answered: bool) -> Result<(), Stopped> {
        let shown = self.withdraw(&stored).await?;
        let quiet = if answered || shown { Duration::ZERO } else { settled_at(&stored, None) };
        let unbound = self.unbind(stored, then, quiet).await?;
        match then {
            Then::Keep => self.give_back(unbound, None).await,
            Then::Delete => self.remove(&unbound).await,
        }
    }

    /// From the fence to the cloud's complete answer. `quiet` is when earlier calls have settled.
    pub(super) async fn unbind(
        &self,
        stored: Stored<Allocation>,
        then: Then,
        mut quiet: Duration,
    ) -> Result<Stored<Allocation>, Stopped> {
        if stored.value.provider.is_none() {
            return Ok(stored);
        }
        let (mut stored, mut deadline) = self.fence(stored, then, quiet, Step::Fence).await?;
        if self.host.now() < quiet {
            self.until(quiet, Step::Settle).await;
            (stored, deadline) = self.fence(stored, then, quiet, Step::Renew).await?;
        }
        let mut pause = PAUSES.0;
        let mut unknown = false;
        loop {
            let Some(call) = call(&stored.value, deadline) else { return Ok(stored) };
            self.host.at(Step::Unbind).await;
            match self.provider.release(&call).await {
                Outcome::Answered(()) => break,
                Outcome::Rejected(_) => {}
                Outcome::Unknown(_) => {
                    unknown = true;
                    quiet = quiet.max(deadline.saturating_add(GRACE));
                }
            }
            self.host.sleep(self.jittered(pause)).await;
            pause = pause.saturating_mul(2).min(PAUSES.1);
            (stored, deadline) = self.fence(stored, then, quiet, Step::Renew).await?;
        }
        if unknown {
            self.until(quiet, Step::SettleUnknown).await;
        }
        Ok(stored)
    }

    /// Marks it as being released by this process. Also says until when calls may be sent under that.
    async fn fence(
        &self,
        stored: Stored<Allocation>,
        then: Then,
        quiet: Duration,
        step: Step,
    ) -> Result<(Stored<Allocation>, Duration), Stopped> {
        self.host.at(step).await;
        let now = self.host.now();
        let mut next = stored.value.clone();
        next.state = State::Releasing(Releasing { releaser: self.me.releaser.clone(), then });
        if let Some(binding) = &mut next.provider {
            binding.settle = settle(&stored.value, now >= quiet, self.me.call);
        }
        let stored = self.store.advance(next.address, &stored.version, next).await.map_err(at(step))?;
        Ok((stored, now.saturating_add(self.me.call)))
    }

    /// Deletes it.
    pub(super) async fn remove(&self, stored: &Stored<Allocation>) -> Result<(), Stopped> {
        self.host.at(Step::Remove).await;
        self.store.remove(stored.value.address, &stored.version).await.map_err(at(Step::Remove))?;
        self.known.released(stored.value.address, self.host.now());
        Ok(())
    }

    /// Its pod keeps it, unbound; on another node, if it moved.
    pub(super) async fn give_back(&self, stored: Stored<Allocation>, to: Option<Allocation>) -> Result<(), Stopped> {
        let step = if to.is_some() { Step::Move } else { Step::GiveBack };
        let mut next = to.unwrap_or(stored.value);
        (next.state, next.provider) = (State::Held, None);
        self.host.at(step).await;
        self.store.advance(next.address, &stored.version, next).await.map_err(at(step))?;
        Ok(())
    }

    async fn until(&self, time: Duration, step: Step) {
        self.host.at(step).await;
        self.host.sleep(time.saturating_sub(self.host.now())).await;
    }

    /// Half of it for certain, half by chance.
    fn jittered(&self, pause: Duration) -> Duration {
        let chance = u32::try_from(self.host.random() % 1000).unwrap_or_default();
        pause / 2 + (pause / 2).saturating_mul(chance) / 1000
    }
}
