//! Addresses: sets of them, and who has which. Pure: no client, no socket, no clock but what is handed in.
//!
//! ```text
//! "172.91.0.0/24" ──> Subnet ───> Range ──┐
//! "172.91.0.7", "172.91.0.7-172.91.0.9" ──┴──> Ranges: contains, union, difference, intersection, count
//!
//! pools (Catalog) x who names them (Source) x what they ask (Rules) ── choose ──> Wanted ── pick ──> an Address
//!
//! Allocation (who has an address), Endpoint (what a pod has) ── flow: add, del, release, reconcile, take over, move
//!                                                               over Store (API server), Provider (cloud), Host (machine)
//! ```
//!
//! A set is kept as the ends of its ranges and never written out: a `/8` costs what one address does. What two sets have
//! in common, or one has beyond the other, takes a time that grows with their ranges, not with their addresses.

mod address;
mod allocation;
mod choice;
mod endpoint;
mod flow;
mod host;
#[cfg(feature = "http")]
pub mod http;
mod pick;
mod provider;
mod range;
mod ranges;
mod store;
mod subnet;

pub use address::{Address, Family, InvalidAddress};
pub use allocation::{
    Allocation, Binding, Netns, Node, Owner, Pod, ReleaseRequest, Releasing, State, Stored, Then, UNKNOWN_SANDBOX,
    Version,
};
pub use choice::{Catalog, Named, Pool, Request, Rule, Rules, Source, choose};
pub use endpoint::{Assigned, Endpoint, Interface, Route};
pub use flow::{
    Add, AddError, Answer, Answered, Asked, Candidate, Chosen, Del, Failed, Flows, Looked, Me, NoPool, NotYet, Parent,
    Pools, Stopped, Successor, Undo, Verdict, Wanted,
};
pub use host::{Host, Kept, Step};
pub use provider::{
    ALLOCATE, AllocateAnswer, AllocateItem, AllocateRequest, BUDGET_HEADER, BadAnswer, Bound, BoundItem, Call,
    Deadline, Outcome, Provider, RELEASE, Release, bound,
};
pub use range::{InvalidRange, Range};
pub use ranges::Ranges;
pub use store::{NamespaceFacts, PodFacts, Reserved, Store, StoreError};
pub use subnet::{InvalidSubnet, Subnet};
