//! The provider as a server.
//!
//! ```text
//! connection ── Wire (can be cut at any byte) ── TLS ── HTTP ──> token ──> contract: header, body ──> Asked
//!                                                         └────> control: faults, records, bindings
//! Asked ── Faults ──> Plan { work, shape }      work ── perform: bucket, latency, budget ──> Cloud ──> Done
//!                                               shape x Done ── deliver ──> an answer, half of one, or none
//! ```
//!
//! The work is a task of its own: a caller that goes away does not stop a cloud.

mod answer;
mod cable;
mod contract;
mod control;
mod deliver;
mod metrics;
mod perform;
mod shared;
mod state_file;
mod tls;
mod token;

pub use shared::{Handle, Settings};
pub use tls::{Identity, InvalidIdentity};
pub use token::Token;

use answer::problem;
use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{get, post};
use axum_server::Server;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use cable::WireAcceptor;
use http::StatusCode;
use shared::Shared;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// A handshake takes milliseconds.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// From the start of a connection to the end of the first headers, and from one request to the next.
const IDLE: Duration = Duration::from_mins(2);
const HEADER_BYTES: usize = 16 * 1024;
/// Requests that are being answered when the server stops have this long, and so has work that goes on by itself.
const DRAIN: Duration = Duration::from_secs(5);

/// The longest that stopping takes.
pub const GRACE: Duration = Duration::from_secs(12);

/// Who may talk to the server, and where.
#[derive(Clone, Debug)]
pub struct Options {
    /// Address and port; port 0 is any free one.
    pub listen: SocketAddr,
    /// How the cloud behaves.
    pub settings: Settings,
    /// TLS, if it is spoken.
    pub tls: Option<Identity>,
    /// What callers have to know, if anything.
    pub token: Option<Token>,
}

/// The server cannot start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum CannotServe {
    /// The port cannot be opened.
    #[error("cannot listen at {0}; if another program has the port, choose another with --listen")]
    Listen(SocketAddr, #[source] io::Error),
    /// The state file cannot be used.
    #[error("cannot go on from the state file {0}; correct it, or remove it to start with nothing bound")]
    State(PathBuf, #[source] Box<dyn std::error::Error + Send + Sync>),
    /// TLS cannot be spoken with these files.
    #[error("cannot serve TLS")]
    Tls(#[source] InvalidIdentity),
    /// A setting makes no sense.
    #[error("{0}")]
    Setting(&'static str),
    /// The server ended.
    #[error("the server ended")]
    Server(#[source] io::Error),
}

/// A provider that has its port and answers once it is [`Sim::serve`]d.
#[derive(Debug)]
pub struct Sim {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<RustlsConfig>,
    token: Option<Token>,
    shared: Arc<Shared>,
}

impl Sim {
    /// Opens the port.
    pub async fn bind(options: Options) -> Result<Self, CannotServe> {
        let Options { listen, settings, tls, token } = options;
        let tls = tls.map(|identity| identity.load().map_err(CannotServe::Tls)).transpose()?;
        let tls = tls.map(|config| RustlsConfig::from_config(Arc::new(config)));
        let shared = Arc::new(Shared::new(settings)?);
        let cannot = |source| CannotServe::Listen(listen, source);
        let listener = TcpListener::bind(listen).await.map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        Ok(Self { listener, address, tls, token, shared })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it listens, as a `serverUrl`.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// The cloud behind it, for tests in the same process.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle::new(Arc::clone(&self.shared))
    }

    /// Answers until `stop`, and ends what is in hand.
    pub async fn serve(self, stop: CancellationToken) -> Result<(), CannotServe> {
        let Self { listener, address: _, tls, token, shared } = self;
        let service = router(&shared, token).into_make_service();
        let handle = axum_server::Handle::new();
        let mut server = Server::<SocketAddr>::from_listener(listener).handle(handle.clone());
        server = server.first_request_timeout(IDLE).accept_error_handler(|peer, error| {
            tracing::debug!(?peer, %error, "a connection came to nothing");
        });
        server.http_builder().http1().header_read_timeout(IDLE).max_buf_size(HEADER_BYTES);
        server.http_builder().http2().max_header_list_size(u32::try_from(HEADER_BYTES).unwrap_or(u32::MAX));
        let serving = async {
            match tls {
                None => server.acceptor(WireAcceptor::default()).serve(service).await,
                Some(tls) => {
                    let acceptor = RustlsAcceptor::new(tls).handshake_timeout(HANDSHAKE);
                    server.acceptor(acceptor.acceptor(WireAcceptor::default())).serve(service).await
                }
            }
        };
        let stopping = async {
            stop.cancelled().await;
            shared.stop();
            handle.graceful_shutdown(Some(DRAIN));
            std::future::pending::<()>().await;
        };
        let ended = tokio::select! {
            ended = serving => ended,
            () = stopping => Ok(()),
        };
        shared.drained(DRAIN).await;
        ended.map_err(CannotServe::Server)
    }
}

fn router(shared: &Arc<Shared>, token: Option<Token>) -> Router {
    use crate::wire::{ALLOCATE, RELEASE};
    Router::new()
        .route(ALLOCATE, post(contract::allocate))
        .route(RELEASE, post(contract::release))
        .route("/v1/apis/network.iaas.io/status/ips-cache/{ip}", get(control::one))
        .route("/records", get(control::records))
        .route("/bindings", get(control::bindings))
        .route("/faults", get(control::faults).post(control::add_faults).delete(control::clear_faults))
        .route("/reset", post(control::reset))
        .route("/forget", post(control::forget))
        .route("/metrics", get(control::metrics))
        .layer(from_fn_with_state(token, admit))
        .route("/healthz", get(control::health))
        .fallback(async || problem(StatusCode::NOT_FOUND, "there is nothing here"))
        .method_not_allowed_fallback(async || problem(StatusCode::METHOD_NOT_ALLOWED, "method not allowed"))
        .with_state(Arc::clone(shared))
}

async fn admit(State(token): State<Option<Token>>, request: Request, next: Next) -> Response {
    match token.map(|token| token.admits(request.headers())) {
        None | Some(Ok(true)) => next.run(request).await,
        Some(Ok(false)) => {
            let why = "Authorization: the token of this provider is needed (Authorization: Bearer …)";
            let mut refused = problem(StatusCode::UNAUTHORIZED, why);
            refused.headers_mut().insert(http::header::WWW_AUTHENTICATE, http::HeaderValue::from_static("Bearer"));
            refused
        }
        Some(Err(error)) => {
            tracing::error!(error = %runtime::Chain(&error), "nobody is let in");
            problem(StatusCode::INTERNAL_SERVER_ERROR, "the provider cannot read its token")
        }
    }
}
