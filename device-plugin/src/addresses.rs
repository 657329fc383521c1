//! Addresses of this node's pods: ipam-core's flows over the API server and this machine.
//!
//! ```text
//! agent (CNI edge) ── add, del, check, gc ──> ipam ──┐
//! pods of this node that end ──> reconcile ──────────┴──> Flows ──> KubeStore, Machine
//!                                             pools ──┘      provider (HTTP)
//! ```

mod attachment;
mod bindings;
mod ipam;
mod live;
mod parent;
mod pods;
mod reconcile;
mod serve;

pub(crate) use serve::{GRACE_MAX, Inputs, serve};

use crate::agent::Machine;
use crate::node::OwnNode;
use crate::pools::Known;
use ipam_core::Address;
use ipam_core::http::HttpProvider;
use k8s_api::conf::Conf;
use std::path::PathBuf;
use std::sync::Arc;
use store::KubeStore;
use tokio::sync::{mpsc, watch};

type Flows = ipam_core::Flows<KubeStore, Arc<HttpProvider>, Arc<Machine>>;

/// What stands behind the CNI edge.
struct Addresses {
    flows: Flows,
    store: KubeStore,
    pools: watch::Receiver<Known>,
    node: watch::Receiver<Option<OwnNode>>,
    conf: watch::Receiver<Conf>,
    /// Where the kernel tells of NICs.
    sysfs: PathBuf,
    /// Pods of this node, as their watch shows them.
    pods: watch::Sender<live::Known>,
    /// Told of what a flow could not end. What does not fit is found by the next look at all.
    unended: mpsc::Sender<Address>,
}
