//! Reserving an address of a pool.
//!
//! A guess at random costs one write when it is right. What others have is learned from refusals, and after a few of them from
//! one list. Only that list says that a pool is used out.

use super::add::{Pod, Problem, Ready};
use super::{AddError, Candidate, Flows, Wanted, at};
use crate::pick::pick;
use crate::{Address, Allocation, Host, Provider, Range, Ranges, Reserved, State, Step, Store, Stored};
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// So long it counts that somebody had an address, if no list says otherwise. While a pool fills up, what was learnt is as true
/// as before, and forgetting it costs refusals and lists.
const TAKEN: Duration = Duration::from_mins(5);
/// So long it counts that this process freed it.
const RELEASED: Duration = Duration::from_secs(30);
/// So many wrong guesses, and the pool is listed.
const REFUSALS: usize = 3;
/// No more is remembered of addresses; older ones go first.
const MOST: usize = 1 << 16;

/// What a process knows of addresses beyond its own. Advice alone: the API server decides.
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<Notes>);

#[derive(Debug, Default)]
struct Notes {
    /// Refused or listed, until then.
    taken: HashMap<Address, Duration>,
    /// Freed by this process, until then: not used again while anything else is free.
    released: HashMap<Address, Duration>,
    /// Being asked for by another flow.
    asked: HashSet<Address>,
}

impl Known {
    fn notes(&self) -> std::sync::MutexGuard<'_, Notes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn released(&self, address: Address, now: Duration) {
        let mut notes = self.notes();
        notes.taken.remove(&address);
        notes.released.insert(address, now.saturating_add(RELEASED));
        tidy(&mut notes.released, now);
    }

    fn taken(&self, addresses: impl IntoIterator<Item = Address>, now: Duration) {
        let mut notes = self.notes();
        notes.taken.extend(addresses.into_iter().map(|address| (address, now.saturating_add(TAKEN))));
        tidy(&mut notes.taken, now);
    }

    /// What a list of a pool says goes before all that was learnt of it.
    fn listed(&self, pool: &Ranges, taken: Vec<Address>, now: Duration) {
        self.notes().taken.retain(|address, _| !pool.contains(*address));
        self.taken(taken, now);
    }

    /// Whether somebody is known to have it, or to ask for it; and whether it was just freed, if that counts.
    fn counts(&self, address: Address, now: Duration, released: bool) -> bool {
        let notes = self.notes();
        let within = |times: &HashMap<Address, Duration>| times.get(&address).is_some_and(|until| *until > now);
        notes.asked.contains(&address) || within(&notes.taken) || released && within(&notes.released)
    }

    /// All of which that is so.
    fn all(&self, now: Duration, released: bool) -> Ranges {
        let notes = self.notes();
        let released = notes.released.iter().filter(|_| released);
        let advice = notes.taken.iter().chain(released).filter(|(_, until)| **until > now).map(|(address, _)| *address);
        set(advice.chain(notes.asked.iter().copied()))
    }

    fn is_released(&self, address: Address, now: Duration) -> bool {
        self.notes().released.get(&address).is_some_and(|until| *until > now)
    }

    fn all_released(&self, now: Duration) -> Ranges {
        set(self.notes().released.iter().filter(|(_, until)| **until > now).map(|(address, _)| *address))
    }

    /// Marks an address as being asked for, if no other flow does.
    fn ask(&self, address: Address) -> bool {
        self.notes().asked.insert(address)
    }
}

/// Ends the mark when a flow has its answer, or is dropped.
struct Asked<'a>(&'a Known, Address);

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.0.notes().asked.remove(&self.1);
    }
}

fn tidy(times: &mut HashMap<Address, Duration>, now: Duration) {
    if times.len() > MOST {
        times.retain(|_, until| *until > now);
    }
    if times.len() > MOST {
        times.clear();
    }
}

impl<S: Store, P: Provider, H: Host> Flows<S, P, H> {
    /// Creates an allocation in the first of the pools that has a free address.
    pub(super) async fn reserve(&self, pod: &Pod<'_>, wanted: &Wanted) -> Result<Ready, Problem> {
        if pod.add.parent.is_some() {
            self.budget(pod.add)?;
        }
        for pool in &wanted.candidates {
            if let Some(ready) = self.reserve_in(pod, pool).await? {
                return Ok(ready);
            }
        }
        let pools = wanted.candidates.iter().map(|pool| (pool.pool.clone(), pool.addresses.count())).collect();
        Err(AddError::Full { family: wanted.family, pools }.into())
    }

    async fn reserve_in(&self, pod: &Pod<'_>, pool: &Candidate) -> Result<Option<Ready>, Problem> {
        let mut refusals = 0;
        let mut listed: Option<Ranges> = None;
        loop {
            let guess = match &listed {
                None if refusals < REFUSALS => self.guess(&pool.addresses),
                None => None,
                Some(free) => match self.guess_in(free) {
                    Some(address) => Some(address),
                    None => return Ok(None),
                },
            };
            let Some(address) = guess else {
                self.host.at(Step::ListPool).await;
                let taken = self.store.in_pool(&pool.pool).await.map_err(at(Step::ListPool))?;
                listed = Some(pool.addresses.difference(&set(taken.iter().copied())));
                self.known.listed(&pool.addresses, taken, self.host.now());
                continue;
            };
            if !self.known.ask(address) {
                // Another flow of this process has just guessed the same.
                listed = listed.map(|free| free.difference(&set([address])));
                refusals += 1;
                continue;
            }
            let asked = Asked(&self.known, address);
            let (new, deadline) = self.allocation(pod, pool, address);
            self.host.at(Step::Reserve).await;
            let reserved = self.store.reserve(new).await.map_err(at(Step::Reserve))?;
            drop(asked);
            match reserved {
                Reserved::Created(own) => return Ok(Some(ready(*own, deadline))),
                Reserved::Taken => {
                    refusals += 1;
                    self.known.taken([address], self.host.now());
                    listed = listed.map(|free| free.difference(&set([address])));
                }
            }
        }
    }

    fn allocation(&self, pod: &Pod<'_>, pool: &Candidate, address: Address) -> (Allocation, Option<Duration>) {
        let add = pod.add;
        let (provider, deadline) = self.binding(add, pool).unzip();
        let new = Allocation {
            pool: pool.pool.clone(),
            address,
            node: self.me.node.clone(),
            pod: add.pod.clone(),
            owner: pod.facts.owner.clone(),
            container_id: add.container_id.clone(),
            interface: add.interface.clone(),
            network: add.network.clone(),
            netns: add.netns.clone(),
            boot_id: add.boot_id.clone(),
            flow_id: self.fresh(),
            state: State::Held,
            provider,
            detached: false,
            release_request: None,
        };
        (new, deadline)
    }

    /// An address of a pool that nobody is known to have; one that this process freed just now only if there is no other.
    fn guess(&self, addresses: &Ranges) -> Option<Address> {
        let own = || set(self.store.all().into_iter().map(|own| own.value.address));
        let has = |address: Address| self.store.of_address(address).is_some();
        let now = self.host.now();
        let avoiding = |released: bool| {
            let is_used = |address| has(address) || self.known.counts(address, now, released);
            pick(addresses, is_used, || own().union(&self.known.all(now, released)), || self.host.random())
        };
        avoiding(true).or_else(|| avoiding(false))
    }

    /// The same of addresses that were listed as free.
    fn guess_in(&self, free: &Ranges) -> Option<Address> {
        let now = self.host.now();
        let released = |address| self.known.is_released(address, now);
        let fresh = pick(free, released, || self.known.all_released(now), || self.host.random());
        fresh.or_else(|| pick(free, |_| false, Ranges::default, || self.host.random()))
    }
}

fn ready(own: Stored<Allocation>, deadline: Option<Duration>) -> Ready {
    match deadline {
        Some(deadline) => Ready::Unbound(own, deadline),
        None => Ready::Known(own, None),
    }
}

fn set(addresses: impl IntoIterator<Item = Address>) -> Ranges {
    addresses.into_iter().map(Range::from).collect()
}
