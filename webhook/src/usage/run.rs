//! Keeps the books while this controller leads, and does for pools what the plan says.

use super::facts::{Allocation, Endpoint};
use super::ledger::Ledger;
use super::plan::{Memory, Next, Step, plan};
use super::shown::Shown;
use super::suspects::{Since, Suspects};
use super::write::{Outcome, allocations, write};
use crate::events::Events;
use crate::lease::Leading;
use crate::nodes::Machines;
use crate::pools::{Index, Known, reference};
use crate::resilient::{resilient, wanted};
use futures::{Stream, StreamExt};
use k8s_api::conf::Conf;
use k8s_api::crd::endpoint::SpiderEndpoint;
use kube::api::DynamicObject;
use kube::core::ApiResource;
use kube::runtime::watcher::{Event, watcher};
use kube::{Api, Client, ResourceExt};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Between two looks at all pools: a burst of changes costs a few looks, not one each.
const LOOK: Duration = Duration::from_millis(50);
/// When nothing else is to be done; also how late the loss of the lease is noticed.
const IDLE: Duration = Duration::from_secs(10);
/// After a write that failed.
const PAUSE: Duration = Duration::from_secs(1);
/// Between two looks for what may have been left behind: each goes through all.
const SWEEP: Duration = Duration::from_secs(2);

/// What the loop works with.
pub(crate) struct Inputs {
    pub(crate) client: Client,
    pub(crate) pools: watch::Receiver<Index>,
    /// `None` until all are known.
    pub(crate) machines: watch::Receiver<Option<Machines>>,
    pub(crate) conf: watch::Receiver<Conf>,
    pub(crate) leading: Leading,
    pub(crate) events: Events,
}

/// Who may have been left behind, while this controller leads; and the task that keeps that and the pools, for ever.
pub(crate) fn keep(
    mut inputs: Inputs,
) -> (watch::Receiver<Arc<Suspects>>, impl Future<Output = Result<(), Infallible>>) {
    let (found, suspects) = watch::channel(Arc::default());
    let keep = async move {
        loop {
            inputs.leading.begins().await;
            // Watched by the leader alone: there may be a hundred thousand, and nobody else needs them.
            lead(&mut inputs, &found).await;
            found.send_replace(Arc::default());
        }
    };
    (suspects, keep)
}

/// Until this controller leads no more.
async fn lead(
    Inputs { client, pools, machines, conf, leading, events }: &mut Inputs,
    suspects: &watch::Sender<Arc<Suspects>>,
) {
    let mut of_allocations = std::pin::pin!(events_of(client, &allocations(), "SpiderIPAllocations"));
    let endpoints = ApiResource::erase::<SpiderEndpoint>(&());
    let mut of_endpoints = std::pin::pin!(events_of(client, &endpoints, "SpiderEndpoints"));
    let mut books = Books::default();
    let mut memories: BTreeMap<String, Memory> = BTreeMap::new();
    let (mut changed, mut looked) = (true, Instant::now());
    let mut next = looked;
    let (mut since, mut swept) = (Since::default(), looked);
    while leading.now() {
        let now = Instant::now();
        if books.are_whole() && (changed && looked <= now || next <= now) {
            (changed, looked) = (false, now + LOOK);
            let steps;
            (steps, next) = look(&pools.borrow_and_update(), &books.ledger, &mut memories, now);
            for (name, shown, step) in steps {
                let outcome = write(client.clone(), &name, &shown, &step, leading).await;
                let memory = memories.entry(name.clone()).or_default();
                remember(memory, &step, outcome, Instant::now());
                if outcome == Outcome::Written {
                    tell(events, &name, &shown, &step);
                }
                // What comes of it is planned anew.
                next = next.min(Instant::now() + PAUSE);
            }
            continue;
        }
        if books.are_whole() && swept + SWEEP <= now {
            swept = now;
            if let Some(known) = &*machines.borrow() {
                // Until the records of an earlier system are taken over, endpoints say who has what.
                let index = pools.borrow();
                let recorded = |pool: &str| index.shown.get(pool).is_some_and(|shown| shown.records != Some(0));
                let waits = |pool: &str| !index.synced || recorded(pool);
                let found = since.suspects(&books.ledger, &waits, known, conf.borrow().gc.node_gone_after, now);
                suspects.send_if_modified(|told| {
                    let news = **told != found;
                    *told = Arc::new(found);
                    news
                });
            }
            continue;
        }
        let pause = if books.are_whole() && changed { looked } else { next.max(now + LOOK).min(now + IDLE) };
        let pause = if books.are_whole() { pause.min(swept + SWEEP) } else { pause };
        tokio::select! {
            Some(event) = of_allocations.next() => {
                books.allocation(event);
                changed = true;
            }
            Some(event) = of_endpoints.next() => {
                books.endpoint(event);
                changed = true;
            }
            Ok(()) = pools.changed() => changed = true,
            () = leading.changed() => {}
            () = sleep_until(pause) => {}
        }
    }
}

fn events_of(
    client: &Client,
    resource: &ApiResource,
    what: &'static str,
) -> impl Stream<Item = Option<Event<DynamicObject>>> + use<> {
    resilient(watcher(Api::<DynamicObject>::all_with(client.clone(), resource), wanted()), what)
}

/// What is due now, and when to look again.
fn look(
    index: &Index,
    ledger: &Ledger,
    memories: &mut BTreeMap<String, Memory>,
    now: Instant,
) -> (Vec<(String, Shown, Step)>, Instant) {
    let (mut steps, mut next) = (Vec::new(), now + IDLE);
    if !index.synced {
        return (steps, next);
    }
    memories.retain(|name, _| index.shown.contains_key(name));
    for (name, shown) in &index.shown {
        let total = index.pools.get(name).and_then(Known::pool).map_or(0, |pool| pool.addresses.count());
        match plan(name, shown, total, ledger, memories.entry(name.clone()).or_default(), now) {
            Next::Now(step) => steps.push((name.clone(), shown.clone(), step)),
            Next::At(at) => next = next.min(at),
            Next::Nothing => {}
        }
    }
    (steps, next)
}

fn remember(memory: &mut Memory, step: &Step, outcome: Outcome, now: Instant) {
    // Nothing but a condition is said twice; a finalizer waits until the watch has shown it.
    memory.not_before = match (step, outcome) {
        (Step::Tell(_), Outcome::Written) => None,
        (Step::Tell(_) | Step::Guard | Step::LetGo, _) => Some(now + PAUSE),
    };
    if let (Step::Tell(said), Outcome::Written) = (step, outcome) {
        memory.told = Some((now, said.clone()));
    }
}

fn tell(events: &Events, name: &str, shown: &Shown, step: &Step) {
    match step {
        Step::Guard | Step::Tell(super::plan::Said { waits: None, .. }) => {}
        Step::LetGo => tracing::info!(pool = name, "no pod has an address of a deleted pool any more: it goes"),
        Step::Tell(super::plan::Said { waits: Some(waits), .. }) => {
            tracing::info!(pool = name, waits, "the deletion of a pool waits");
            events.warn_of(reference(name, &shown.uid), "DeletionWaits", "Delete", waits);
        }
    }
}

/// The ledger, and whether it is whole yet.
#[derive(Default)]
struct Books {
    ledger: Ledger,
    allocations: Listing<String>,
    endpoints: Listing<(String, String)>,
}

#[derive(Default)]
struct Listing<K> {
    listed: BTreeSet<K>,
    whole: bool,
}

impl Books {
    /// Before that, what is not in them says nothing.
    fn are_whole(&self) -> bool {
        self.allocations.whole && self.endpoints.whole
    }

    /// During a list the old entries stay in force; what the list does not show goes at its end.
    fn allocation(&mut self, event: Option<Event<DynamicObject>>) {
        let Self { ledger, allocations: Listing { listed, whole }, .. } = self;
        match event {
            Some(Event::Init) => listed.clear(),
            Some(Event::InitApply(object)) => {
                listed.insert(object.name_any());
                ledger.put(Allocation::of(&object));
            }
            Some(Event::Apply(object)) => ledger.put(Allocation::of(&object)),
            Some(Event::Delete(object)) => ledger.remove(&object.name_any()),
            Some(Event::InitDone) => {
                ledger.keep(&std::mem::take(listed));
                *whole = true;
            }
            // Without the kind nobody knows who has an address.
            None => *whole = false,
        }
    }

    fn endpoint(&mut self, event: Option<Event<DynamicObject>>) {
        let Self { ledger, endpoints: Listing { listed, whole }, .. } = self;
        let key = |object: &DynamicObject| (object.namespace().unwrap_or_default(), object.name_any());
        match event {
            Some(Event::Init) => listed.clear(),
            Some(Event::InitApply(object)) => {
                listed.insert(key(&object));
                ledger.show(key(&object), Some(Endpoint::of(&object)));
            }
            Some(Event::Apply(object)) => ledger.show(key(&object), Some(Endpoint::of(&object))),
            Some(Event::Delete(object)) => ledger.show(key(&object), None),
            Some(Event::InitDone) => {
                ledger.keep_shown(&std::mem::take(listed));
                *whole = true;
            }
            None => *whole = false,
        }
    }
}
