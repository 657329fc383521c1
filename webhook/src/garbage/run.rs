//! Looks at suspects while this controller leads.

use super::host::Elsewhere;
use super::looks::Looks;
use super::pauses::Pauses;
use super::report::{Looked, Metrics, Pass};
use crate::events::Events;
use crate::lease::Leading;
use crate::nodes::Machines;
use crate::pools::Index;
use crate::usage::{Suspect, Suspects, Suspicion, Wanted};
use ipam_core::http::HttpProvider;
use ipam_core::{
    Address, Allocation, Asked, Flows, Me, Node, Pod, PodFacts, Provider, ReleaseRequest, Stopped, Store, StoreError,
    Stored, Successor, Verdict,
};
use k8s_api::conf::{Conf, Gc};
use kube::Client;
use runtime::Chain;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use store::{KubeStore, Retain, Retained};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

/// One request to the API server.
const REQUEST: Duration = Duration::from_secs(10);
/// Looks that begin at a time: each is two to four requests, and nobody waits for it.
const AT_ONCE: usize = 16;
/// Between two looks at who is due.
const TURN: Duration = Duration::from_secs(1);

/// What it works with.
pub(crate) struct Inputs {
    pub(crate) client: Client,
    pub(crate) suspects: watch::Receiver<Arc<Suspects>>,
    pub(crate) machines: watch::Receiver<Option<Machines>>,
    pub(crate) pools: watch::Receiver<Index>,
    pub(crate) conf: watch::Receiver<Conf>,
    pub(crate) provider: Arc<HttpProvider>,
    pub(crate) leading: Leading,
    pub(crate) events: Events,
    pub(crate) metrics: Metrics,
}

/// Runs for ever.
pub(crate) async fn collect(mut inputs: Inputs) -> Result<(), Infallible> {
    loop {
        inputs.leading.begins().await;
        let mut leading = inputs.leading.clone();
        // What is on its way when the lease goes is dropped: nothing is sent any more.
        tokio::select! {
            biased;
            () = leading.ends() => {}
            never = lead(&mut inputs) => match never {},
        }
        inputs.metrics.suspects.set(0);
    }
}

async fn lead(inputs: &mut Inputs) -> Infallible {
    let Inputs { client, suspects, machines, pools, conf, provider, leading, events, metrics } = inputs;
    let of_conf = conf.clone();
    let retain = move || {
        let conf = of_conf.borrow();
        Retained { stateful_sets: conf.stateful_sets, machines: conf.machines }
    };
    let collector = Collector::new(client.clone(), Arc::clone(provider), leading.clone(), Arc::new(retain));
    let mut pauses = Pauses::default();
    let mut looks = Looks::new(AT_ONCE);
    let mut turns = interval(TURN);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut pass = Pass::default();
    let mut due = VecDeque::new();
    loop {
        while looks.has_room()
            && let Some((suspect, why)) = due.pop_front()
        {
            // As of now: it may have been due for a while.
            let (gc, known) = (conf.borrow().gc, machines.borrow().clone().unwrap_or_default());
            let collector = &collector;
            looks.begin(suspect, why, async move |suspect, why| {
                let looked = collector.look(&suspect, &why, &known, gc).await;
                (suspect, why, looked.unwrap_or_else(Looked::Failed))
            });
        }
        tokio::select! {
            (suspect, why, looked) = looks.next() => {
                pass.add(metrics, &suspect, &why, &looked);
                pauses.looked(suspect, why, tokio::time::Instant::now());
            }
            _ = turns.tick() => {
                std::mem::take(&mut pass).tell(events, &pools.borrow());
                let suspected = Arc::clone(&suspects.borrow_and_update());
                metrics.suspects.set(i64::try_from(suspected.len()).unwrap_or(i64::MAX));
                collector.forget_others(&suspected, &looks);
                due = pauses.due(&suspected, tokio::time::Instant::now()).into();
            }
        }
    }
}

/// The flows of a controller.
struct Collector {
    store: KubeStore,
    flows: Flows<KubeStore, Arc<HttpProvider>, Elsewhere>,
    provider: Arc<HttpProvider>,
    leading: Leading,
}

impl Collector {
    fn new(client: Client, provider: Arc<HttpProvider>, leading: Leading, retain: Retain) -> Self {
        let store = KubeStore::unwatched(client, REQUEST, Arc::new(runtime::since_boot), retain);
        let me = Me { releaser: format!("{:032x}", runtime::random()), node: Node::default() };
        Self { flows: Flows::new(store.clone(), Arc::clone(&provider), Elsewhere, me), store, provider, leading }
    }

    async fn look(&self, suspect: &Suspect, why: &Suspicion, machines: &Machines, gc: Gc) -> Result<Looked, String> {
        // A process that was stopped for a while may come here before it hears that the lease has run out.
        if !self.leading.now() {
            return Ok(Looked::Waits);
        }
        let frees = gc.enabled && !gc.dry_run;
        match suspect {
            Suspect::Endpoint(namespace, pod) => {
                let removed = frees && self.store.remove_endpoint(namespace, pod).await.map_err(|why| told(&why))?;
                Ok(if removed { Looked::EndpointRemoved } else { Looked::Kept })
            }
            Suspect::Allocation(_) if !gc.enabled && !why.is_urgent() => Ok(Looked::Kept),
            Suspect::Allocation(address) => {
                let looked = self.look_at(*address, why, machines, gc).await?;
                if looked != Looked::Waits {
                    self.store.forget(*address);
                }
                Ok(looked)
            }
        }
    }

    async fn look_at(&self, address: Address, why: &Suspicion, machines: &Machines, gc: Gc) -> Result<Looked, String> {
        let Some(stored) = self.store.look(address).await.map_err(|why| told(&why))? else { return Ok(Looked::Kept) };
        if let Some(request) = &stored.value.release_request {
            return self.carry_out(&stored.value, request).await;
        }
        if let Some(server) = self.unserved(&stored.value) {
            return Ok(Looked::Unserved { pod: stored.value.pod.name.clone(), server });
        }
        let Allocation { pod, node, .. } = &stored.value;
        let (of, on) = (format!("{}/{}", pod.namespace, pod.name), node.name.clone());
        let bound = stored.value.provider.is_some();
        if why.wanted != Wanted::No
            && let Some(to) = self.successor(&stored, machines).await.map_err(|why| told(&why))?
        {
            self.flows.move_to(address, &to, why.node_gone).await.map_err(|stopped: Stopped| told(&stopped))?;
            let moved = self.store.of_address(address).is_some_and(|now| now.value.node.name == to.node.name);
            return Ok(if moved { Looked::Moved { pod: of, to: to.node.name } } else { Looked::Waits });
        }
        if why.astray && stored.value.held() {
            self.flows.follow(&stored.value).await.map_err(|stopped| told(&stopped))?;
        }
        // While its node is there, its agent sees to it; what a provider took from the node's NIC nothing there uses.
        if !gc.enabled || !(why.node_gone || bound) {
            return Ok(Looked::Kept);
        }
        if gc.dry_run && stored.value.held() {
            let verdict = self.flows.judge(&stored, why.node_gone).await;
            return Ok(match verdict.map_err(|stopped| told(&stopped))? {
                Verdict::Kept => Looked::Kept,
                Verdict::Waits => Looked::Waits,
                Verdict::Garbage => Looked::WouldFree { pod: of, node: on },
            });
        }
        let looked = self.flows.collect(address, why.node_gone).await.map_err(|stopped| told(&stopped))?;
        Ok(match (self.store.of_address(address), looked) {
            (None, _) => Looked::Freed { pod: of, node: on },
            (Some(_), ipam_core::Looked::Waits) => Looked::Waits,
            (Some(_), ipam_core::Looked::Done) => Looked::Kept,
        })
    }

    async fn carry_out(&self, asked: &Allocation, request: &ReleaseRequest) -> Result<Looked, String> {
        // Only the provider's word ends a binding.
        if let Some(server) = self.unserved(asked).filter(|_| !request.abandon) {
            return Ok(Looked::Unserved { pod: asked.pod.name.clone(), server });
        }
        let done = self.flows.carry_out(asked.address).await.map_err(|stopped| told(&stopped))?;
        let pod = format!("{}/{}", asked.pod.namespace, asked.pod.name);
        Ok(match done {
            Asked::Nothing => Looked::Kept,
            Asked::Waits => Looked::Waits,
            Asked::Answered(done) => Looked::Asked { done, pod, by: request.by.clone() },
        })
    }

    /// Whom nobody may ask to let go of it.
    fn unserved(&self, allocation: &Allocation) -> Option<String> {
        let server = allocation.provider.as_ref().map(|binding| &binding.server);
        server.filter(|server| !self.provider.serves(server)).cloned()
    }

    /// The pod that has the name now, or the machine, on another node, if it lives.
    async fn successor(
        &self,
        stored: &Stored<Allocation>,
        machines: &Machines,
    ) -> Result<Option<Successor>, StoreError> {
        let Allocation { pod, node, owner, .. } = &stored.value;
        let found = if let Some(machine) = owner.as_ref().filter(|owner| owner.is_machine()) {
            self.store.pods_of(&pod.namespace, machine).await?
        } else {
            let named = self.store.pod(&pod.namespace, &pod.name).await?;
            named.map(|facts| (pod.name.clone(), facts)).into_iter().collect()
        };
        let lives = |facts: &PodFacts| !facts.is(&pod.uid) && facts.lives_as(&facts.uid) && !facts.node.is_empty();
        let mut living = found.into_iter().filter(|(_, facts)| lives(facts));
        // Of two of a machine nobody can tell whose it is.
        let (Some((name, facts)), None) = (living.next(), living.next()) else { return Ok(None) };
        let Some(machine) = machines.get(&facts.node).filter(|_| facts.node != node.name) else { return Ok(None) };
        Ok(Some(Successor {
            pod: Pod { uid: facts.uid, name, namespace: pod.namespace.clone() },
            node: Node { name: facts.node, uid: machine.uid.clone(), machine_id: machine.id.clone() },
        }))
    }

    /// What a look has shown of who is suspect no more.
    fn forget_others(&self, suspects: &Suspects, looks: &Looks<'_>) {
        for address in self.store.addresses() {
            let suspect = Suspect::Allocation(address);
            if !suspects.contains_key(&suspect) && !looks.runs(&suspect) {
                self.store.forget(address);
            }
        }
    }
}

fn told(error: &dyn std::error::Error) -> String {
    Chain(error).to_string()
}
