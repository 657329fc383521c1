//! CNI ADD: an interface gets its addresses.

use super::free::Undo;
use super::locks::Lock;
use super::places::Place;
use super::{Add, AddError, Answer, Candidate, Chosen, Flows, NotYet, Pools, Stopped, Wanted, at};
use crate::{
    Allocation, Endpoint, Family, Host, Interface, Kept, Owner, PodFacts, Provider, Step, Store, StoreError, Stored,
    Then,
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
    /// Every call that was sent for it has a complete answer.
    pub(super) answered: bool,
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
        match stopped.source {
            StoreError::Conflict | StoreError::Gone => Self::NotYet(NotYet::Changed(stopped.step)),
            source => Self::Store { step: stopped.step, source },
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
    Unbound(Stored<Allocation>, Duration),
}

impl<S: Store, P: Provider, H: Host> Flows<S, P, H> {
    /// Gives an interface its addresses, the same ones each time.
    pub async fn add(&self, add: &Add, pools: &dyn Pools) -> Result<Answer, Failed> {
        let lock = self.lock(add).await.map_err(|error| Failed { error, undo: None })?;
        self.locked(add, pools).await.map_err(|problem| {
            let undo =
                problem.left.map(|Left { allocation, then, answered }| Undo { allocation, then, answered, lock });
            Failed { error: problem.error, undo }
        })
    }

    async fn lock(&self, add: &Add) -> Result<Lock, AddError> {
        let left = add.deadline.saturating_sub(self.host.now());
        let take = pin!(self.locks.take((add.pod.uid.clone(), add.interface.clone())));
        match select(take, pin!(self.host.sleep(left))).await {
            Either::Left((lock, _)) => Ok(lock),
            Either::Right(_) => Err(NotYet::Another.into()),
        }
    }

    async fn locked(&self, add: &Add, pools: &dyn Pools) -> Result<Answer, Problem> {
        if let Some(pool) = self.places.still_full(&add.pod.uid) {
            return Err(NotYet::Crowded(pool).into());
        }
        let mut places: Vec<Place<'_>> = Vec::new();
        loop {
            let pod = self.read_pod(add, pools).await?;
            let mut mine = self.store.of_pod(&add.pod.uid);
            mine.retain(|one| one.value.interface == add.interface);
            if let Some(releasing) = mine.iter().find(|one| !one.value.held()) {
                return Err(NotYet::Releasing(releasing.value.address).into());
            }
            if let Some(entry) = pod.shown(&mine) {
                for one in mine.iter().filter(|one| one.value.container_id != add.container_id) {
                    self.swap(add, one, one.value.provider.clone()).await?;
                }
                return Ok(self.keep(add, entry).await);
            }
            let chosen = match pools.wanted(&pod.facts) {
                Err(none) if mine.is_empty() => return Err(AddError::NoPool(none).into()),
                chosen => chosen.unwrap_or_default(),
            };
            // Who had to wait knows nothing any more: he reads again.
            if self.take_places(add, &mine, &chosen, &mut places).await? {
                continue;
            }
            return self.work(&pod, &mine, &chosen).await;
        }
    }

    /// Whether a place had to be waited for. In the order of names, so that two of two pools do not wait for each other.
    async fn take_places<'a>(
        &'a self,
        add: &Add,
        mine: &[Stored<Allocation>],
        chosen: &Chosen,
        places: &mut Vec<Place<'a>>,
    ) -> Result<bool, Problem> {
        let first = |wanted: &Wanted| wanted.candidates.first().map(|first| first.pool.clone());
        let all: BTreeSet<String> =
            mine.iter().map(|one| one.value.pool.clone()).chain(chosen.wanted.iter().filter_map(first)).collect();
        let mut waited = false;
        for pool in all.into_iter().filter(|pool| !places.iter().any(|place| place.pool == *pool)).collect::<Vec<_>>() {
            let left = add.deadline.saturating_sub(self.host.now());
            let taken = self.places.take(&pool, &add.pod.uid, self.host.sleep(left)).await;
            let (place, late) = taken.ok_or_else(|| NotYet::Crowded(pool.clone()))?;
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
                match self.host.kept(&add.pod.uid, &add.interface).await {
                    Kept::Result(kept) if kept.bind_id.as_deref() == own.value.bind_id() => {
                        let own = self.swap(add, own, own.value.provider.clone()).await?;
                        Ok(Ready::Known(own, Some(*kept)))
                    }
                    Kept::Unreadable => Err(NotYet::Changed(Step::ReadKept).into()),
                    Kept::Result(_) | Kept::Nothing => Err(Problem {
                        error: NotYet::BoundAnew(own.value.address).into(),
                        left: Some(Left { allocation: own.clone(), then: Then::Keep, answered: false }),
                    }),
                }
            }
        }
    }

    /// A family of which it has none: that of its predecessor, or a new one.
    async fn begin(&self, pod: &Pod<'_>, wanted: &Wanted) -> Result<Ready, Problem> {
        if pod.retained
            && let Some(ready) = self.inherit(pod, wanted.family).await?
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
                    let bound = self.bind(pod.add, &own, deadline).await?;
                    let before = pod.before();
                    entry.mac = bound.mac.or_else(|| before.and_then(|before| before.mac.clone()));
                    entry.vlan = bound.vlan.or_else(|| before.and_then(|before| before.vlan));
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

    /// What the endpoint says of the interface, of this pod or of the one before.
    pub(super) fn before(&self) -> Option<&Interface> {
        self.endpoint.as_ref()?.value.interfaces.iter().find(|before| before.name == self.add.interface)
    }
}
