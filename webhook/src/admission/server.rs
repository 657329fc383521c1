//! HTTPS: TLS, limits, deadlines, and an end without a failed request.

use super::certificate::{InUse, Pair};
use super::connections::{Connections, TooMany};
use super::{Handler, MUTATE_POD, Objects};
use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, State};
use axum::routing::post;
use axum_server::accept::NoDelayAcceptor;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use axum_server::{ConnectionShutdown, Handle, Server};
use http::{HeaderValue, Version, header};
use prometheus_client::metrics::counter::Counter;
use rustls::ServerConfig;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// A handshake takes milliseconds.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// From the end of the handshake to the end of the first headers.
const HEADERS: Duration = Duration::from_secs(10);
/// From one request of HTTP/1 to the end of the next one's headers. An API server drops a connection that it has not used
/// for 90 s; if we were first, a request could be on its way to a connection that is closed already.
const IDLE: Duration = Duration::from_mins(2);
/// An HTTP/2 client that is gone without a word is noticed.
const PING: Duration = Duration::from_secs(30);
/// Connections that have not been accepted yet: API servers speak HTTP/1.1 to webhooks and open one for each pod of a burst.
const BACKLOG: u32 = 1024;
/// Requests at a time on one HTTP/2 connection; more wait in the client.
const STREAMS: u32 = 256;
const HEADER_BYTES: u32 = 16 * 1024;
/// After the signal to stop, requests still come until everybody has heard that this endpoint is gone.
const LINGER: Duration = Duration::from_secs(5);
/// Requests that are being answered then have this long.
const DRAIN: Duration = Duration::from_secs(6);

/// The longest that stopping takes.
pub(crate) const GRACE: Duration = Duration::from_secs(15);

/// The webhook cannot be served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CannotServe {
    #[error(
        "cannot listen at {0}; if another program has the port, choose another (chart value spiderpoolController.webhookPort)"
    )]
    Listen(SocketAddr, #[source] io::Error),
    #[error("TLS cannot be set up")]
    Tls(#[source] rustls::Error),
    #[error("the server ended")]
    Server(#[source] io::Error),
}

/// Opens the port.
pub(crate) fn listen(address: SocketAddr) -> Result<TcpListener, CannotServe> {
    let open = || {
        let socket = if address.is_ipv6() { TcpSocket::new_v6() } else { TcpSocket::new_v4() }?;
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    open().map_err(|source| CannotServe::Listen(address, source))
}

/// Serves until `stop`, and a little longer.
pub(crate) async fn serve(
    listener: TcpListener,
    pair: watch::Receiver<Pair>,
    handler: Handler,
    objects: Objects,
    refused: Counter,
    stop: CancellationToken,
) -> Result<(), CannotServe> {
    let tls = tls(pair).map_err(CannotServe::Tls)?;
    let router = Router::new()
        .route(MUTATE_POD, post(async |State(handler): State<Handler>, body: Body| handler.mutate_pod(body).await))
        .with_state(handler)
        .merge(objects.router())
        .layer(DefaultBodyLimit::disable());
    let connections = Connections::new(refused);
    let stopping = stop.clone();
    let accept = tower::service_fn(move |_: SocketAddr| {
        let (place, router, stopping) = (connections.enter(), router.clone(), stopping.clone());
        async move {
            // Held for as long as the connection has its service.
            let place = Arc::new(place?);
            Ok::<_, TooMany>(tower::service_fn(move |request: http::Request<_>| {
                let answering = place.answer(request.extensions().get::<ConnectionShutdown>());
                let last = stopping.is_cancelled() && request.version() < Version::HTTP_2;
                let router = router.clone();
                async move {
                    let mut response = router.oneshot(request.map(Body::new)).await?;
                    if last {
                        // A client that keeps connections would come back on this one.
                        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
                    }
                    drop(answering);
                    Ok::<_, Infallible>(response)
                }
            }))
        }
    });
    // Without TCP_NODELAY the first answer waits until the client has acknowledged the end of the handshake.
    let acceptor = RustlsAcceptor::new(RustlsConfig::from_config(Arc::new(tls)))
        .handshake_timeout(HANDSHAKE)
        .acceptor(NoDelayAcceptor::new());
    let handle = Handle::new();
    let mut server = Server::<SocketAddr>::from_listener(listener).acceptor(acceptor).handle(handle.clone());
    server = server.first_request_timeout(HEADERS).accept_error_handler(|peer, error| {
        tracing::debug!(?peer, %error, "a connection came to nothing");
    });
    server
        .http_builder()
        .http1()
        .header_read_timeout(IDLE)
        .max_buf_size(usize::try_from(HEADER_BYTES).unwrap_or_default());
    server
        .http_builder()
        .http2()
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEADER_BYTES)
        .keep_alive_interval(PING)
        .keep_alive_timeout(HANDSHAKE);
    let ending = async {
        stop.cancelled().await;
        tokio::time::sleep(LINGER).await;
        handle.graceful_shutdown(Some(DRAIN));
        std::future::pending::<Infallible>().await
    };
    tokio::select! {
        ended = server.serve(accept) => ended.map_err(CannotServe::Server),
        never = ending => match never {},
    }
}

fn tls(pair: watch::Receiver<Pair>) -> Result<ServerConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut config = config.with_no_client_auth().with_cert_resolver(Arc::new(InUse(pair)));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
