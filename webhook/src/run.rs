//! Wires the controller and runs it to its end.

use crate::admission::certificate::{self, Files, Pair};
use crate::admission::{Beside, Handler, Objects, server};
use crate::args::Daemon;
use crate::attachments::{self, Live, Lookup};
use crate::authority::{self, First, Wanted};
use crate::by_annotation::ByAnnotation;
use crate::lease::{self, Candidate, Leading};
use crate::metrics::{Metrics, count};
use crate::{adoption, definitions, events, garbage, namespaces, nodes, pools, usage};
use anyhow::Context;
use k8s_api::conf::Conf;
use prometheus_client::registry::Registry;
use runtime::admin::every_address;
use runtime::follow::Reading;
use runtime::inotify::NoInotify;
use runtime::{Gate, Tasks, conf_file};
use std::convert::Infallible;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::watch;

/// A watch says nothing for as long as nothing happens, and is renewed before this: a server that died unnoticed is noticed.
const SILENCE: Duration = Duration::from_secs(135);

pub(crate) fn run(args: Daemon) -> anyhow::Result<()> {
    let threads = usize::from(args.threads);
    tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?.block_on(serve(args))
}

async fn serve(args: Daemon) -> anyhow::Result<()> {
    let conf = conf_file::load(&args.config_path, Conf::parse)?;
    let source = if let Some(wanted) = Wanted::of(args.own, &args.namespace)? {
        Source::Own(wanted)
    } else {
        let files = Files { certificate: args.tls_server_cert, key: args.tls_server_key };
        let pair = certificate::load(&files).context("the webhook has no certificate")?;
        Source::Files(files, pair)
    };
    let mut config = kube::Config::infer().await.context("cannot tell where the API server is")?;
    config.read_timeout = Some(SILENCE);
    let client = kube::Client::try_from(config.clone())?;
    // A write whose outcome is unknown is looked for, not repeated.
    config.default_retry = false;
    let once = kube::Client::try_from(config.clone())?;
    let mut registry = Registry::with_prefix("spiderpool_controller");
    let metrics = Metrics::register(&mut registry);
    let of_garbage = garbage::Metrics::register(&mut registry);
    let of_adoption = adoption::Metrics::register(&mut registry);
    let calls = runtime::Calls::register(&mut registry);
    let of_authority = matches!(source, Source::Own(_)).then(|| authority::Metrics::register(&mut registry));
    let address = every_address(args.admin_address);
    let admin = runtime::admin::bind::<fn() -> String>(address, "spiderpoolController.httpPort", registry, [])?;
    let listener = server::listen(every_address(args.webhook_address))?;

    let mut tasks = Tasks::default();
    let gate = Gate::default();
    let (index, watch_attachments) =
        attachments::watch(client.clone(), gate.hold("network attachments"), metrics.clone());
    let (namespaces, watch_namespaces) = namespaces::watch(client.clone(), gate.hold("namespaces"));
    let (nodes, watch_nodes) = nodes::watch(client.clone());
    // Not waited for: pods are judged without.
    let recent = pools::Recent::default();
    let (known_pools, watch_pools) = pools::watch(client.clone(), recent.clone());
    let candidate = Candidate { namespace: args.namespace.clone(), lease: args.lease, identity: args.pod_name.clone() };
    let (leading, hold_lease) = lease::hold(client.clone(), candidate, metrics.leads.clone(), tasks.stop());
    let authority_metrics = (metrics.clone(), of_authority.unwrap_or_default());
    let pair = source.shown(&mut tasks, &gate, &client, leading.clone(), authority_metrics)?;
    let (conf, watch_conf) = follow_conf(args.config_path, conf, metrics.clone()).context("cannot watch conf.yml")?;
    let (events, write_events) = events::writer(client.clone(), args.pod_name);
    let keep_definitions = definitions::keep(
        client.clone(),
        index.clone(),
        conf.clone(),
        leading.clone(),
        events.clone(),
        metrics.clone(),
    );
    let of_addresses = usage::Inputs {
        client: client.clone(),
        pools: known_pools.clone(),
        machines: nodes.machines,
        conf: conf.clone(),
        leading: leading.clone(),
        events,
    };
    let mirror = namespaces::mirror(client.clone(), namespaces.clone(), leading, conf.clone(), metrics.clone());
    let refused = metrics.connections_refused.clone();
    let namespaces = namespaces::Lookup::new(namespaces, client.clone(), metrics.clone());
    let by_annotation = ByAnnotation::new(conf.clone(), index.clone(), namespaces);
    let recent_networks = pools::Recent::default();
    let beside =
        Beside { attachments: index.clone(), pools: known_pools, recent, recent_networks, client: client.clone() };
    let (of_objects, counted) = (conf.clone(), metrics.clone());
    let lookup = Lookup::new(index, Live::new(client, metrics.clone()));
    let handler = Handler::new(conf, by_annotation, lookup, nodes.offers, metrics);
    let objects = Objects::new(of_objects, beside, counted, &handler);
    let stop = tasks.stop();
    let serve = async move {
        match stop.run_until_cancelled(pair.pair()).await {
            Some(pair) => server::serve(listener, pair, handler, objects, refused, stop).await,
            None => Ok(()),
        }
    };
    // What is known of the cluster is followed for as long as objects are judged, which is a little longer than until the
    // signal to stop.
    let serve = async {
        tokio::select! {
            ended = serve => ended,
            never = watch_attachments => match never {},
            never = watch_namespaces => match never {},
            never = watch_pools => match never {},
        }
    };

    tasks.spawn_dropped_at_stop("watching Nodes", watch_nodes);
    tasks.spawn_dropped_at_stop("watching conf.yml", watch_conf);
    tasks.spawn_dropped_at_stop("writing events", write_events);
    tasks.spawn_dropped_at_stop("keeping definitions", keep_definitions);
    tasks.spawn_dropped_at_stop("labelling namespaces", mirror);
    keep_addresses(&mut tasks, of_addresses, (once, config), args.namespace, (of_garbage, of_adoption, calls));
    tasks.spawn("holding the lease", hold_lease);
    tasks.spawn("serving the webhook", serve);
    tasks.spawn("reporting readiness", gate.open(admin.readiness(), tasks.stop()));
    admin.spawn();
    Ok(tasks.run(server::GRACE).await?)
}

/// What is done about addresses. `once` repeats no request by itself, nor does what is made of its configuration.
fn keep_addresses(
    tasks: &mut Tasks,
    inputs: usage::Inputs,
    (once, config): (kube::Client, kube::Config),
    namespace: String,
    (of_garbage, of_adoption, calls): (garbage::Metrics, adoption::Metrics, runtime::Calls),
) {
    let usage::Inputs { client: _, pools, machines, conf, leading, events } = &inputs;
    let (pools, machines, conf) = (pools.clone(), machines.clone(), conf.clone());
    let (leading, events) = (leading.clone(), events.clone());
    let (suspects, keep_usage) = usage::keep(inputs);
    let adopt = adoption::adopt(adoption::Inputs {
        client: once.clone(),
        config,
        namespace,
        pools: pools.clone(),
        conf: conf.clone(),
        leading: leading.clone(),
        events: events.clone(),
        metrics: of_adoption,
    });
    let counting = move |operation, outcome, took| calls.count(operation, outcome, took);
    let (provider, follow_conf) = store::provider::client(conf.clone(), Box::new(counting), runtime::since_boot);
    let collect = garbage::collect(garbage::Inputs {
        client: once,
        suspects,
        machines,
        pools,
        conf,
        provider,
        leading,
        events,
        metrics: of_garbage,
    });
    let collect = async {
        tokio::select! {
            never = collect => never,
            never = follow_conf => match never {},
        }
    };
    tasks.spawn_dropped_at_stop("counting addresses", keep_usage);
    tasks.spawn_dropped_at_stop("taking an earlier system over", adopt);
    tasks.spawn_dropped_at_stop("collecting what was left behind", collect);
}

/// The configuration in force, and the task that follows its file.
fn follow_conf(
    path: PathBuf,
    first: Conf,
    told: Metrics,
) -> Result<(watch::Receiver<Conf>, impl Future<Output = Result<(), Infallible>>), NoInotify> {
    conf_file::watch(path, first, Conf::parse, move |reading| {
        let (outcome, valid) = match reading {
            Reading::Applied { .. } => ("applied", 1),
            Reading::Refused(_) => ("refused", 0),
        };
        count(&told.reloads, outcome);
        told.conf_valid.set(valid);
    })
}

/// Where the certificate comes from.
enum Source {
    Files(Files, Pair),
    Own(Wanted),
}

impl Source {
    /// The pair in use; starts what keeps it.
    fn shown(
        self,
        tasks: &mut Tasks,
        gate: &Gate,
        client: &kube::Client,
        leading: Leading,
        metrics: (Metrics, authority::Metrics),
    ) -> anyhow::Result<First> {
        match self {
            Self::Files(files, pair) => {
                let watched = certificate::watch(files, pair, metrics.0);
                let (pair, watch) = watched.context("cannot watch the certificate")?;
                tasks.spawn_dropped_at_stop("watching the certificate", watch);
                Ok(First::There(pair))
            }
            Self::Own(wanted) => {
                let (first, show, keep) = authority::run(client, wanted, leading, gate.hold("certificate"), metrics);
                tasks.spawn_dropped_at_stop("showing the certificate", show);
                tasks.spawn_dropped_at_stop("keeping the certificate", keep);
                Ok(first)
            }
        }
    }
}
