//! Addresses of this node's pods: ipam-core's flows over the API server and this machine.
//!
//! ```text
//! agent (CNI edge) ── add, del, check, gc ──> ipam ──┐
//! pods of this node that end ──> reconcile ──────────┴──> Flows ──> KubeStore, Machine
//!                                             pools ──┘
//! ```

mod attachment;
mod ipam;
mod pods;
mod provider;
mod reconcile;
mod serve;

pub(crate) use serve::{GRACE, Inputs, serve};

use crate::agent::Machine;
use crate::node::OwnNode;
use crate::pools::Known;
use k8s_api::conf::Conf;
use std::sync::Arc;
use store::KubeStore;
use tokio::sync::watch;

type Flows = ipam_core::Flows<KubeStore, provider::Nobody, Arc<Machine>>;

/// What stands behind the CNI edge.
struct Addresses {
    flows: Flows,
    store: KubeStore,
    pools: watch::Receiver<Known>,
    node: watch::Receiver<Option<OwnNode>>,
    conf: Conf,
}
