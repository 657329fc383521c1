//! Where addresses are kept: [`ipam_core::Store`] on an API server.
//!
//! ```text
//! list, watch ─> watch ─> index <─ write, publish <─ flows (ipam-core)
//!                                  named, pools, pod, retained: asked live
//! ```
//!
//! Objects become values at the edge (`allocation`, `endpoint`); what cannot be read is told and counts as taken. Every
//! request has a deadline and is done once: an unknown outcome is followed by one live read, and by nothing else. The client
//! must not repeat requests by itself (`default_retry` off): what a server away did, it may have done.
//! Versions are compared as numbers, which API servers of this project's range write.

pub mod adopt;
mod allocation;
mod call;
mod classify;
mod endpoint;
mod index;
mod kube_store;
mod listed;
mod lookup;
mod machine;
mod name;
mod named;
mod object;
mod owner;
mod path;
mod pod;
mod pools;
#[cfg(feature = "provider")]
pub mod provider;
mod publish;
mod retained;
mod shared;
mod watch;
mod write;

/// What is stored, for who has no flows of his own.
pub use ipam_core::{
    Address, Allocation, Assigned, Binding, Endpoint, Family, Interface, Node, Owner, Pod, PodFacts, Range, Ranges,
    Releasing, State, Store, StoreError, Then,
};
pub use kube_store::{Clock, KubeStore, Scope};
pub use listed::{address_of, allocation_of, endpoint_of, name_of};
pub use retained::{Retain, Retained};
