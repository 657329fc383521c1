//! The agents of nodes.

use crate::api::Server;
use crate::fault::{Fault, Seen};
use k8s_openapi::api::core::v1::Pod;
use std::collections::BTreeMap;

/// Where plugins find the agent.
const SOCKET: &str = "ipam-socket";

/// How it stands with the agent of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Agent {
    /// `namespace/name`.
    pub(crate) pod: String,
    pub(crate) ready: bool,
}

/// Agents by their nodes: of all, or of one.
pub(crate) async fn list(server: &Server, node: Option<&str>) -> Result<Seen<BTreeMap<String, Agent>>, Fault> {
    let fields = node.map(|node| format!("spec.nodeName={node}")).unwrap_or_default();
    let mut agents = BTreeMap::new();
    let take = |pod: Pod| {
        if let Some((node, agent)) = read(&pod) {
            let one = agents.entry(node).or_insert_with(|| agent.clone());
            // Of two of a roll-out the one that works counts.
            if agent.ready {
                *one = agent;
            }
        }
    };
    let seen = server.each("/api/v1/pods", &fields, "app.kubernetes.io/name=spiderpool", take).await?;
    Ok(seen.map(|()| agents))
}

/// Of the pods of the chart, those that run the agent: names are values, its volume of this name is not.
fn read(pod: &Pod) -> Option<(String, Agent)> {
    let spec = pod.spec.as_ref()?;
    if !spec.volumes.iter().flatten().any(|volume| volume.name == SOCKET) {
        return None;
    }
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let ready = conditions.clone().any(|condition| condition.type_ == "Ready" && condition.status == "True");
    let name = |text: &Option<String>| text.clone().unwrap_or_default();
    let pod = format!("{}/{}", name(&pod.metadata.namespace), name(&pod.metadata.name));
    Some((spec.node_name.clone()?, Agent { pod, ready }))
}
