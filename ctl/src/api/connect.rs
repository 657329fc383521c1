//! Which API server, and as whom.

use super::Server;
use crate::args::Cluster;
use crate::fault::Fault;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// A client by the kubeconfig; in a pod without one, by the pod's own account.
pub(crate) async fn connect(cluster: &Cluster) -> Result<Server, Fault> {
    let mut config = config(cluster).await?;
    config.connect_timeout = Some(cluster.request_timeout.into());
    // A write whose outcome is unknown is looked for, not repeated.
    config.default_retry = false;
    let url = config.cluster_url.to_string().trim_end_matches('/').to_owned();
    let namespace = config.default_namespace.clone();
    let client =
        Client::try_from(config).map_err(|error| Fault::NoClient { server: url.clone(), error: Box::new(error) })?;
    Ok(Server { client, url, namespace, deadline: cluster.request_timeout.into() })
}

async fn config(cluster: &Cluster) -> Result<Config, Fault> {
    let options = KubeConfigOptions { context: cluster.context.clone(), ..KubeConfigOptions::default() };
    let found = match &cluster.kubeconfig {
        Some(path) => match Kubeconfig::read_from(path) {
            Ok(file) => Config::from_custom_kubeconfig(file, &options).await,
            Err(error) => Err(error),
        },
        None if cluster.context.is_some() => Config::from_kubeconfig(&options).await,
        None => return Config::infer().await.map_err(|error| Fault::NoServer(Box::new(error))),
    };
    found.map_err(|error| Fault::NoServer(Box::new(error)))
}
