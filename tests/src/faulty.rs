//! A proxy in front of an API server that fails some of the requests, in the ways in which API servers fail.

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use futures::StreamExt;
use http_body_util::BodyExt;
use kube::Client;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// One way to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// 429, asking for a second of quiet.
    Busy,
    /// 500, nothing done.
    Internal,
    /// 503, nothing done.
    Away,
    /// Done, but the answer breaks off.
    Lost,
    /// No answer; nothing done.
    Hangs,
}

impl Fault {
    /// Each.
    pub const ALL: [Self; 5] = [Self::Busy, Self::Internal, Self::Away, Self::Lost, Self::Hangs];
}

/// The proxy. It ends with this value.
#[derive(Debug)]
pub struct Faulty {
    url: String,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

struct Shared {
    server: Client,
    seed: u64,
    asked: AtomicU64,
    percent: AtomicU32,
    faults: RwLock<Vec<Fault>>,
    held: RwLock<Option<&'static str>>,
    counts: [AtomicUsize; Fault::ALL.len()],
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("seed", &self.seed).finish_non_exhaustive()
    }
}

/// Longer than anybody waits.
const FOR_EVER: Duration = Duration::from_mins(10);

impl Faulty {
    /// Listens in front of `server`, a client without an identity: that of each request is its own. Nothing fails yet.
    pub async fn start(server: Client, seed: u64) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let shared = Arc::new(Shared {
            server,
            seed,
            asked: AtomicU64::new(0),
            percent: AtomicU32::new(0),
            faults: RwLock::default(),
            held: RwLock::default(),
            counts: Default::default(),
        });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let server = tokio::spawn(async move { axum::serve(listener, router).await.expect("serves") });
        Self { url, shared, server }
    }

    /// Where it listens.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// From now on so many percent of the requests fail, in one of these ways.
    pub fn fail(&self, percent: u32, faults: &[Fault]) {
        *self.shared.faults.write().unwrap_or_else(PoisonError::into_inner) = faults.to_vec();
        self.shared.percent.store(percent, Ordering::Relaxed);
    }

    /// From now on requests whose body has this text hang.
    pub fn hold(&self, text: &'static str) {
        *self.shared.held.write().unwrap_or_else(PoisonError::into_inner) = Some(text);
    }

    /// How many requests came, and how many failed in each way.
    pub fn counts(&self) -> (u64, Vec<(Fault, usize)>) {
        let counts = self.shared.counts.iter().map(|count| count.load(Ordering::Relaxed));
        (self.shared.asked.load(Ordering::Relaxed), Fault::ALL.into_iter().zip(counts).collect())
    }
}

impl Drop for Faulty {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Shared {
    /// By the seed and the number of the request.
    fn fault(&self) -> Option<Fault> {
        let drawn = mixed(self.seed.wrapping_add(self.asked.fetch_add(1, Ordering::Relaxed)));
        let faults = self.faults.read().unwrap_or_else(PoisonError::into_inner);
        if drawn % 100 >= u64::from(self.percent.load(Ordering::Relaxed)) {
            return None;
        }
        let fault = *faults.get(usize::try_from(drawn / 100 % 1_000_000).ok()? % faults.len().max(1))?;
        let at = Fault::ALL.iter().position(|one| *one == fault)?;
        self.counts[at].fetch_add(1, Ordering::Relaxed);
        Some(fault)
    }
}

/// A known mixer (`SplitMix64`).
fn mixed(number: u64) -> u64 {
    let state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
    match shared.fault() {
        None => forward(&shared, request).await,
        Some(Fault::Busy) => status(StatusCode::TOO_MANY_REQUESTS, Some("1")),
        Some(Fault::Internal) => status(StatusCode::INTERNAL_SERVER_ERROR, None),
        Some(Fault::Away) => status(StatusCode::SERVICE_UNAVAILABLE, None),
        Some(Fault::Lost) => {
            let (head, body) = forward(&shared, request).await.into_parts();
            // Of a watch nothing is shown; of others all but the last byte.
            let whole = if watch {
                Bytes::new()
            } else {
                body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default()
            };
            let shown = whole.slice(..whole.len().saturating_sub(1));
            let cut = futures::stream::iter([Ok(shown), Err(std::io::Error::other("cut"))]);
            Response::from_parts(head, Body::from_stream(cut))
        }
        Some(Fault::Hangs) => {
            tokio::time::sleep(FOR_EVER).await;
            status(StatusCode::GATEWAY_TIMEOUT, None)
        }
    }
}

async fn forward(shared: &Shared, request: Request) -> Response {
    let (mut head, body) = request.into_parts();
    head.headers.remove("host");
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let stuck = *shared.held.read().unwrap_or_else(PoisonError::into_inner);
    if stuck.is_some_and(|text| String::from_utf8_lossy(&body).contains(text)) {
        tokio::time::sleep(FOR_EVER).await;
    }
    match shared.server.send(http::Request::from_parts(head, body.to_vec().into())).await {
        Ok(response) => response.map(|body| Body::from_stream(body.into_data_stream().map(|chunk| chunk))),
        Err(_) => status(StatusCode::BAD_GATEWAY, None),
    }
}

fn status(code: StatusCode, retry_after: Option<&str>) -> Response {
    let text = format!(
        r#"{{"kind":"Status","apiVersion":"v1","status":"Failure","message":"{code}","code":{}}}"#,
        code.as_u16()
    );
    let response = Response::builder().status(code).header("content-type", "application/json");
    let response = retry_after.into_iter().fold(response, |response, after| response.header("retry-after", after));
    response.body(text.into()).expect("a response")
}
