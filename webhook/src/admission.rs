//! The admission edge: what the API server asks over HTTPS, and what it is answered.
//!
//! ```text
//! server: TLS, limits, deadlines ──> body: bytes ──> handler ──> review: read / answer
//!   ^                                                  │
//!   certificate: the pair in use                       └──> injection::decide with what the index knows
//!                                           objects ──> objects::{complete, validate} with what the indices know
//! ```

mod body;
pub(crate) mod certificate;
mod connections;
mod handler;
mod objects;
mod review;
pub(crate) mod server;

pub(crate) use handler::Handler;
pub(crate) use objects::{Beside, Objects};

/// Path of the pod webhook; the chart and existing installations name it.
pub(crate) const MUTATE_POD: &str = "/mutate--v1-pod";
