//! Asks the kubelet which devices pods hold (`PodResources` API).

use super::dial::dial;
use super::in_use::Ids;
use proto::podresources::pod_resources_lister_client::PodResourcesListerClient;
use proto::podresources::{ListPodResourcesRequest, PodResources};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::timeout;
use tonic::transport::Channel;

/// The kubelet answers from memory.
const ANSWER: Duration = Duration::from_secs(1);
/// What the kubelet's own client takes. 110 pods with a few hundred devices stay far below.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Why the kubelet did not say.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unknown {
    #[error("cannot connect to {0}")]
    Connect(String, #[source] Option<tonic::transport::Error>),
    #[error("the kubelet refused to list pod resources: {}", .0.message())]
    Refused(tonic::Status),
    #[error("the kubelet did not list pod resources within {ANSWER:?}")]
    Slow,
    #[error("the kubelet lists no pod, not even this agent's; it has just started")]
    NotYet,
}

/// Where the kubelet serves the API: below its root folder.
pub(crate) fn sockets(roots: [&Path; 2]) -> Vec<PathBuf> {
    let mut sockets: Vec<_> = roots.iter().map(|root| root.join("pod-resources/kubelet.sock")).collect();
    sockets.dedup();
    sockets
}

/// The devices that pods hold now.
pub(super) async fn ask(sockets: &[PathBuf]) -> Result<Ids, Unknown> {
    let channel = connect(sockets).await?;
    let mut client = PodResourcesListerClient::new(channel).max_decoding_message_size(ANSWER_BYTES_MAX);
    let answer = timeout(ANSWER, client.list(ListPodResourcesRequest {})).await.map_err(|_| Unknown::Slow)?;
    ids(answer.map_err(Unknown::Refused)?.into_inner().pod_resources)
}

/// The first of the sockets that takes a connection: a dead kubelet leaves its file behind.
async fn connect(sockets: &[PathBuf]) -> Result<Channel, Unknown> {
    let mut refused = None;
    for socket in sockets {
        match timeout(ANSWER, dial(socket)).await {
            Ok(Ok(channel)) => return Ok(channel),
            Ok(Err(error)) => refused = refused.or(Some(error)),
            Err(_) => {}
        }
    }
    let sockets: Vec<_> = sockets.iter().map(|socket| socket.display().to_string()).collect();
    Err(Unknown::Connect(sockets.join(" or "), refused))
}

/// The devices in an answer. This agent is a pod itself, so an answer without any is none.
fn ids(pods: Vec<PodResources>) -> Result<Ids, Unknown> {
    if pods.is_empty() {
        return Err(Unknown::NotYet);
    }
    let mut listed = Ids::new();
    for devices in pods.into_iter().flat_map(|pod| pod.containers).flat_map(|container| container.devices) {
        listed.entry(devices.resource_name).or_default().extend(devices.device_ids);
    }
    Ok(listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_any_pod_is_none() {
        assert!(matches!(ids(Vec::new()), Err(Unknown::NotYet)));
        assert_eq!(ids(vec![PodResources::default()]).expect("a pod without devices"), Ids::new());
    }
}
