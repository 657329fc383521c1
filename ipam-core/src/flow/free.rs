//! Giving an address back, to the pool or to its pod unbound.
//!
//! ```text
//! withdraw ──> fence {Releasing, me} ──┬─ earlier calls settled ──────────────> unbind ─┬─ 2xx ──────────────> remove | give back
//!                                      └─ not: settle ──> renew ──> unbind ─┘     ^     ├─ 2xx after unknown: settle ──┘
//!                                                                                └ renew ┘ no, or unknown
//! ```

use super::add::Calls;
use super::bind::back;
use super::locks::Lock;
use super::settled::{GRACE, settle, settled_at};
use super::{Flows, Stopped, at};
use crate::{Address, Allocation, Deadline, Host, Outcome, Provider, Releasing, State, Step, Store, Stored, Then};
use std::time::Duration;

/// Something to give back, with the lock under which that was decided.
#[derive(Debug)]
pub struct Undo {
    pub(super) allocation: Stored<Allocation>,
    pub(super) then: Then,
    pub(super) calls: Calls,
    pub(super) lock: Lock,
}

impl Undo {
    /// What is given back.
    #[must_use]
    pub fn address(&self) -> Address {
        self.allocation.value.address
    }
}

/// Between two tries of a release.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));

impl<S: Store, P: Provider, H: Host> Flows<S, P, H> {
    /// Does what a failed ADD left to do.
    pub async fn undo(&self, undo: Undo) -> Result<(), Stopped> {
        let _lock = undo.lock;
        match (undo.calls, undo.then) {
            (Calls::None, Then::Delete) => self.remove(&undo.allocation).await,
            (Calls::None, Then::Keep) => self.give_back(undo.allocation, None).await,
            (calls, then) => self.free_after(undo.allocation, then, calls).await,
        }
    }

    /// Frees an allocation whose lock the caller holds.
    pub(super) async fn free(&self, stored: Stored<Allocation>, then: Then) -> Result<(), Stopped> {
        self.free_after(stored, then, Calls::Open).await
    }

    async fn free_after(&self, stored: Stored<Allocation>, then: Then, calls: Calls) -> Result<(), Stopped> {
        self.served(&stored.value)?;
        let shown = self.withdraw(&stored).await?;
        let quiet = if calls == Calls::Open && !shown { settled_at(&stored, None) } else { Duration::ZERO };
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
        quiet: Duration,
    ) -> Result<Stored<Allocation>, Stopped> {
        if stored.value.provider.is_none() {
            return Ok(stored);
        }
        let address = stored.value.address;
        // It is in many flows, and large.
        let ended = Box::pin(self.until_unbound(stored, then, quiet)).await;
        self.refused.forget(address);
        ended
    }

    async fn until_unbound(
        &self,
        stored: Stored<Allocation>,
        then: Then,
        mut quiet: Duration,
    ) -> Result<Stored<Allocation>, Stopped> {
        self.served(&stored.value)?;
        let (mut stored, mut deadline) = self.fence(stored, then, quiet, Step::Fence).await?;
        if self.host.now() < quiet {
            self.until(quiet, Step::Settle).await?;
            self.served(&stored.value)?;
            (stored, deadline) = self.fence(stored, then, quiet, Step::Renew).await?;
        }
        let mut pause = PAUSES.0;
        let mut unknown = false;
        loop {
            let Some(call) = back(&stored.value, deadline) else { return Ok(stored) };
            self.host.at(Step::Unbind).await;
            match self.provider.release(&call).await {
                Outcome::Answered(()) => break,
                Outcome::Rejected(why) | Outcome::Unsent(why) => self.told(&stored.value, why),
                Outcome::Unknown(why) => {
                    unknown = true;
                    quiet = quiet.max(deadline.at.saturating_add(GRACE));
                    self.told(&stored.value, why);
                }
            }
            self.pause(self.jittered(pause), Step::Unbind).await?;
            pause = pause.saturating_mul(2).min(PAUSES.1);
            self.served(&stored.value)?;
            (stored, deadline) = self.fence(stored, then, quiet, Step::Renew).await?;
        }
        if unknown {
            self.until(quiet, Step::SettleUnknown).await?;
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
    ) -> Result<(Stored<Allocation>, Deadline), Stopped> {
        self.host.at(step).await;
        let (now, limit) = (self.host.now(), self.provider.limit());
        let mut next = stored.value.clone();
        next.state = State::Releasing(Releasing { releaser: self.me.releaser.clone(), then });
        if let Some(binding) = &mut next.provider {
            binding.settle = settle(&stored.value, now >= quiet, limit);
        }
        let stored = self.store.advance(next.address, &stored.version, next).await.map_err(at(step))?;
        Ok((stored, Deadline::new(now, limit, None)))
    }

    /// Nobody asks the cloud any more: whoever does is fenced, and what was sent has settled when this ends.
    pub(super) async fn give_up(
        &self,
        stored: Stored<Allocation>,
        quiet: Duration,
    ) -> Result<Stored<Allocation>, Stopped> {
        if stored.value.provider.is_none() {
            return Ok(stored);
        }
        let (fenced, _) = self.fence(stored, Then::Delete, quiet, Step::Fence).await?;
        self.until(quiet, Step::Settle).await?;
        Ok(fenced)
    }

    /// Deletes it.
    pub(super) async fn remove(&self, stored: &Stored<Allocation>) -> Result<(), Stopped> {
        self.host.at(Step::Remove).await;
        self.store.remove(stored.value.address, &stored.version).await.map_err(at(Step::Remove))?;
        self.known.released(stored.value.address, self.host.now());
        self.ended.forget(stored.value.address);
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

    async fn until(&self, time: Duration, step: Step) -> Result<(), Stopped> {
        self.host.at(step).await;
        self.pause(time.saturating_sub(self.host.now()), step).await
    }

    /// What is to be done after it may as well be done by a later process.
    pub(super) async fn pause(&self, time: Duration, step: Step) -> Result<(), Stopped> {
        if self.host.pause(time).await { Ok(()) } else { Err(Stopped::Stopping { step }) }
    }

    fn told(&self, allocation: &Allocation, why: String) {
        self.refused.note(allocation.address, &why);
        self.host.unreleased(allocation, why);
    }

    /// Half of it for certain, half by chance.
    fn jittered(&self, pause: Duration) -> Duration {
        let chance = u32::try_from(self.host.random() % 1000).unwrap_or_default();
        pause / 2 + (pause / 2).saturating_mul(chance) / 1000
    }
}
