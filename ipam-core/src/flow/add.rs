//! CNI ADD: an interface gets its addresses.

use super::free::Undo;
use super::locks::Lock;
use super::places::Place;
use super::{Add, AddError, Answer, Candidate, Chosen, Flows, NotYet, Pools, Stopped, Wanted, at};
use crate::{
    Address, Allocation, Deadline, Endpoint, Family, Host, Interface, Kept, Owner, PodFacts, Provider, Step, Store,
    StoreError, Stored, Then,
};
use futures::future::{Either, select};
use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

/// An ADD that gives no address.
#[derive(Debug)]
pub struct Failed {
    /// Why.
    pub error: AddError,
    /// What has to be given back, after the runtime was answered.
    pub undo: Option<Undo>,
}

/// The same, while the lock is held by the caller.
pub(super) struct Problem {
    pub(super) error: AddError,
    pub(super) left: Option<Left>,
}

/// What has to be given back.
#[derive(Clone)]
pub(super) struct Left {
    pub(super) allocation: Stored<Allocation>,
    pub(super) then: Then,
    pub(super) calls: Calls,
}

/// What became of the calls that were sent for an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Calls {
    /// None was sent.
    None,
    /// Each has a complete answer.
    Answered,
    /// One may still take effect.
    Open,
}

impl<E: Into<AddError>> From<E> for Problem {
    fn from(error: E) -> Self {
        Self { error: error.into(), left: None }
    }
}

impl From<NotYet> for AddError {
    fn from(why: NotYet) -> Self {
        Self::NotYet(why)
    }
}

impl From<Stopped> for AddError {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Store { step, source: StoreError::Conflict | StoreError::Gone } => {
                Self::NotYet(NotYet::Changed(step))
            }
            Stopped::Store { step, source } => Self::Store { step, source },
            Stopped::Unserved { address, server } => Self::NotYet(NotYet::Unserved { address, server }),
            Stopped::Stopping { step } => Self::NotYet(NotYet::Stopping(step)),
        }
    }
}

/// What an ADD knows of its pod.
pub(super) struct Pod<'a> {
    pub(super) add: &'a Add,
    pub(super) pools: &'a dyn Pools,
    pub(super) facts: PodFacts,
    /// Read before anything is written: whoever writes it meanwhile makes the publish a conflict.
    pub(super) endpoint: Option<Stored<Endpoint>>,
    /// Its controller keeps its addresses for it.
    pub(super) retained: bool,
}

/// Where one address of an interface stands.
pub(super) enum Ready {
    /// Nobody has to be asked. With what is known of the binding, if there is one.
    Known(Stored<Allocation>, Option<Interface>),
    /// The cloud has to be asked, until then.
    Unbound(Stored<Allocation>, Deadline),
}

impl<S: Store, P: Provider, H: Host> Flows<S, P, H> {
    /// Gives an interface its addresses, the same ones each time.
    pub async fn add(&self, add: &Add, pools: &dyn Pools) -> Result<Answer, Failed> {
        let lock = self.lock(add).await.map_err(|error| Failed { error, undo: None })?;
        self.locked(add, pools).await.map_err(|problem| {
            let undo = problem.left.map(|Left { allocation, then, calls }| Undo { allocation, then, calls, lock });
            Failed { error: problem.error, undo }
        })
    }

    pub(super) fn releasing(&self, address: Address) -> NotYet {
        NotYet::Releasing { address, why: self.refused.why(address) }
    }

    async fn lock(&self, add: &Add) -> Result<Lock, AddError> {
        let left = add.deadline.saturating_sub(self.host.now());
        let take = pin!(self.locks.take((add.pod.uid.clone(), add.interface.clone())));
        match select(take, pin!(self.host.sleep(left))).await {
            Either::Left((lock, _)) => Ok(lock),
            Either::Right(_) => {
                let mut mine = self.store.of_pod(&add.pod.uid);
                mine.retain(|one| one.value.interface == add.interface && !one.value.held());
                let releasing = mine.first().map(|one| self.releasing(one.value.address));
                Err(releasing.unwrap_or(NotYet::Another).into())
            }
        }
    }

    async fn locked(&self, add: &Add, pools: &dyn Pools) -> Result<Answer, Problem> {
        let mut places: Vec<Place<'_>> = Vec::new();
        // What it asked for in vain it will ask for again: nothing is read before it is its turn. Where there is no turn, the next
        // try reads first: somebody may have given it another pool.
        let of = (add.pod.uid.clone(), add.interface.clone());
        if let Some(pools) = self.places.tried(&of)
            && let Err(crowded) = self.take_places(add, pools, &mut places).await
        {
            self.places.forget(&of);
            return Err(crowded.into());
        }
        loop {
            let pod = self.read_pod(add, pools).await?;
            let mut mine = self.store.of_pod(&add.pod.uid);
            mine.retain(|one| one.value.interface == add.interface);
            if let Some(releasing) = mine.iter().find(|one| !one.value.held()) {
                return Err(self.releasing(releasing.value.address).into());
            }
            // One that was given before its network had a provider is bound now.
            let unbound = add.parent.is_some() && mine.iter().any(|one| one.value.provider.is_none());
            if let Some(entry) = pod.shown(&mine).filter(|_| !unbound) {
                for one in mine.iter().filter(|one| one.value.container_id != add.container_id) {
                    self.swap(add, one, one.value.provider.clone()).await?;
                }
                return Ok(self.keep(add, entry).await);
            }
            let chosen = match pools.wanted(&pod.facts) {
                Err(none) if mine.is_empty() => return Err(AddError::NoPool(none).into()),
                chosen => chosen.unwrap_or_default(),
            };
            let first = |wanted: &Wanted| wanted.candidates.first().map(|first| first.pool.clone());
            let needed = mine.iter().map(|one| one.value.pool.clone()).chain(chosen.wanted.iter().filter_map(first));
            let needed = needed.collect::<BTreeSet<_>>();
            // Who had to wait knows nothing any more: he reads again.
            if self.take_places(add, needed.clone(), &mut places).await? {
                continue;
            }
            let done = self.work(&pod, &mine, &chosen).await;
            match &done {
                Err(Problem { error: AddError::Full { .. }, .. }) => self.places.remember(of, &needed),
                _ => self.places.forget(&of),
            }
            return done;
        }
    }

    /// Places in these pools and in no others. Whether one had to be waited for.
    async fn take_places<'a>(
        &'a self,
        add: &Add,
        pools: BTreeSet<String>,
        places: &mut Vec<Place<'a>>,
    ) -> Result<bool, NotYet> {
        if places.iter().map(|place| &place.pool).eq(&pools) {
            return Ok(false);
        }
        // All anew, in the order of names: so two of two pools do not wait for each other.
        places.clear();
        let mut waited = false;
        for pool in &pools {
            let left = add.deadline.saturating_sub(self.host.now());
            let Some((place, late)) = self.places.take(pool, self.host.sleep(left)).await else {
                self.places.remember((add.pod.uid.clone(), add.interface.clone()), &pools);
                return Err(NotYet::Crowded(pool.clone()));
            };
            places.push(place);
            waited |= late;
        }
        Ok(waited)
    }

    /// Gets an address of each family.
    async fn work(&self, pod: &Pod<'_>, mine: &[Stored<Allocation>], chosen: &Chosen) -> Result<Answer, Problem> {
        let wanted = &chosen.wanted;
        let families: BTreeSet<Family> =
            wanted.iter().map(|one| one.family).chain(mine.iter().map(|one| one.value.address.family())).collect();
        if pod.add.parent.is_some() && families.contains(&Family::V6) {
            return Err(AddError::NotIpv4 { network: pod.add.network.clone() }.into());
        }
        let mut ready = Vec::with_capacity(families.len());
        for family in families {
            let own = mine.iter().find(|mine| mine.value.address.family() == family);
            let wanted = wanted.iter().find(|wanted| wanted.family == family);
            match (own, wanted) {
                (Some(own), _) => ready.push(self.resume(pod, own).await?),
                (None, Some(wanted)) => ready.push(self.begin(pod, wanted).await?),
                (None, None) => {}
            }
        }
        self.finish(pod, chosen, ready).await
    }

    async fn read_pod<'a>(&self, add: &'a Add, pools: &'a dyn Pools) -> Result<Pod<'a>, AddError> {
        let (namespace, name) = (&add.pod.namespace, &add.pod.name);
        self.host.at(Step::ReadPod).await;
        let facts = self.store.pod(namespace, name).await.map_err(at(Step::ReadPod))?;
        let dead = |why| AddError::PodNotLive { pod: add.pod.clone(), why };
        let facts = facts.ok_or_else(|| dead("is gone"))?;
        if !facts.is(&add.pod.uid) {
            return Err(dead("is gone, and another one has its name"));
        }
        if facts.terminating || facts.terminal {
            return Err(dead("is ending"));
        }
        if facts.namespace.terminating {
            return Err(dead("goes with its namespace"));
        }
        let retaining = facts.owner.as_ref().is_some_and(Owner::retains);
        let endpoint = if facts.generated && !retaining && self.store.of_pod(&add.pod.uid).is_empty() {
            // Nobody had the name before, and nobody has published for this pod: there is none. If there is one all the same,
            // its creation is a conflict, and the next ADD, which finds an allocation, reads it.
            None
        } else {
            self.host.at(Step::ReadEndpoint).await;
            self.store.endpoint(namespace, name).await.map_err(at(Step::ReadEndpoint))?
        };
        if let Some(other) = endpoint.as_ref().map(|endpoint| &endpoint.value)
            && other.pod.uid != add.pod.uid
            && other.node != self.me.node.name
        {
            return Err(NotYet::OtherEndpoint(other.node.clone()).into());
        }
        let retained = self.retained(namespace, name, facts.owner.as_ref()).await?;
        Ok(Pod { add, pools, facts, endpoint, retained })
    }

    /// A family of which the pod has an address already.
    async fn resume(&self, pod: &Pod<'_>, own: &Stored<Allocation>) -> Result<Ready, Problem> {
        let add = pod.add;
        match &own.value.provider {
            None if add.parent.is_none() => Ok(Ready::Known(self.swap(add, own, None).await?, None)),
            None => self.bind_again(pod, own).await,
            Some(_) => {
                if let Some(entry) = pod.endpoint.as_ref().and_then(|endpoint| endpoint.value.entry(&own.value)) {
                    let own = self.swap(add, own, own.value.provider.clone()).await?;
                    return Ok(Ready::Known(own, Some(entry.clone())));
                }
                self.host.at(Step::ReadKept).await;
                let kept = self.host.kept(&add.pod.uid, &add.interface).await;
                if !matches!(&kept, Kept::Result(kept) if kept.bind_id.as_deref() == own.value.bind_id()) {
                    // It could not be bound anew.
                    self.served(&own.value)?;
                }
                match kept {
                    Kept::Result(kept) if kept.bind_id.as_deref() == own.value.bind_id() => {
                        let own = self.swap(add, own, own.value.provider.clone()).await?;
                        Ok(Ready::Known(own, Some(*kept)))
                    }
                    // What cannot be read now will not be later, and a provider's binding can be had anew.
                    Kept::Result(_) | Kept::Nothing | Kept::Unreadable => Err(Problem {
                        error: NotYet::BoundAnew(own.value.address).into(),
                        left: Some(Left { allocation: own.clone(), then: Then::Keep, calls: Calls::Open }),
                    }),
                }
            }
        }
    }

    /// A family of which it has none: that of its predecessor, or a new one.
    async fn begin(&self, pod: &Pod<'_>, wanted: &Wanted) -> Result<Ready, Problem> {
        if let Some(unnamed) = self.unnamed(pod, wanted) {
            return self.resume(pod, &unnamed).await;
        }
        if pod.retained
            && let Some(ready) = self.inherit(pod, wanted).await?
        {
            return Ok(ready);
        }
        self.reserve(pod, wanted).await
    }

    /// Asks the cloud where it has to be asked, shows all of it, and answers.
    async fn finish(&self, pod: &Pod<'_>, chosen: &Chosen, ready: Vec<Ready>) -> Result<Answer, Problem> {
        let mut entry = pod.blank(chosen);
        for one in ready {
            let own = match one {
                Ready::Known(own, binding) => {
                    if let Some(binding) = binding {
                        (entry.mac, entry.vlan, entry.bind_id) = (binding.mac, binding.vlan, binding.bind_id);
                    }
                    own
                }
                Ready::Unbound(own, deadline) => {
                    let bound = self.bind(pod, &own, deadline).await?;
                    (entry.mac, entry.vlan) = (bound.mac, bound.vlan);
                    entry.bind_id = own.value.bind_id().map(str::to_owned);
                    own
                }
            };
            let allocation = own.value;
            entry.assign(allocation.address, pod.pool(&allocation)?);
        }
        self.publish(pod, &entry).await?;
        Ok(self.keep(pod.add, entry).await)
    }

    /// Before each answer: an allocation whose endpoint is lost is no orphan while its result is on disk. (The one that
    /// published it may have died before it kept it.)
    async fn keep(&self, add: &Add, entry: Interface) -> Answer {
        self.host.at(Step::Keep).await;
        self.host.keep(&add.pod.uid, &entry).await;
        entry
    }

    /// Enough time for the slowest cloud?
    pub(super) fn budget(&self, add: &Add) -> Result<(), AddError> {
        let remaining = add.deadline.saturating_sub(self.host.now());
        if remaining < WORST { Err(AddError::Budget { remaining, worst: WORST }) } else { Ok(()) }
    }
}

/// What a provider may take: 30 s of waiting for its own limits, 16 s of the cloud's, 2 s.
const WORST: Duration = Duration::from_secs(48);

impl Pod<'_> {
    /// The endpoint's entry, if it shows every one of these.
    fn shown(&self, mine: &[Stored<Allocation>]) -> Option<Interface> {
        let endpoint = &self.endpoint.as_ref()?.value;
        let entry = endpoint.entry(&mine.first()?.value)?;
        mine.iter().all(|one| endpoint.entry(&one.value).is_some()).then(|| entry.clone())
    }

    /// The pool of an address that it has.
    pub(super) fn pool(&self, allocation: &Allocation) -> Result<Candidate, AddError> {
        let gone = || AddError::PoolGone { pool: allocation.pool.clone(), address: allocation.address };
        self.pools.of(&allocation.pool).ok_or_else(gone)
    }

    /// What the endpoint says of the interface, of this pod or, if it is retained, of the one before.
    pub(super) fn before(&self) -> Option<&Interface> {
        let endpoint = &self.endpoint.as_ref()?.value;
        let own = self.retained || endpoint.pod.uid == self.add.pod.uid;
        endpoint.interfaces.iter().find(|before| own && before.name == self.add.interface)
    }
}
