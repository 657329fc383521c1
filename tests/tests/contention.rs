//! Agents that want the same addresses at the same time, and an API server that fails them.

#[path = "contention/faults.rs"]
mod faults;
#[path = "contention/five.rs"]
mod five;
#[path = "contention/kubelet.rs"]
mod kubelet;
