//! What the checks share: addresses nobody has yet, pods, and what may be bound.

use super::answer::{self, Got};
use super::caller::{Caller, Reply};
use super::cases::Short;
use crate::wire::Operation;
use ipam_core::{Address, Subnet};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// How much later than its budget an answer is still read, so that "late" can be told from "never".
const PATIENCE: Duration = Duration::from_millis(500);
/// What our client waits after a budget before it takes a call for settled.
pub(super) const SETTLE: Duration = Duration::from_secs(2);
/// Releases of what may be bound are tried so often.
const TRIES: u32 = 3;

/// Where addresses are bound. Nobody else may use them: the checks release what they name.
#[derive(Clone, Debug)]
pub struct Place {
    /// A node that the provider knows.
    pub node: String,
    /// MAC address of its NIC.
    pub parent: String,
    /// A subnet that the provider knows.
    pub subnet: Subnet,
    /// The first of the addresses that are used; those that follow are, too.
    pub first: Address,
}

/// How long things take.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Budget of a usual call.
    pub budget: Duration,
    /// Budget of calls that are to come to their end.
    pub small_budget: Duration,
    /// How many of them are sent at once.
    pub burst: u16,
    /// How long is watched for bindings that come after their budget.
    pub watch: Duration,
}

pub(super) struct Session {
    caller: Caller,
    pub(super) place: Place,
    pub(super) bounds: Bounds,
    inner: Mutex<Inner>,
}

struct Inner {
    next: Option<Address>,
    pods: u32,
    may_be_bound: BTreeSet<Address>,
    /// Addresses that were bound for us at some time.
    ours: BTreeSet<Address>,
    /// Addresses of calls that have no complete answer, and when nobody works on them any more.
    unsettled: BTreeMap<Address, Instant>,
    answered_well: bool,
    /// Somebody else has an address of those that we use.
    crowded: bool,
    late: Vec<String>,
    calls: usize,
}

/// A pod that does not exist.
#[derive(Clone, Debug)]
pub(super) struct Pod(u32);

impl Pod {
    pub(super) fn name(&self) -> String {
        format!("provider-check-{}", self.0)
    }

    pub(super) fn fields(&self) -> Value {
        let Self(number) = self;
        json!({
            "podName": self.name(),
            "podNamespace": "provider-check",
            "podUID": format!("00000000-0000-4000-8000-{number:012}"),
        })
    }
}

/// Sets a field of a body.
pub(super) fn set(body: &mut Value, field: &str, value: Value) {
    if let Some(fields) = body.as_object_mut() {
        fields.insert(field.to_owned(), value);
    }
}

impl Session {
    pub(super) fn new(caller: Caller, place: Place, bounds: Bounds) -> Self {
        let inner = Inner {
            next: Some(place.first),
            pods: 0,
            may_be_bound: BTreeSet::new(),
            ours: BTreeSet::new(),
            unsettled: BTreeMap::new(),
            answered_well: false,
            crowded: false,
            late: Vec::new(),
            calls: 0,
        };
        Self { caller, place, bounds, inner: Mutex::new(inner) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An address that no check has used.
    pub(super) fn address(&self) -> Result<Address, Short> {
        let mut inner = self.lock();
        let next = inner.next.filter(|address| self.place.subnet.contains(*address));
        let next = next.ok_or_else(|| Short::skip("the subnet has no more addresses; choose a larger one"))?;
        inner.next = next.next();
        Ok(next)
    }

    pub(super) fn pod(&self) -> Pod {
        let mut inner = self.lock();
        inner.pods += 1;
        Pod(inner.pods)
    }

    /// Whether some allocate was answered 2xx.
    pub(super) fn was_answered_well(&self) -> bool {
        self.lock().answered_well
    }

    /// Whether somebody else has an address of those that we use.
    pub(super) fn is_crowded(&self) -> bool {
        self.lock().crowded
    }

    /// Calls that were answered after their budget or not at all, and how many there were.
    pub(super) fn late(&self) -> (Vec<String>, usize) {
        let inner = self.lock();
        (inner.late.clone(), inner.calls)
    }

    pub(super) fn allocate_body(&self, pod: &Pod, addresses: &[Address]) -> Value {
        let Place { node, parent, subnet, .. } = &self.place;
        let asked = addresses.iter().map(
            |address| json!({"ipAddress": address.to_string(), "subnet": subnet.to_string(), "parentNicMac": parent}),
        );
        let mut body = pod.fields();
        set(&mut body, "nodeName", json!(node));
        set(&mut body, "iaasIPsAllocationRequest", asked.collect());
        body
    }

    pub(super) fn release_body(&self, pod: &Pod, address: Address) -> Value {
        let Place { node, parent, subnet, .. } = &self.place;
        let mut body = pod.fields();
        set(&mut body, "nodeName", json!(node));
        set(&mut body, "parentNicMac", json!(parent));
        set(&mut body, "subnet", json!(subnet.to_string()));
        set(&mut body, "ipAddress", json!(address.to_string()));
        body
    }

    /// Asks for addresses, which may be bound from now on.
    pub(super) async fn allocate(&self, body: &Value, addresses: &[Address], budget: Duration) -> Reply {
        let before = {
            let mut inner = self.lock();
            let before = inner.may_be_bound.clone();
            inner.may_be_bound.extend(addresses);
            let settled = Instant::now() + budget + SETTLE;
            inner.unsettled.extend(addresses.iter().map(|address| (*address, settled)));
            before
        };
        let reply = self.call(Operation::Allocate, body, budget).await;
        let mut inner = self.lock();
        if reply.good().is_some() {
            inner.answered_well = true;
            inner.ours.extend(addresses);
        }
        if reply.is_settled() {
            inner.unsettled.retain(|address, _| !addresses.contains(address));
        }
        // Of an address that somebody else has nothing is ours to release.
        let strange = reply.is_conflict() && !addresses.iter().any(|address| inner.ours.contains(address));
        inner.crowded |= strange;
        if strange || !reply.left() {
            inner.may_be_bound.retain(|address| before.contains(address) || !addresses.contains(address));
        }
        drop(inner);
        reply
    }

    /// Asks for addresses and wants them.
    pub(super) async fn bind(&self, pod: &Pod, addresses: &[Address]) -> Result<Vec<Got>, Short> {
        let body = self.allocate_body(pod, addresses);
        let reply = self.allocate(&body, addresses, self.bounds.budget).await;
        let asked = || format!("allocate-ips {body}");
        let strange = |address: &Address| !self.lock().may_be_bound.contains(address);
        if reply.is_conflict() && addresses.iter().all(strange) {
            return Err(Short::fail(
                asked(),
                format!("{reply}; somebody has this address: choose others with --first"),
            ));
        }
        let text = reply.good().ok_or_else(|| Short::fail(asked(), &reply))?;
        answer::read(text, addresses).map_err(|why| Short::fail(asked(), format!("{reply}: {why}")))
    }

    /// Releases an address with this body. Only a 2xx says that it is not bound any more.
    pub(super) async fn release(&self, body: &Value, address: Address) -> Result<String, Short> {
        let reply = self.call(Operation::Release, body, self.bounds.budget).await;
        if reply.good().is_none() {
            return Err(Short::fail(format!("release-ip {body}"), &reply));
        }
        let mut inner = self.lock();
        if inner.unsettled.get(&address).is_none_or(|settled| *settled <= Instant::now()) {
            inner.unsettled.remove(&address);
            inner.may_be_bound.remove(&address);
        }
        Ok(reply.to_string())
    }

    /// Releases addresses of a pod, as a pod's end does.
    pub(super) async fn free(&self, pod: &Pod, addresses: &[Address]) -> Result<(), Short> {
        for address in addresses {
            self.release(&self.release_body(pod, *address), *address).await?;
        }
        Ok(())
    }

    async fn call(&self, operation: Operation, body: &Value, budget: Duration) -> Reply {
        let reply = self.caller.call(operation, body, budget, budget + PATIENCE).await;
        let mut inner = self.lock();
        inner.calls += 1;
        if reply.took > budget {
            let name = operation.name();
            inner.late.push(format!("{name} with {budget:?}: {reply} after {:?}", reply.took));
        }
        reply
    }

    /// Releases what may be bound; what then still may be. A call that was left without its answer may bind until it is settled,
    /// so that is waited for.
    pub(super) async fn clean_up(&self) -> Vec<String> {
        let unsettled = self.lock().unsettled.values().max().copied();
        if let Some(settled) = unsettled {
            let wait = settled.saturating_duration_since(Instant::now());
            tracing::info!(
                ?wait,
                "a call had no complete answer: waiting until it is settled, then releasing its addresses"
            );
            sleep_until(settled).await;
        }
        for _ in 0..TRIES {
            let left = self.lock().may_be_bound.clone();
            for address in left {
                // What fails stays in the list.
                let _ = self.release(&self.release_body(&Pod(0), address), address).await;
            }
            if self.lock().may_be_bound.is_empty() {
                break;
            }
            sleep(Duration::from_millis(100)).await;
        }
        self.lock().may_be_bound.iter().map(Address::to_string).collect()
    }
}
