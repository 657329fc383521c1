//! Bodies of requests: bounded in size, in time, and together.

use axum::body::{Body, Bytes};
use http::StatusCode;
use http_body_util::BodyExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// An API server takes 3 MiB; what comes as protobuf grows when it is written as JSON.
const BYTES_MAX: usize = 8 * 1024 * 1024;
/// All bodies together. Only bytes that have come count, so that nobody reserves by announcing.
const BYTES_AT_ONCE: usize = 64 * 1024 * 1024;
/// From the headers to the last byte.
const WHOLE: Duration = Duration::from_secs(3);

/// The body cannot be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unread {
    #[error("the request is larger than {BYTES_MAX} bytes")]
    TooLarge,
    #[error("the request did not come whole within {WHOLE:?}")]
    Slow,
    #[error("the controller stops")]
    Stopping,
    #[error("the request broke off")]
    Broken(#[source] axum::Error),
}

impl Unread {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::Stopping => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Broken(_) => StatusCode::BAD_REQUEST,
        }
    }
}

/// What all bodies may take together.
#[derive(Clone, Debug)]
pub(super) struct Budget(Arc<Semaphore>);

impl Default for Budget {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(BYTES_AT_ONCE)))
    }
}

/// A whole body; its bytes are free again when it is dropped.
#[derive(Debug)]
pub(super) struct Whole {
    pub(super) bytes: Bytes,
    _held: Option<OwnedSemaphorePermit>,
}

impl Budget {
    pub(super) async fn read(&self, body: Body) -> Result<Whole, Unread> {
        timeout(WHOLE, self.collect(body)).await.unwrap_or(Err(Unread::Slow))
    }

    async fn collect(&self, mut body: Body) -> Result<Whole, Unread> {
        let (mut first, mut rest) = (Bytes::new(), Vec::new());
        let mut held: Option<OwnedSemaphorePermit> = None;
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(Unread::Broken)?.into_data() else { continue };
            let so_far = first.len().max(rest.len());
            if so_far + data.len() > BYTES_MAX {
                return Err(Unread::TooLarge);
            }
            let size = u32::try_from(data.len()).map_err(|_| Unread::TooLarge)?;
            // Waited for, up to the deadline of the whole.
            let more = Arc::clone(&self.0).acquire_many_owned(size).await.map_err(|_| Unread::Stopping)?;
            match &mut held {
                Some(held) => held.merge(more),
                None => held = Some(more),
            }
            // Most bodies come in one piece, and that is not copied.
            if so_far == 0 {
                first = data;
            } else {
                if rest.is_empty() {
                    rest.extend_from_slice(&first);
                }
                rest.extend_from_slice(&data);
            }
        }
        Ok(Whole { bytes: if rest.is_empty() { first } else { rest.into() }, _held: held })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::stream;
    use std::convert::Infallible;

    fn in_pieces(pieces: Vec<&'static [u8]>) -> Body {
        Body::from_stream(stream::iter(pieces.into_iter().map(Ok::<_, Infallible>)))
    }

    #[tokio::test]
    async fn pieces_are_put_together_and_given_back() {
        let budget = Budget::default();
        for pieces in [vec![], vec![&b"abc"[..]], vec![&b"a"[..], b"", b"bc"]] {
            let whole = pieces.concat();
            assert_eq!(budget.read(in_pieces(pieces)).await.expect("whole").bytes, whole);
        }
        assert_eq!(budget.0.available_permits(), BYTES_AT_ONCE);
    }

    #[tokio::test]
    async fn one_that_is_too_large_is_refused_and_given_back() {
        static MIB: [u8; 1024 * 1024] = [b' '; 1024 * 1024];
        let budget = Budget::default();
        assert!(matches!(budget.read(in_pieces(vec![&MIB; 9])).await, Err(Unread::TooLarge)));
        assert_eq!(budget.read(in_pieces(vec![&MIB; 8])).await.expect("as large as may be").bytes.len(), BYTES_MAX);
        assert_eq!(budget.0.available_permits(), BYTES_AT_ONCE);
    }

    #[tokio::test]
    async fn all_together_are_bounded() {
        static MIB: [u8; 1024 * 1024] = [b' '; 1024 * 1024];
        let budget = Budget::default();
        let mut held = Vec::new();
        for _ in 0..8 {
            held.push(budget.read(in_pieces(vec![&MIB; 8])).await.expect("room"));
        }
        let (waits, ()) = tokio::join!(budget.read(in_pieces(vec![b"x"])), async {
            tokio::task::yield_now().await;
            held.pop();
        });
        assert!(waits.is_ok(), "it waits for room");
        held.push(budget.read(in_pieces(vec![&MIB; 7])).await.expect("room"));
        tokio::time::pause();
        assert!(matches!(budget.read(in_pieces(vec![&MIB; 8])).await, Err(Unread::Slow)), "and not for ever");
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_never_ends_is_given_up() {
        let endless = Body::from_stream(stream::pending::<Result<Bytes, Infallible>>());
        assert!(matches!(Budget::default().read(endless).await, Err(Unread::Slow)));
    }
}
