//! The cloud, as the flows need it.

use crate::{Address, Pod};
use std::future::Future;
use std::time::Duration;

/// Binds addresses to the NICs of nodes. No call is repeated by an implementation, unless the request certainly never left.
pub trait Provider: Send + Sync {
    /// Binds an address.
    fn allocate(&self, call: &Call) -> impl Future<Output = Outcome<Bound>> + Send;
    /// Unbinds an address. One that is not bound is a success.
    fn release(&self, call: &Call) -> impl Future<Output = Outcome<()>> + Send;
}

/// A call for one address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// Which provider: its `serverUrl`.
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
    /// When the caller stops listening, on [`crate::Host::now`]'s clock. Nothing is sent after it.
    pub deadline: Duration,
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Outcome<T> {
    /// A complete 2xx.
    Answered(T),
    /// A complete answer that says no, or a 2xx whose content cannot be used.
    Rejected(String),
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
