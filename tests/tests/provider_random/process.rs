//! Agents and a controller, each with the client that is shipped. One that dies takes all its flows along.

use crate::side::Side;
use crate::world::{Shared, stateful_set};
use futures::channel::oneshot;
use ipam_core::http::{HttpProvider, Servers, Target};
use ipam_core::{
    Add, Address, Candidate, Chosen, Family, Flows, Me, NoPool, Node, PodFacts, Pools, Range, Ranges, Successor, Wanted,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;

pub type Flow = Flows<Side, HttpProvider, Side>;

/// `httpRequestTimeout`: what is unknown has settled two seconds after it. Longer than the pauses of those who try again.
const LIMIT: Duration = Duration::from_secs(1);

pub struct Process {
    shared: Shared,
    url: String,
    node: Option<String>,
    now: Mutex<Now>,
}

struct Now {
    flows: Arc<Flow>,
    tasks: JoinSet<()>,
    starts: u64,
}

/// One pool, with few more addresses than there are pods.
pub struct Pool(pub u32);

impl Pools for Pool {
    fn wanted(&self, _: &PodFacts) -> Result<Chosen, NoPool> {
        let wanted = Wanted { family: Family::V4, candidates: self.of("pool").into_iter().collect() };
        Ok(Chosen { wanted: vec![wanted], ..Chosen::default() })
    }
    fn of(&self, pool: &str) -> Option<Candidate> {
        let first: Address = "10.0.0.1".parse().expect("an address");
        let last = Address::new(Family::V4, first.number() + u128::from(self.0) - 1).expect("an address");
        let addresses: Ranges = Range::new(first, last).into_iter().collect();
        let subnet = "10.0.0.0/16".parse().expect("a subnet");
        Some(Candidate { pool: pool.to_owned(), subnet, addresses, gateway: None, routes: Vec::new() })
    }
}

fn start(shared: &Shared, url: &str, node: Option<&str>, seed: u64) -> Arc<Flow> {
    let provider = HttpProvider::new(runtime::since_boot, Box::new(|_, _, _| ()));
    let target = Target { url: url.parse().expect("a URL"), credentials: None, insecure_skip_verify: false };
    provider.set(Servers { limit: LIMIT, named: BTreeMap::from([(url.to_owned(), target)]) });
    let side = Side::new(shared, node, seed);
    let me = Me {
        releaser: format!("start-{seed}"),
        node: Node { name: node.unwrap_or_default().to_owned(), ..Node::default() },
    };
    Arc::new(Flows::new(side.clone(), provider, side, me))
}

impl Process {
    pub fn start(shared: &Shared, url: &str, node: Option<&str>, seed: u64) -> Self {
        let now = Now { flows: start(shared, url, node, seed), tasks: JoinSet::new(), starts: seed };
        Self { shared: shared.clone(), url: url.to_owned(), node: node.map(str::to_owned), now: Mutex::new(now) }
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs until it ends, whoever waits for it, or until the process dies: then nothing is heard of it.
    pub fn run<F>(&self, act: impl FnOnce(Arc<Flow>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut now = self.now();
        let flow = act(Arc::clone(&now.flows));
        now.tasks.spawn(flow);
        while let Some(ended) = now.tasks.try_join_next() {
            if let Err(error) = ended
                && error.is_panic()
            {
                self.shared.world().broken.push(format!("a flow panicked: {error}"));
            }
        }
    }

    /// Dies between any two steps of all its flows, and starts again.
    pub fn die(&self) {
        let mut now = self.now();
        now.starts += 1000;
        now.tasks.abort_all();
        now.flows = start(&self.shared, &self.url, self.node.as_deref(), now.starts);
    }

    /// As an agent does it: what a failed ADD leaves is given back after the answer. None if the agent died.
    pub async fn add(&self, add: Add, pool: u32) -> Option<Result<ipam_core::Interface, String>> {
        let (tell, told) = oneshot::channel();
        self.run(async move |flows| match flows.add(&add, &Pool(pool)).await {
            Ok(given) => drop(tell.send(Ok(given))),
            Err(failed) => {
                drop(tell.send(Err(failed.error.to_string())));
                if let Some(undo) = failed.undo {
                    let _ = flows.undo(undo).await;
                }
            }
        });
        told.await.ok()
    }

    /// What an agent does by itself.
    pub fn reconcile(&self) {
        for address in self.addresses() {
            self.run(async move |flows| drop(flows.reconcile(address).await));
        }
    }

    /// What a controller does by itself.
    pub fn collect(&self) {
        for address in self.addresses() {
            let (held, successor) = {
                let world = self.shared.world();
                let Some(held) = world.allocations.get(&address).map(|one| one.value.clone()) else { continue };
                let pod = world.pods.get(&held.pod.name).filter(|pod| pod.owner.as_ref() == Some(&stateful_set()));
                let pod = pod.filter(|pod| pod.lives_as(&pod.uid) && pod.node != held.node.name);
                let successor = pod.map(|pod| Successor {
                    pod: ipam_core::Pod { uid: pod.uid.clone(), ..held.pod.clone() },
                    node: Node { name: pod.node.clone(), ..Node::default() },
                });
                (held, successor)
            };
            self.run(async move |flows| {
                match successor {
                    Some(to) => drop(flows.move_to(address, &to, false).await),
                    None if held.held() => drop(flows.follow(&held).await),
                    None => {}
                }
                drop(flows.collect(address, false).await);
            });
        }
    }

    fn addresses(&self) -> Vec<Address> {
        use ipam_core::Store;
        let flows = Arc::clone(&self.now().flows);
        flows.store().addresses()
    }
}
