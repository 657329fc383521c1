//! Wires the controller and runs it to its end.

use crate::admission::certificate::{self, Files};
use crate::admission::{Handler, server};
use crate::args::Daemon;
use crate::attachments::{self, Live, Lookup};
use crate::by_annotation::ByAnnotation;
use crate::lease::{self, Candidate};
use crate::metrics::{Metrics, count};
use crate::{namespaces, nodes};
use anyhow::Context;
use k8s_api::conf::Conf;
use prometheus_client::registry::Registry;
use runtime::admin::every_address;
use runtime::follow::Reading;
use runtime::{Gate, Tasks, conf_file};
use std::time::Duration;

/// A watch says nothing for as long as nothing happens, and is renewed before this: a server that died unnoticed is noticed.
const SILENCE: Duration = Duration::from_secs(135);

/// The lease of the controllers of a release, in its namespace.
const LEASE: &str = "spiderpool-controller";

pub(crate) fn run(args: Daemon) -> anyhow::Result<()> {
    let threads = usize::from(args.threads);
    tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?.block_on(serve(args))
}

async fn serve(args: Daemon) -> anyhow::Result<()> {
    let conf = conf_file::load(&args.config_path, Conf::parse)?;
    let files = Files { certificate: args.tls_server_cert, key: args.tls_server_key };
    let pair = certificate::load(&files).context("the webhook has no certificate")?;
    let mut config = kube::Config::infer().await.context("cannot tell where the API server is")?;
    config.read_timeout = Some(SILENCE);
    let client = kube::Client::try_from(config)?;
    let mut registry = Registry::with_prefix("spiderpool_controller");
    let metrics = Metrics::register(&mut registry);
    let address = every_address(args.admin_address);
    let admin = runtime::admin::bind::<fn() -> String>(address, "spiderpoolController.httpPort", registry, [])?;
    let listener = server::listen(every_address(args.webhook_address))?;

    let mut tasks = Tasks::default();
    let gate = Gate::default();
    let (index, watch_attachments) =
        attachments::watch(client.clone(), gate.hold("network attachments"), metrics.clone());
    let (namespaces, watch_namespaces) = namespaces::watch(client.clone(), gate.hold("namespaces"));
    let (offers, watch_nodes) = nodes::watch(client.clone());
    let (pair, watch_pair) =
        certificate::watch(files, pair, metrics.clone()).context("cannot watch the certificate")?;
    let told = metrics.clone();
    let (conf, watch_conf) = conf_file::watch(args.config_path, conf, Conf::parse, move |reading| {
        let (outcome, valid) = match reading {
            Reading::Applied { .. } => ("applied", 1),
            Reading::Refused(_) => ("refused", 0),
        };
        count(&told.reloads, outcome);
        told.conf_valid.set(valid);
    })
    .context("cannot watch conf.yml")?;
    let candidate = Candidate { namespace: args.namespace, lease: LEASE.to_owned(), identity: args.pod_name };
    let (leading, hold_lease) = lease::hold(client.clone(), candidate, tasks.stop());
    let mirror = namespaces::mirror(client.clone(), namespaces.clone(), leading, conf.clone(), metrics.clone());
    let refused = metrics.connections_refused.clone();
    let namespaces = namespaces::Lookup::new(namespaces, client.clone(), metrics.clone());
    let by_annotation = ByAnnotation::new(conf.clone(), index.clone(), namespaces);
    let lookup = Lookup::new(index, Live::new(client, metrics.clone()));
    let handler = Handler::new(conf, by_annotation, lookup, offers, metrics);
    let serve = server::serve(listener, pair, handler, refused, tasks.stop());
    // Attachments and namespaces are followed for as long as pods are judged, which is a little longer than until the
    // signal to stop.
    let serve = async {
        tokio::select! {
            ended = serve => ended,
            never = watch_attachments => match never {},
            never = watch_namespaces => match never {},
        }
    };

    tasks.spawn_dropped_at_stop("watching Nodes", watch_nodes);
    tasks.spawn_dropped_at_stop("watching the certificate", watch_pair);
    tasks.spawn_dropped_at_stop("watching conf.yml", watch_conf);
    tasks.spawn("holding the lease", hold_lease);
    tasks.spawn_dropped_at_stop("labelling namespaces", mirror);
    tasks.spawn("serving the webhook", serve);
    tasks.spawn("reporting readiness", gate.open(admin.readiness(), tasks.stop()));
    admin.spawn();
    Ok(tasks.run(server::GRACE).await?)
}
