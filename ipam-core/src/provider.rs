//! The cloud, as the flows need it.

mod answer;
mod contract;
mod mac;
pub(crate) mod text;

pub use answer::{BadAnswer, bound};
pub use contract::{
    ALLOCATE, AllocateAnswer, AllocateItem, AllocateRequest, BUDGET_HEADER, BoundItem, RELEASE,
    ReleaseRequest as Release,
};

use crate::{Address, Pod};
use std::future::Future;
use std::time::Duration;

/// Binds addresses to the NICs of nodes. No call is repeated by an implementation, unless the request certainly never left.
pub trait Provider: Send + Sync {
    /// Binds an address.
    fn allocate(&self, call: &Call) -> impl Future<Output = Outcome<Bound>> + Send;
    /// Unbinds an address. One that is not bound is a success.
    fn release(&self, call: &Call) -> impl Future<Output = Outcome<()>> + Send;
    /// How long one call may take at the most (`httpRequestTimeout`), as of now.
    fn limit(&self) -> Duration;
    /// Whether this provider, by its identity ([`Call::server`]), may be called: it is the configured one, or a former one
    /// that is named.
    fn serves(&self, server: &str) -> bool;
}

/// A call for one address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// Which provider: the identity that the allocation records.
    pub server: String,
    /// The pod.
    pub pod: Pod,
    /// The node's name.
    pub node: String,
    /// NIC of the node that carries it.
    pub parent_nic_mac: String,
    /// The address.
    pub address: Address,
    /// Its subnet.
    pub subnet: String,
    /// When the caller stops listening.
    pub deadline: Deadline,
}

/// When a caller stops listening to a call, and why then. Nothing is sent after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Deadline {
    /// On [`crate::Host::now`]'s clock.
    pub at: Duration,
    /// The limit of one call; none if the caller's own time ends before that.
    pub limit: Option<Duration>,
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Outcome<T> {
    /// A complete 2xx.
    Answered(T),
    /// A complete answer that says no, or a 2xx whose content cannot be used.
    Rejected(String),
    /// The request never left: the provider knows nothing of it.
    Unsent(String),
    /// No complete answer, or 408, 499, 502, 503, 504, 3xx: it may have been done, or be done later.
    Unknown(String),
}

/// What the cloud says of a bound address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bound {
    /// MAC address of the interface; none keeps what the endpoint had.
    pub mac: Option<String>,
    /// VLAN id, 1 to 4094; none keeps what the endpoint had.
    pub vlan: Option<u16>,
}

impl Deadline {
    /// From `now` on: one call's limit, or what is left of the caller's time if that is less.
    #[must_use]
    pub fn new(now: Duration, limit: Duration, left: Option<Duration>) -> Self {
        match left {
            Some(left) if left < limit => Self { at: now.saturating_add(left), limit: None },
            _ => Self { at: now.saturating_add(limit), limit: Some(limit) },
        }
    }
}

impl<P: Provider> Provider for std::sync::Arc<P> {
    async fn allocate(&self, call: &Call) -> Outcome<Bound> {
        P::allocate(self, call).await
    }

    async fn release(&self, call: &Call) -> Outcome<()> {
        P::release(self, call).await
    }

    fn limit(&self) -> Duration {
        P::limit(self)
    }

    fn serves(&self, server: &str) -> bool {
        P::serves(self, server)
    }
}
