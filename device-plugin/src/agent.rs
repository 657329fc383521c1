//! The CNI edge: what plugins ask for pods of this node.
//!
//! ```text
//! plugin ──socket (root only)──> service ── request ──> flows ──> Ipam (ipam-core's flows, plugged in by `run`)
//!                                   │                     └ tracked: an ADD outlives its caller, a DEL its patience
//!                                   └───── answer <───────┘
//! host: clock, chance, sandboxes, results and handled DELs on disk
//! ```

mod answer;
mod deadline;
mod flows;
mod host;
mod ipam;
mod progress;
mod request;
mod service;
mod socket;
#[cfg(test)]
mod tests;

pub(crate) use host::{Machine, Places};
pub(crate) use ipam::{Asked, Ipam};
pub(crate) use socket::Socket;

use flows::Flows;
use futures::stream;
use proto::agent::agent_server::AgentServer;
use service::Service;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;

/// A GC names every attachment of a node: 10 000 of them are 1 MiB.
const REQUEST_MAX: usize = 2 << 20;
/// Connections live for one request; one that stays open at the end is somebody's who hangs.
const CONNECTIONS_CLOSE: Duration = Duration::from_secs(1);

/// Serves plugins until `stop`. From then on ADDs are told to come again (to the next agent); flows that run are given
/// `grace` (as it is then) to end, and only then nobody is answered any more.
pub(crate) async fn serve<I: Ipam>(
    socket: Socket,
    ipam: Arc<I>,
    machine: Arc<Machine>,
    grace: impl Fn() -> Duration,
    stop: CancellationToken,
) -> Result<(), tonic::transport::Error> {
    let flows = Flows::new(ipam, stop.clone());
    let service = AgentServer::new(Service { flows: flows.clone(), machine }).max_decoding_message_size(REQUEST_MAX);
    let drained = CancellationToken::new();
    let incoming = stream::unfold(&socket, |socket| async move { Some((socket.accept().await, socket)) });
    let mut server = std::pin::pin!(
        Server::builder()
            .add_service(service)
            .serve_with_incoming_shutdown(Box::pin(incoming), drained.clone().cancelled_owned())
    );
    let end = async {
        stop.cancelled().await;
        let grace = grace();
        if timeout(grace, flows.ended()).await.is_err() {
            tracing::warn!(
                flows = flows.running(),
                ?grace,
                "flows are cut off; what they left is settled by the next agent"
            );
        }
        drained.cancel();
        tokio::time::sleep(CONNECTIONS_CLOSE).await;
    };
    tokio::select! {
        ended = &mut server => ended,
        () = end => Ok(()),
    }
}
