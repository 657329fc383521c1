//! Fixtures for scenarios that run real parts: an API server, a cluster, the agent's binary.

pub mod agent;
pub mod api_server;
pub mod cluster;
pub mod process;
pub mod wait;
