//! Fixtures for scenarios that run real parts: an API server, a cluster, the agent's binary.

// A fake is a process of its own; nothing of ours has to notice when it ends.
#![allow(clippy::disallowed_methods)]

pub mod addresses;
pub mod agent;
pub mod answer;
pub mod api_server;
pub mod cable;
pub mod chart;
pub mod cluster;
pub mod controller;
pub mod faulty;
pub mod kubelet;
pub mod multus;
pub mod node;
pub mod other_webhook;
pub mod plugin;
pub mod pod_resources;
pub mod process;
pub mod provider;
pub mod trial;
pub mod wait;
