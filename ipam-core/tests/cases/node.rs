//! Nodes with their agents, a controller, and what runtimes ask of them.

use crate::side::Side;
use crate::world::Shared;
use futures::task::noop_waker_ref;
use ipam_core::{
    Add, AddError, Address, Answer, Candidate, Chosen, Del, Failed, Family, Flows, Me, NoPool, Node, Parent, Pod,
    PodFacts, Pools, Range, Ranges, Wanted,
};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

pub(crate) const PROVIDER: &str = "http://provider";

pub(crate) type Flow = Flows<Side, Side, Side>;

/// Who asks: `name` of `uid` in sandbox `container`.
#[derive(Clone, Debug)]
pub(crate) struct Who {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) container: String,
    pub(crate) interface: &'static str,
    /// On a network whose addresses a provider binds.
    pub(crate) provided: bool,
}

pub(crate) fn who(name: &str, uid: &str, container: &str) -> Who {
    let [name, uid, container] = [name, uid, container].map(str::to_owned);
    Who { name, uid, container, interface: "net1", provided: false }
}

/// A process as it starts: the controller's has no node.
pub(crate) fn start(shared: &Shared, node: &str) -> Flow {
    let side = Side::new(shared, node);
    let node = Node { name: node.to_owned(), ..Node::default() };
    let releaser = format!("start-{}", shared.world().number());
    Flows::new(side.clone(), side.clone(), side, Me { releaser, node })
}

/// One pool of so many addresses.
pub(crate) struct Pool(pub(crate) u32);

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

/// What the plugin asks an agent for.
pub(crate) fn asked(shared: &Shared, who: &Who) -> Add {
    Add {
        pod: Pod { namespace: "default".to_owned(), name: who.name.clone(), uid: who.uid.clone() },
        container_id: who.container.clone(),
        interface: who.interface.to_owned(),
        network: "default/net".to_owned(),
        netns: None,
        boot_id: "boot".to_owned(),
        parent: who.provided.then(|| Parent { server: PROVIDER.into(), mac: "02:00:00:00:00:01".into() }),
        clean_gateway: false,
        deadline: shared.world().now + Duration::from_secs(100),
    }
}

pub(crate) async fn add(flows: &Flow, shared: &Shared, who: &Who, pool: &Pool) -> Result<Answer, Failed> {
    flows.add(&asked(shared, who), pool).await
}

/// Tries once, and gives back what has to be given back.
pub(crate) fn tried(shared: &Shared, flows: &Flow, add: &Add, pools: &dyn Pools) -> Result<Answer, AddError> {
    alone(shared, async {
        match flows.add(add, pools).await {
            Ok(answer) => Ok(answer),
            Err(Failed { error, undo }) => {
                if let Some(undo) = undo {
                    let _ = flows.undo(undo).await;
                }
                Err(error)
            }
        }
    })
    .expect("it ends")
}

/// As an agent does it: what a failed ADD leaves is given back after the answer.
pub(crate) async fn add_and_undo(flows: &Flow, shared: &Shared, who: &Who, pool: &Pool) -> Result<Address, String> {
    match add(flows, shared, who, pool).await {
        Ok(answer) => Ok(answer.addresses.first().expect("one").address),
        Err(Failed { error, undo }) => {
            if let Some(undo) = undo {
                let _ = flows.undo(undo).await;
            }
            Err(error.to_string())
        }
    }
}

pub(crate) async fn del(flows: &Flow, who: &Who) {
    let _ = flows
        .del(&Del {
            container_id: who.container.clone(),
            interface: who.interface.to_owned(),
            pod_uid: who.uid.clone(),
        })
        .await;
}

/// A flow on its way.
pub(crate) type Going<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Flows side by side, to their ends; none of one that died.
pub(crate) fn together<T>(shared: &Shared, flows: Vec<Going<'_, T>>) -> Vec<Option<T>> {
    let mut ended: Vec<Option<T>> = flows.iter().map(|_| None).collect();
    let mut running: Vec<_> = flows.into_iter().enumerate().collect();
    let mut context = Context::from_waker(noop_waker_ref());
    while !running.is_empty() {
        let before = shared.world().happened;
        let first = usize::try_from(shared.world().number() >> 33).expect("31 bits") % running.len();
        running.rotate_left(first);
        running.retain_mut(|(at, flow)| match flow.as_mut().poll(&mut context) {
            Poll::Ready(value) => {
                ended[*at] = Some(value);
                shared.world().happened += 1;
                false
            }
            Poll::Pending => true,
        });
        let mut world = shared.world();
        if world.happened == before {
            // Nothing happens before the first of the sleepers wakes.
            let Some(until) = world.sleepers.values().min().copied().filter(|until| *until > world.now) else { break };
            world.now = until;
            world.happened += 1;
        }
    }
    ended
}

/// Flows side by side, for so long; those that have not ended by then go on the next time.
pub(crate) fn spend(shared: &Shared, flows: &mut Vec<Going<'_, ()>>, time: Duration) {
    let end = shared.world().now + time;
    let mut context = Context::from_waker(noop_waker_ref());
    loop {
        let before = shared.world().happened;
        flows.retain_mut(|flow| flow.as_mut().poll(&mut context).is_pending());
        let mut world = shared.world();
        if world.happened == before {
            let now = world.now;
            if now >= end {
                return;
            }
            let next = world.sleepers.values().copied().filter(|until| *until > now).min();
            world.now = next.unwrap_or(end).min(end);
        }
    }
}

pub(crate) fn alone<'a, T>(shared: &Shared, flow: impl Future<Output = T> + 'a) -> Option<T> {
    let flow: Going<'a, T> = Box::pin(flow);
    together(shared, vec![flow]).pop().flatten()
}

/// Everything that nobody asks for: each agent and the controller look at all that there is, for some minutes.
pub(crate) fn look_after(shared: &Shared, agents: &[&Flow], controller: &Flow, node_gone: bool) {
    for _ in 0..8 {
        for address in shared.addresses() {
            for agent in agents {
                alone(shared, agent.reconcile(address));
            }
            alone(shared, controller.collect(address, node_gone));
        }
        shared.pass(Duration::from_mins(1));
    }
}
