//! The one way to the API server: one request, one deadline, one class of error. Only what the server did not begin, being
//! busy, is sent again.

use crate::classify::judge;
use bytes::Bytes;
use http::Request;
use http::header::RETRY_AFTER;
use http_body_util::BodyExt;
use ipam_core::StoreError;
use kube::Client;
use kube::api::DynamicObject;
use kube::client::Body;
use kube::core::request;
use serde::de::DeserializeOwned;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout_at};

/// Between two tries at a server that is busy and does not say for how long.
const BUSY: Duration = Duration::from_millis(500);

/// Each has a connection of its own.
const AT_ONCE: usize = 256;

/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct Caller {
    client: Client,
    deadline: Duration,
    at_once: Arc<Semaphore>,
}

impl Caller {
    pub(crate) fn new(client: Client, deadline: Duration) -> Self {
        Self { client, deadline, at_once: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// Sends a request whose answer is an object.
    pub(crate) async fn object(
        &self,
        request: Result<Request<Vec<u8>>, request::Error>,
    ) -> Result<DynamicObject, StoreError> {
        self.json(request).await
    }

    /// Sends a request whose answer is an object, or that there is none.
    pub(crate) async fn find<T: DeserializeOwned>(
        &self,
        request: Result<Request<Vec<u8>>, request::Error>,
    ) -> Result<Option<T>, StoreError> {
        match self.json(request).await {
            Ok(found) => Ok(Some(found)),
            Err(StoreError::Gone) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn json<T: DeserializeOwned>(
        &self,
        request: Result<Request<Vec<u8>>, request::Error>,
    ) -> Result<T, StoreError> {
        let body = self.bytes(request).await?;
        serde_json::from_slice(&body).map_err(|error| StoreError::Unknown(format!("an unreadable answer: {error}")))
    }

    async fn bytes(&self, request: Result<Request<Vec<u8>>, request::Error>) -> Result<Bytes, StoreError> {
        let request = request.map_err(|error| StoreError::Refused(format!("not a request: {}", chain(&error))))?;
        let end = Instant::now() + self.deadline;
        let Ok(Ok(_turn)) = timeout_at(end, self.at_once.acquire()).await else {
            // It was not sent.
            return Err(StoreError::Throttled { after: None });
        };
        loop {
            let answer = timeout_at(end, Box::pin(self.exchange(request.clone()))).await;
            match answer.unwrap_or_else(|_| Err(StoreError::Unknown(format!("none within {:?}", self.deadline)))) {
                Err(StoreError::Throttled { after }) if Instant::now() + after.unwrap_or(BUSY) < end => {
                    sleep(after.unwrap_or(BUSY)).await;
                }
                other => return other,
            }
        }
    }

    async fn exchange(&self, request: Request<Vec<u8>>) -> Result<Bytes, StoreError> {
        let unknown = |error: kube::Error| StoreError::Unknown(chain(&error));
        let response = self.client.send(request.map(Body::from)).await.map_err(unknown)?;
        let (head, body) = response.into_parts();
        let body = body.collect().await.map_err(unknown)?.to_bytes();
        judge(head.status, head.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()), body)
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn deadline(&self) -> Duration {
        self.deadline
    }
}

/// An error and what led to it, on one line; what repeats what was said already is left out.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = error.source();
    }
    text
}
