//! Kubernetes names and shapes: what users write, read purely.
//!
//! Nothing here opens a file, a socket or a client: text and plain values come in, validated values and faults go out.
//! The node agent and the controller call the same readers, so they cannot differ about what a configuration means.
//!
//! ```text
//! conf.yml ──> conf::Conf ──┐
//! Node labels ──────────────┼──> offer::offer ──> the device sets that a node advertises
//! NICs of the node ─────────┘
//!
//! SpiderMultusConfig ──> crd::multus_config ──> attachment::Needs ──┐
//! annotations of a pod ──> multus::{networks, default_network} ─────┴──> what a pod requests (crate webhook)
//! ```

pub mod attachment;
pub mod conf;
pub mod crd;
pub mod duration;
pub mod glob;
pub mod interface;
pub mod ipam;
pub mod multus;
pub mod names;
pub mod nic;
pub mod offer;
mod quoted;
pub mod resource;
pub mod selector;
pub mod syntax;

pub use quoted::Quoted;
