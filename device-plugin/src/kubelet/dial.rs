//! Calls the kubelet over a unix socket.

use hyper_util::rt::TokioIo;
use std::path::Path;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint, Error};
use tower::service_fn;

/// A connection to who serves gRPC at `socket`.
pub(super) async fn dial(socket: &Path) -> Result<Channel, Error> {
    let path = socket.to_owned();
    let connect = service_fn(move |_| {
        let path = path.clone();
        async move { UnixStream::connect(path).await.map(TokioIo::new) }
    });
    // The address is not used: the connector knows its path.
    Endpoint::from_static("http://localhost").connect_with_connector(connect).await
}
