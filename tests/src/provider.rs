//! A provider in this process that binds nothing (`provider-sim`).

use provider_sim::{Handle, Options, Settings, Sim};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// A provider that ends with this value.
pub struct Provider {
    /// Its `serverUrl`.
    pub url: String,
    /// What it knows, and what is to go wrong.
    pub cloud: Handle,
    stop: CancellationToken,
    _running: JoinSet<()>,
}

impl Provider {
    /// One that works, at any port.
    pub async fn start() -> Self {
        Self::with(Settings { seed: Some(1), ..Settings::default() }).await
    }

    /// With these settings.
    pub async fn with(settings: Settings) -> Self {
        Self::of(Options { listen: ([127, 0, 0, 1], 0).into(), settings, tls: None, token: None }).await
    }

    /// As it is told.
    pub async fn of(options: Options) -> Self {
        runtime::install_crypto();
        let sim = Sim::bind(options).await.expect("it starts");
        let (url, cloud, stop) = (sim.url(), sim.handle(), CancellationToken::new());
        let mut running = JoinSet::new();
        let serving = sim.serve(stop.clone());
        running.spawn(async move { serving.await.expect("it serves until it is told to stop") });
        Self { url, cloud, stop, _running: running }
    }

    /// From now on these calls go wrong, as `POST /faults` takes it.
    pub fn faults(&self, rules: &Value) {
        self.cloud.add_faults(&rules.to_string()).expect("rules");
    }

    /// Nobody is there any more.
    pub fn end(&self) {
        self.stop.cancel();
    }

    /// Addresses that are bound, and for which pod.
    pub fn bound(&self) -> BTreeMap<String, String> {
        self.cloud.bindings().into_iter().map(|one| (one.ip_address, one.pod_name)).collect()
    }

    /// Times at which a call of this path came whose pod has this name, and what it announced.
    pub fn calls(&self, path: &str, pod: &str) -> usize {
        self.cloud.records(0).iter().filter(|one| one.path.ends_with(path) && one.body["podName"] == pod).count()
    }

    /// How many connections were made to it of late: open ones, and closed ones that the kernel remembers for a minute.
    pub fn connections(&self) -> usize {
        let port: u16 = self.url.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
        let table = std::fs::read_to_string("/proc/self/net/tcp").expect("readable");
        let remote = format!(":{port:04X}");
        table.lines().filter(|line| line.split_whitespace().nth(2).is_some_and(|at| at.ends_with(&remote))).count()
    }

    /// Bindings of two pods that could not be in one kernel: the same NIC and VLAN.
    pub fn same_vlans(&self) -> usize {
        let all = self.cloud.bindings();
        let distinct: BTreeSet<_> = all.iter().map(|one| (&one.node_name, &one.parent_nic_mac, one.vlan_id)).collect();
        all.len() - distinct.len()
    }
}
