//! Wires the agent and runs it to its end.

use crate::config::Config;
use crate::kubelet::{Kubelet, folder};
use crate::metrics::Metrics;
use crate::{advertise, nics, node};
use prometheus_client::registry::Registry;
use runtime::{Gate, Tasks};
use std::time::Duration;

/// How long the tasks may take to stop; streams and sockets close in milliseconds.
const GRACE: Duration = Duration::from_secs(5);

pub(crate) fn run(config: Config) -> anyhow::Result<()> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(serve(config))
}

async fn serve(config: Config) -> anyhow::Result<()> {
    let Config { node: name, admin, sysfs, conf } = config;
    let mut registry = Registry::with_prefix("spiderpool_agent");
    let metrics = Metrics::register(&mut registry);
    let admin = runtime::admin::bind(admin, registry)?;
    let client = kube::Client::try_default().await?;

    let mut tasks = Tasks::default();
    let stop = tasks.stop();
    let gate = Gate::default();
    let folders = Kubelet::folders(&conf.plugin.kubelet_root_dir);
    let (labels, watch_node) = node::watch(client, name, gate.hold("own Node"));
    let (nics, watch_nics) = nics::watch(sysfs, gate.hold("network interfaces"));
    let (folder, watch_folder) = folder::watch(folders)?;
    let advertise = advertise::run(conf, labels, nics, folder, metrics, stop.clone());

    tasks.spawn_dropped_at_stop("watching the own Node", watch_node);
    tasks.spawn_dropped_at_stop("watching network interfaces", watch_nics);
    tasks.spawn_dropped_at_stop("watching the kubelet's folder", watch_folder);
    tasks.spawn("advertising resources", advertise);
    tasks.spawn("reporting readiness", gate.open(admin.readiness(), stop));
    admin.spawn();
    Ok(tasks.run(GRACE).await?)
}
