//! A provider in this process, and requests to it.

use provider_sim::wire::{ALLOCATE, RELEASE};
use provider_sim::{Handle, Options, Settings, Sim};
use serde_json::{Value, json};
use std::fmt::Display;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub(crate) const PARENT: &str = "fa:16:3e:11:22:33";
/// The longest that anything may take, on a machine that is busy with other things.
pub(crate) const LONG: Duration = Duration::from_mins(1);

/// A provider that ends with its test.
pub(crate) struct Stage {
    pub(crate) url: String,
    pub(crate) cloud: Handle,
    pub(crate) client: reqwest::Client,
    running: JoinSet<()>,
    stop: CancellationToken,
}

impl Stage {
    pub(crate) async fn new(settings: Settings) -> Self {
        Self::with(Options { listen: ([127, 0, 0, 1], 0).into(), settings, tls: None, token: None }).await
    }

    pub(crate) async fn with(options: Options) -> Self {
        let sim = Sim::bind(options).await.expect("it starts");
        let (url, cloud) = (sim.url(), sim.handle());
        let stop = CancellationToken::new();
        let mut running = JoinSet::new();
        let serving = sim.serve(stop.clone());
        running.spawn(async move { serving.await.expect("it serves until it is told to stop") });
        Self { url, cloud, client: client(), running, stop }
    }

    pub(crate) async fn plain() -> Self {
        Self::new(Settings { seed: Some(1), ..Settings::default() }).await
    }

    pub(crate) async fn faulty(rules: Value) -> Self {
        let stage = Self::plain().await;
        stage.cloud.add_faults(&rules.to_string()).expect("rules");
        stage
    }

    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Stops it and waits until it has.
    pub(crate) async fn end(mut self) {
        self.stop.cancel();
        let ended = tokio::time::timeout(LONG, self.running.join_next()).await.expect("it stops in time");
        ended.expect("it ran").expect("it did not panic");
    }

    pub(crate) async fn post(&self, path: &str, budget: u64, body: &Value) -> (u16, Value) {
        let request = self.client.post(format!("{}{path}", self.url));
        let request = request.header("X-Request-Timeout-Ms", budget).json(body);
        let response = request.send().await.expect("an answer");
        let status = response.status().as_u16();
        let text = response.text().await.expect("a whole answer");
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    pub(crate) async fn allocate(&self, uid: &str, addresses: &[&str]) -> (u16, Value) {
        self.post(ALLOCATE, 50_000, &allocate(uid, addresses)).await
    }

    pub(crate) async fn release(&self, uid: &str, address: &str) -> (u16, Value) {
        self.post(RELEASE, 50_000, &release(uid, address)).await
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        let response = self.client.get(format!("{}{path}", self.url)).send().await.expect("an answer");
        let status = response.status().as_u16();
        let text = response.text().await.expect("a whole answer");
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    /// The addresses that are bound.
    pub(crate) fn bound(&self) -> Vec<String> {
        self.cloud.bindings().into_iter().map(|binding| binding.ip_address).collect()
    }

    /// Sends a call over a connection of its own and reads all bytes that come until it ends; `None` if it does not within
    /// `patience`.
    pub(crate) async fn raw(&self, path: &str, body: &Value, patience: Duration) -> Option<std::io::Result<String>> {
        let address = self.url.strip_prefix("http://").expect("plain");
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        let body = body.to_string();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\nx-request-timeout-ms: 50000\r\n\
             connection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.expect("it reads");
        stream.write_all(body.as_bytes()).await.expect("it reads");
        let mut answer = Vec::new();
        let read = tokio::time::timeout(patience, stream.read_to_end(&mut answer)).await.ok()?;
        Some(read.map(|_| String::from_utf8_lossy(&answer).into_owned()))
    }
}

pub(crate) fn client() -> reqwest::Client {
    runtime::install_crypto();
    let builder = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).timeout(LONG);
    // Without TLS nobody is trusted, and reading whom the system trusts takes its time.
    let builder = builder.tls_certs_only([]);
    builder.build().expect("a client")
}

pub(crate) fn allocate(uid: &str, addresses: &[&str]) -> Value {
    let asked =
        addresses.iter().map(|address| json!({"ipAddress": address, "subnet": "10.0.0.0/24", "parentNicMac": PARENT}));
    json!({
        "podName": "a", "podNamespace": "default", "podUID": uid, "nodeName": "worker-1",
        "iaasIPsAllocationRequest": asked.collect::<Vec<_>>(),
    })
}

pub(crate) fn release(uid: &str, address: &str) -> Value {
    json!({
        "podName": "a", "podNamespace": "default", "podUID": uid, "nodeName": "worker-1",
        "parentNicMac": PARENT, "subnet": "10.0.0.0/24", "ipAddress": address,
    })
}

/// Looks until it is so.
pub(crate) async fn until(what: impl Display, mut look: impl FnMut() -> bool) {
    let started = Instant::now();
    while !look() {
        assert!(started.elapsed() < LONG, "waited {LONG:?} in vain for {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
