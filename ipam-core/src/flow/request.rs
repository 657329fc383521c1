//! What a runtime asks for, and what it gets.

use super::places::{PLACES, QUEUE};
use crate::{Address, Family, Interface, Netns, Pod, PodFacts, Ranges, Route, Step, StoreError, Subnet};
use std::time::Duration;

/// CNI ADD for one interface of a pod.
#[derive(Clone, Debug)]
pub struct Add {
    /// The pod, with the UID that the kubelet uses.
    pub pod: Pod,
    /// The sandbox.
    pub container_id: String,
    /// Interface in the pod.
    pub interface: String,
    /// Attachment (`namespace/name`); empty when the runtime calls without Multus.
    pub network: String,
    /// Network namespace of the sandbox.
    pub netns: Option<Netns>,
    /// Present boot of the machine.
    pub boot_id: String,
    /// On a provider's network: whom to ask, and for which NIC.
    pub parent: Option<Parent>,
    /// No default route through this interface.
    pub clean_gateway: bool,
    /// When the runtime stops waiting, on [`crate::Host::now`]'s clock.
    pub deadline: Duration,
}

/// Where the cloud binds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parent {
    /// The provider's `serverUrl`.
    pub server: String,
    /// MAC of the node's NIC.
    pub mac: String,
}

/// What is chosen for an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    /// At most one of each family.
    pub wanted: Vec<Wanted>,
    /// The pod's wish about the default route; counts instead of the network's.
    pub clean_gateway: Option<bool>,
    /// The pod's own routes, besides those of its pools.
    pub routes: Vec<Route>,
}

/// One address that an interface shall have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Of this family.
    pub family: Family,
    /// From the first of these pools that has one.
    pub candidates: Vec<Candidate>,
}

/// The pools as the process knows them.
pub trait Pools: Sync {
    /// The addresses that an interface of this pod shall have. Asked when it has none yet.
    fn wanted(&self, pod: &PodFacts) -> Result<Chosen, NoPool>;
    /// A pool, whether or not it would be chosen now: addresses stay with their pods while pools are edited.
    fn of(&self, pool: &str) -> Option<Candidate>;
}

/// A pool that a pod may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its name.
    pub pool: String,
    /// Its subnet.
    pub subnet: Subnet,
    /// Its addresses, without those that are excluded or reserved.
    pub addresses: Ranges,
    /// Gateway of the pods.
    pub gateway: Option<Address>,
    /// Further routes.
    pub routes: Vec<Route>,
}

/// CNI DEL for one interface of a sandbox. (The pod is the one that the allocation names.)
#[derive(Clone, Debug)]
pub struct Del {
    /// The sandbox.
    pub container_id: String,
    /// Interface in the pod.
    pub interface: String,
    /// UID of the pod, if the runtime says it: for addresses whose sandbox nobody recorded.
    pub pod_uid: String,
}

/// What an interface has now: the entry of the endpoint.
pub type Answer = Interface;

/// Why an interface gets no address.
#[derive(Debug, thiserror::Error)]
pub enum AddError {
    /// It will be possible; the runtime tries again (CNI code 11).
    #[error("not yet: {0}")]
    NotYet(NotYet),
    /// The pod needs none any more.
    #[error("pod {namespace}/{name} {why}: it gets no address", namespace = .pod.namespace, name = .pod.name)]
    PodNotLive {
        /// The pod.
        pod: Pod,
        /// What became of it.
        why: &'static str,
    },
    /// No pool is for this pod.
    #[error(transparent)]
    NoPool(NoPool),
    /// The pool of an address that the pod has is gone.
    #[error("pool {pool} of {address} is gone: put it back")]
    PoolGone {
        /// Its name.
        pool: String,
        /// What the pod has.
        address: Address,
    },
    /// All pools that are for it are used out.
    #[error("all addresses of {family} are used out in {}", Tried(.pools))]
    Full {
        /// Which kind.
        family: Family,
        /// Those that were tried, with how many addresses each has.
        pools: Vec<(String, u128)>,
    },
    /// No NIC that the cloud could bind to.
    #[error("failed to get parent NIC MAC: {why}")]
    NoParent {
        /// What is wrong with it.
        why: String,
    },
    /// The runtime waits for less than one call of the cloud may take.
    #[error(
        "agentTimeout leaves {left:.1?}, which must be more than iaasNetworkProvider.httpRequestTimeout ({limit:?}): raise ipam.agentTimeout of the network's configuration"
    )]
    AgentTimeout {
        /// What the runtime gives.
        left: Duration,
        /// What a call may take.
        limit: Duration,
    },
    /// Too little time for the cloud.
    #[error("parent budget insufficient: {remaining:?} remaining is less than provider worst-case {worst}s", remaining = .remaining, worst = .worst.as_secs())]
    Budget {
        /// What is left.
        remaining: Duration,
        /// What the cloud may need.
        worst: Duration,
    },
    /// A provider binds IPv4 alone.
    #[error(
        "network {network} is a provider's, which binds IPv4 alone, and the pod would get IPv6 in it: name pools of IPv4 alone"
    )]
    NotIpv4 {
        /// The attachment.
        network: String,
    },
    /// The cloud said no. What was reserved is being given back.
    #[error("the provider refuses to bind {address}: {why}")]
    Provider {
        /// What was to be bound.
        address: Address,
        /// Its answer.
        why: String,
    },
    /// The API server did not do a step.
    #[error("{step} failed")]
    Store {
        /// Which.
        step: Step,
        /// Why.
        #[source]
        source: StoreError,
    },
}

/// Why no pool is for a pod.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct NoPool {
    /// In words for its owner.
    pub text: String,
    /// One that fits is being taken over from an earlier system: it will be possible.
    pub passes: bool,
}

impl NoPool {
    /// As long as nobody changes pods or pools.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), passes: false }
    }
}

/// What is waited for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotYet {
    /// An earlier pod of the name.
    #[error("the endpoint is still that of an earlier pod, on node {0}")]
    OtherEndpoint(String),
    /// The own address.
    #[error("{address} is being released{}", Still(.why.as_deref()))]
    Releasing {
        /// Which.
        address: Address,
        /// What was last said to this process, which asks again.
        why: Option<String>,
    },
    /// A retained address.
    #[error("{address} of this pod is still held on node {node}")]
    HeldElsewhere {
        /// Which.
        address: Address,
        /// Where.
        node: String,
    },
    /// A retained address.
    #[error("the sandbox that has {0} is still there")]
    OldSandbox(Address),
    /// The cloud.
    #[error("the provider gave no answer for {address}: {why}")]
    Unanswered {
        /// What was to be bound.
        address: Address,
        /// What happened.
        why: String,
    },
    /// The cloud.
    #[error("the provider cannot be asked for {address}: {why}")]
    Unreached {
        /// What was to be bound.
        address: Address,
        /// What is in the way.
        why: String,
    },
    /// It was bound elsewhere.
    #[error("{address} of this pod may be bound at provider {server}, which is not configured any more")]
    Unserved {
        /// Which.
        address: Address,
        /// Where.
        server: String,
    },
    /// This process ends.
    #[error("the node agent ends while {0}")]
    Stopping(Step),
    /// The binding was lost; the address is bound anew.
    #[error("{0} has to be bound anew")]
    BoundAnew(Address),
    /// Somebody else wrote.
    #[error("{0} met a change by somebody else")]
    Changed(Step),
    /// This process has not read its allocations.
    #[error("the node's allocations have not been read")]
    NotSynced,
    /// The pool has as many as may work on it or wait for it.
    #[error("too many requests wait for pool {0}: {PLACES} are at work, and as many wait as may, {QUEUE}")]
    Crowded(String),
    /// The queue is full.
    #[error("too many requests are waiting")]
    Busy,
    /// One flow at a time for an interface of a pod.
    #[error("an earlier request for this interface is still running")]
    Another,
}

struct Still<'a>(Option<&'a str>);

impl std::fmt::Display for Still<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.map_or(Ok(()), |why| write!(f, "; the provider, which is asked again, did not let go of it: {why}"))
    }
}

struct Tried<'a>(&'a [(String, u128)]);

impl std::fmt::Display for Tried<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, (pool, count)) in self.0.iter().enumerate() {
            write!(f, "{}{pool} ({count} addresses)", if at == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl AddError {
    /// Whether the runtime should try again (CNI code 11).
    #[must_use]
    pub fn again(&self) -> bool {
        match self {
            Self::NotYet(_) => true,
            Self::NoPool(none) => none.passes,
            Self::Store { source, .. } => !matches!(source, StoreError::Refused(_)),
            _ => false,
        }
    }
}
