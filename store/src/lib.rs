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

mod allocation;
mod call;
mod classify;
mod endpoint;
mod index;
mod kube_store;
mod lookup;
mod name;
mod named;
mod object;
mod owner;
mod path;
mod pod;
mod pools;
mod publish;
mod retained;
mod shared;
mod watch;
mod write;

pub use kube_store::{Clock, KubeStore, Scope};
