//! Reserving an address of a pool.
//!
//! A guess costs one write when it is right. What others have is learned from refusals, and after a few of them from one list.
//! Only that list says that a pool is used out.

use super::add::{Pod, Problem, Ready};
use super::known::Notes;
use super::{AddError, Candidate, Flows, Wanted, at};
use crate::pick::pick;
use crate::{Address, Allocation, Deadline, Host, Provider, Range, Ranges, Reserved, State, Step, Store, Stored};

/// So many wrong guesses, and the pool is listed.
const REFUSALS: usize = 3;

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
            let from = listed.as_ref().or_else(|| (refusals < REFUSALS).then_some(&pool.addresses));
            let Some(asked) = from.and_then(|from| self.known.ask(|notes| self.guess(notes, from))) else {
                if listed.is_some() {
                    return Ok(None);
                }
                self.host.at(Step::ListPool).await;
                let taken = self.store.in_pool(&pool.pool).await.map_err(at(Step::ListPool))?;
                let others = taken.iter().copied().filter(|address| self.store.of_address(*address).is_none());
                self.known.listed(&pool.addresses, others, self.host.now());
                listed = Some(pool.addresses.difference(&set(taken)));
                continue;
            };
            let (new, deadline) = self.allocation(pod, pool, asked.address);
            self.host.at(Step::Reserve).await;
            match self.store.reserve(new).await.map_err(at(Step::Reserve))? {
                Reserved::Created(own) => {
                    self.known.given(asked.address, self.host.now());
                    return Ok(Some(ready(*own, deadline)));
                }
                Reserved::Taken => {
                    refusals += 1;
                    self.known.refused(asked.address, self.host.now());
                }
            }
        }
    }

    fn allocation(&self, pod: &Pod<'_>, pool: &Candidate, address: Address) -> (Allocation, Option<Deadline>) {
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

    /// One of `from` that nobody is known to have or to ask for: of a block that this process has begun, else of one where
    /// nobody is known to be, else any; one that this process freed just now only if there is no other.
    fn guess(&self, notes: &mut Notes, from: &Ranges) -> Option<Address> {
        let now = self.host.now();
        let random = || self.host.random();
        let own = || set(self.store.addresses());
        let used = |notes: &Notes, address| self.store.of_address(address).is_some() || notes.is_taken(address, now);
        let fresh = |notes: &Notes, address| !used(notes, address) && !notes.is_released(address, now);
        let begun = notes.in_begun(from, |notes, near| {
            let used = || set((0..near.count()).filter_map(|n| near.nth(n)).filter(|address| !fresh(notes, *address)));
            pick(near, |address| !fresh(notes, address), used, random)
        });
        let notes = &*notes;
        let avoided = || own().union(&notes.all_taken(now)).union(&notes.all_released(now));
        begun
            .or_else(|| {
                let free = |address| fresh(notes, address) && !notes.is_entered(address, now);
                pick(from, |address| !free(address), || avoided().union(&notes.all_entered(now)), random)
            })
            .or_else(|| pick(from, |address| !fresh(notes, address), avoided, random))
            .or_else(|| pick(from, |address| used(notes, address), || own().union(&notes.all_taken(now)), random))
    }
}

fn ready(own: Stored<Allocation>, deadline: Option<Deadline>) -> Ready {
    match deadline {
        Some(deadline) => Ready::Unbound(own, deadline),
        None => Ready::Known(own, None),
    }
}

fn set(addresses: impl IntoIterator<Item = Address>) -> Ranges {
    addresses.into_iter().map(Range::from).collect()
}
