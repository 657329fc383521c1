//! Starts it all, once the own Node is known.

use super::{Addresses, bindings, reconcile};
use crate::agent::{self, Machine, Places, Socket};
use crate::node::OwnNode;
use crate::pools::Known;
use anyhow::Context;
use ipam_core::{Flows, Host, Me, Node};
use k8s_api::conf::Conf;
use kube::Client;
use runtime::{Calls, Hold};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use store::{KubeStore, Retained, Scope};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

/// One request to the API server. An ADD makes four or five.
const REQUEST: Duration = Duration::from_secs(10);
/// For flows that run when the agent is to stop, where no provider is asked. What is cut off goes on from what it wrote.
const GRACE: Duration = Duration::from_secs(10);
/// No configuration gives them more.
pub(crate) const GRACE_MAX: Duration = Duration::from_secs(100);

/// What is known by others.
pub(crate) struct Inputs {
    pub(crate) client: Client,
    pub(crate) name: String,
    pub(crate) node: watch::Receiver<Option<OwnNode>>,
    pub(crate) pools: watch::Receiver<Known>,
    pub(crate) conf: watch::Receiver<Conf>,
    pub(crate) socket: PathBuf,
    pub(crate) sysfs: PathBuf,
    /// Of the provider.
    pub(crate) calls: Calls,
    /// Folder on the host's disk.
    pub(crate) state: PathBuf,
    /// Released when plugins are answered.
    pub(crate) served: Hold,
    /// Told how many of the cloud's bindings on this node no live pod holds.
    pub(crate) without_pod: watch::Sender<u32>,
}

/// Serves CNI plugins until `stop`.
pub(crate) async fn serve(inputs: Inputs, stop: CancellationToken) -> anyhow::Result<()> {
    let Inputs { client, name, mut node, pools, conf, socket, sysfs, calls, state, served, without_pod } = inputs;
    let Some(own) = known(&mut node, &stop).await? else { return Ok(()) };
    let places = Places { state, ..Places::default() };
    let machine = Arc::new(Machine::open(&places, own.machine_id.clone(), stop.clone())?);
    let clock = Arc::clone(&machine);
    let scope = Scope::Node(name.clone());
    let of_conf = conf.clone();
    let retain = Arc::new(move || {
        let conf = of_conf.borrow();
        Retained { stateful_sets: conf.stateful_sets, machines: conf.machines }
    });
    let (store, keep_index) = KubeStore::new(client.clone(), scope, REQUEST, Arc::new(move || clock.now()), retain);
    let me = Me {
        releaser: format!("{:032x}", machine.random()),
        node: Node { name: name.clone(), uid: own.uid, machine_id: own.machine_id },
    };
    let count = move |operation, outcome, took| calls.count(operation, outcome, took);
    let (provider, follow_conf) = store::provider::client(conf.clone(), Box::new(count), runtime::since_boot);
    let flows = Flows::new(store.clone(), provider, Arc::clone(&machine), me);
    let of_conf = conf.clone();
    let grace = move || grace(&of_conf.borrow());
    let pods = watch::Sender::default();
    let (unended, due) = mpsc::channel(reconcile::ENDED);
    let addresses = Arc::new(Addresses { flows, store: store.clone(), pools, node, conf, sysfs, pods, unended });
    let serving = async {
        let socket = Socket::listen(&socket, 0).await.context("cannot serve CNI plugins")?;
        // Who comes before the allocations have been read is told to come again at once.
        let serving = agent::serve(socket, Arc::clone(&addresses), machine, grace, stop.clone());
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
        never = follow_conf => match never {},
        never = bindings::count(&addresses, &without_pod) => match never {},
        never = reconcile::run(Arc::clone(&addresses), due, client, name) => match never {},
    }
}

/// A call of the provider is heard to its end.
fn grace(conf: &Conf) -> Duration {
    let asks = conf.provider.is_some() || !conf.former_servers.is_empty();
    if asks { conf.call_timeout.clamp(GRACE, GRACE_MAX) } else { GRACE }
}

/// The own Node once it is known; none if the process is to stop before.
async fn known(
    node: &mut watch::Receiver<Option<OwnNode>>,
    stop: &CancellationToken,
) -> Result<Option<OwnNode>, watch::error::RecvError> {
    tokio::select! {
        // Who watches the Node is dropped at the stop, and may be so before this is woken.
        biased;
        () = stop.cancelled() => Ok(None),
        own = node.wait_for(Option::is_some) => own.map(|own| own.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stop_before_the_node_is_known_is_no_fault() {
        for _ in 0..64 {
            let (watching, mut node) = watch::channel(None);
            let stop = CancellationToken::new();
            stop.cancel();
            drop(watching);
            assert!(known(&mut node, &stop).await.expect("no fault").is_none());
        }
        let (watching, mut node) = watch::channel(None);
        drop(watching);
        assert!(known(&mut node, &CancellationToken::new()).await.is_err(), "else it is one");
    }
}
