//! A connection that can be cut: after so many bytes, or with a reset.

use axum::Extension;
use axum::extract::Request;
use axum_server::ConnectionShutdown;
use axum_server::accept::Accept;
use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::Layer;

/// Connections at a time; more are closed at once.
const MOST_CONNECTIONS: usize = 8192;

/// What a handler can do to the connection that its request came on.
#[derive(Clone, Debug)]
pub(super) struct Cable {
    scissors: Arc<Scissors>,
    shutdown: ConnectionShutdown,
}

#[derive(Debug)]
pub(super) struct Scissors {
    /// Bytes that still get through.
    left: AtomicUsize,
    reset: AtomicBool,
    _place: OwnedSemaphorePermit,
}

impl Cable {
    pub(super) fn of(request: &Request) -> Option<Self> {
        let scissors = request.extensions().get::<Arc<Scissors>>()?.clone();
        let shutdown = request.extensions().get::<ConnectionShutdown>()?.clone();
        Some(Self { scissors, shutdown })
    }

    /// Ends the connection. Does not return.
    pub(super) async fn cut(&self, reset: bool) -> ! {
        self.scissors.reset.store(reset, Ordering::SeqCst);
        self.shutdown.shutdown();
        loop {
            std::future::pending::<()>().await;
        }
    }

    /// Lets so many bytes through, then ends the connection.
    pub(super) fn cut_after(&self, bytes: usize, reset: bool) {
        self.scissors.reset.store(reset, Ordering::SeqCst);
        self.scissors.left.store(bytes, Ordering::SeqCst);
    }
}

/// Puts a [`Wire`] around each connection.
#[derive(Clone, Debug)]
pub(super) struct WireAcceptor(Arc<Semaphore>);

impl Default for WireAcceptor {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MOST_CONNECTIONS)))
    }
}

impl<S> Accept<TcpStream, S> for WireAcceptor {
    type Stream = Wire;
    type Service = <Extension<Arc<Scissors>> as Layer<S>>::Service;
    type Future = Ready<io::Result<(Self::Stream, Self::Service)>>;

    fn accept(&self, tcp: TcpStream, service: S) -> Self::Future {
        let wired = || {
            let place = Arc::clone(&self.0).try_acquire_owned();
            let place =
                place.map_err(|_| io::Error::other(format!("there are {MOST_CONNECTIONS} connections already")))?;
            tcp.set_nodelay(true)?;
            let left = AtomicUsize::new(usize::MAX);
            let scissors = Arc::new(Scissors { left, reset: AtomicBool::new(false), _place: place });
            let service = Extension(Arc::clone(&scissors)).layer(service);
            Ok((Wire { tcp, scissors }, service))
        };
        ready(wired())
    }
}

/// A connection, below TLS.
#[derive(Debug)]
pub(super) struct Wire {
    tcp: TcpStream,
    scissors: Arc<Scissors>,
}

impl Drop for Wire {
    fn drop(&mut self) {
        if self.scissors.reset.load(Ordering::SeqCst) {
            // If it cannot be, the connection ends in order, which is an end as well.
            let _ = self.tcp.set_zero_linger();
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_read(cx, into)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let left = self.scissors.left.load(Ordering::SeqCst);
        let through = bytes.get(..left).unwrap_or(bytes);
        if through.is_empty() && !bytes.is_empty() {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let written = std::task::ready!(Pin::new(&mut self.tcp).poll_write(cx, through))?;
        if left != usize::MAX {
            self.scissors.left.store(left.saturating_sub(written), Ordering::SeqCst);
        }
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}
