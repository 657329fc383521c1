//! Annotations that say from which pools a pod gets its addresses.
//!
//! ```text
//! pod        ippools ──> PodPools::of(interface) ──┐
//!            ippool ───> Names ────────────────────┼──> the choice among pools
//! namespace  default-ipv4-ippool, …-ipv6-… ─> Names┘
//! pod        routes ───> routes beside those of pools
//! ```
//!
//! Keys of objects are read whatever their case, as earlier systems read them. A key that nobody knows is a fault: a
//! misspelt `ipv4` would else mean "from any pool".

mod fault;
mod names;
mod namespace;
mod pod;
mod reader;
mod routes;

pub use fault::{Fault, InvalidAnnotation, Owner};
pub use names::{Names, PoolName};
pub use namespace::namespace_pools;
pub use pod::{InterfacePools, PodPools, pod_pool, pod_pools};
pub use routes::routes;
