//! Starts it all, once the own Node is known.

use super::{Addresses, provider, reconcile};
use crate::agent::{self, Machine, Places, Socket};
use crate::node::OwnNode;
use crate::pools::Known;
use anyhow::Context;
use ipam_core::{Flows, Host, Me, Node};
use k8s_api::conf::Conf;
use kube::Client;
use runtime::Hold;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use store::{KubeStore, Scope};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// One request to the API server. An ADD makes four or five.
const REQUEST: Duration = Duration::from_secs(10);
/// No provider is asked yet.
const CALL: Duration = Duration::from_secs(50);
/// For flows that run when the agent is to stop. What is cut off goes on from what it wrote.
pub(crate) const GRACE: Duration = Duration::from_secs(10);

/// What is known by others.
pub(crate) struct Inputs {
    pub(crate) client: Client,
    pub(crate) name: String,
    pub(crate) node: watch::Receiver<Option<OwnNode>>,
    pub(crate) pools: watch::Receiver<Known>,
    pub(crate) conf: Conf,
    pub(crate) socket: PathBuf,
    /// Folder on the host's disk.
    pub(crate) state: PathBuf,
    /// Released when plugins are answered.
    pub(crate) served: Hold,
}

/// Serves CNI plugins until `stop`.
pub(crate) async fn serve(inputs: Inputs, stop: CancellationToken) -> anyhow::Result<()> {
    let Inputs { client, name, mut node, pools, conf, socket, state, served } = inputs;
    let own = tokio::select! {
        own = node.wait_for(Option::is_some) => own?.clone().unwrap_or_default(),
        () = stop.cancelled() => return Ok(()),
    };
    let machine = Arc::new(Machine::open(&Places { state, ..Places::default() }, own.machine_id.clone())?);
    let clock = Arc::clone(&machine);
    let scope = Scope::Node(name.clone());
    let (store, keep_index) = KubeStore::new(client.clone(), scope, REQUEST, Arc::new(move || clock.now()));
    let me = Me {
        releaser: format!("{:032x}", machine.random()),
        node: Node { name: name.clone(), uid: own.uid, machine_id: own.machine_id },
        call: CALL,
    };
    let flows = Flows::new(store.clone(), provider::Nobody, Arc::clone(&machine), me);
    let addresses = Arc::new(Addresses { flows, store: store.clone(), pools, node, conf });
    let serving = async {
        let socket = Socket::listen(&socket, 0).await.context("cannot serve CNI plugins")?;
        // Who comes before the allocations have been read is told to come again at once.
        let serving = agent::serve(socket, Arc::clone(&addresses), machine, GRACE, stop.clone());
        let synced = async {
            store.synced().await;
            served.release();
            std::future::pending().await
        };
        tokio::select! {
            ended = serving => anyhow::Ok(ended?),
            never = synced => never,
        }
    };
    tokio::select! {
        ended = serving => ended,
        never = keep_index => match never {},
        never = reconcile::run(Arc::clone(&addresses), client, name) => match never {},
    }
}
