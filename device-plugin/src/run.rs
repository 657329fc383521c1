//! Wires the agent and runs it to its end.

use crate::advertise::{Inputs, Surroundings};
use crate::config::Config;
use crate::kubelet::{Kubelet, folder, in_use, pod_resources};
use crate::metrics::Metrics;
use crate::report::Reports;
use crate::{addresses, advertise, conf_file, events, nics, node, pools};
use anyhow::Context;
use k8s_api::names;
use prometheus_client::registry::Registry;
use runtime::{Gate, Tasks};
use std::path::Path;
use std::time::Duration;
use tokio::sync::watch;

/// How long the tasks may take to stop; the chart's `terminationGracePeriodSeconds` is longer. Streams and sockets close in
/// milliseconds, pods that wait for their addresses get what a
/// call of the provider may take.
const GRACE: Duration = addresses::GRACE_MAX.saturating_add(Duration::from_secs(2));

pub(crate) fn run(config: Config) -> anyhow::Result<()> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(serve(config))
}

/// A connection whose server died without a word is given up after this long without a byte. The watch of the Node is
/// silent for less: the server ends it after 120 s, and kube gives it up 5 s later. Everything else, the first list and
/// the beginning of a watch too, is answered in seconds.
const SILENT: Duration = Duration::from_secs(135);

async fn client() -> anyhow::Result<kube::Client> {
    let mut config = kube::Config::infer().await?;
    config.read_timeout = Some(SILENT);
    // Else the time that a connection lay unused in the pool counts too.
    config.reset_reader_on_write = true;
    // A write whose outcome is unknown is looked for, not repeated.
    config.default_retry = false;
    Ok(kube::Client::try_from(config)?)
}

async fn serve(config: Config) -> anyhow::Result<()> {
    let Config { node: name, own_namespace, state, admin, sysfs, conf_file, conf } = config;
    let client = client().await.context("cannot tell where the API server is")?;
    let mut registry = Registry::with_prefix("spiderpool_agent");
    let metrics = Metrics::register(&mut registry);
    let calls = runtime::Calls::register(&mut registry);
    runtime::log::count_malformed(metrics.malformed.clone());
    let (events, write_events) = events::writer(client.clone(), name.clone());
    let reports = Reports::new(metrics.clone(), events.clone());
    let page = reports.clone();
    let admin =
        runtime::admin::bind(admin, "spiderpoolAgent.httpPort", registry, [("/registrations", move || page.page())])?;

    let mut tasks = Tasks::default();
    let gate = Gate::default();
    let root = conf.plugin.kubelet_root_dir.clone();
    let sockets = pod_resources::sockets([&root, Path::new(names::KUBELET_ROOT_DIR)]);
    let (node, watch_node) = node::watch(client.clone(), name.clone(), gate.hold("own Node"));
    let (pools, watch_pools) = pools::watch(client.clone(), own_namespace, gate.hold("pools"));
    let served = gate.hold("CNI socket");
    let socket = conf.socket.clone();
    let (nics, watch_nics) = nics::watch(sysfs.clone(), gate.hold("network interfaces"));
    let (folder, watch_folder) = folder::watch(Kubelet::folders(&root), reports.clone())?;
    let (handed_out, in_use, ask_in_use) = in_use::watch(sockets, metrics.in_use_known.clone());
    let (conf, watch_conf) = conf_file::watch(conf_file, conf, metrics, events).context("cannot watch conf.yml")?;
    let (without_pod, bindings) = watch::channel(0);
    let addresses = addresses::Inputs {
        client,
        name,
        node: node.clone(),
        pools,
        conf: conf.clone(),
        socket,
        sysfs,
        calls,
        state,
        served,
        without_pod,
    };
    let inputs = Inputs { conf, node, nics, in_use, bindings };
    let surroundings = Surroundings { folder, handed_out, reports, stop: tasks.stop() };

    tasks.spawn_dropped_at_stop("watching the own Node", watch_node);
    tasks.spawn_dropped_at_stop("watching pools", watch_pools);
    tasks.spawn_dropped_at_stop("watching network interfaces", watch_nics);
    tasks.spawn_dropped_at_stop("watching the kubelet's folder", watch_folder);
    tasks.spawn_dropped_at_stop("watching devices in use", ask_in_use);
    tasks.spawn_dropped_at_stop("watching conf.yml", watch_conf);
    tasks.spawn_dropped_at_stop("writing events", write_events);
    tasks.spawn("serving CNI plugins", addresses::serve(addresses, tasks.stop()));
    tasks.spawn("advertising resources", advertise::run(inputs, surroundings));
    tasks.spawn("reporting readiness", gate.open(admin.readiness(), tasks.stop()));
    admin.spawn();
    Ok(tasks.run(GRACE).await?)
}
