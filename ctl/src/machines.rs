//! Nodes, as far as addresses care.

use crate::api::Server;
use crate::fault::{Fault, Seen};
use crate::quantity::count;
use crate::requests::{self, Counts, is_extended};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use std::collections::BTreeMap;

/// Path of the kind.
pub(crate) const PATH: &str = "/api/v1/nodes";

/// Taint by which a person states that a machine is off.
pub(crate) const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// One Node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Machine {
    pub(crate) name: String,
    pub(crate) uid: String,
    /// The machine behind it.
    pub(crate) id: String,
    /// Whether the kubelet says so.
    pub(crate) ready: bool,
    pub(crate) cordoned: bool,
    pub(crate) out_of_service: bool,
    pub(crate) labels: BTreeMap<String, String>,
    /// Extended resources alone.
    pub(crate) capacity: Counts,
    pub(crate) allocatable: Counts,
}

impl Machine {
    pub(crate) fn read(node: Node) -> Self {
        let (spec, status) = (node.spec.unwrap_or_default(), node.status.unwrap_or_default());
        let ready = status.conditions.iter().flatten().find(|condition| condition.type_ == "Ready");
        Self {
            name: node.metadata.name.unwrap_or_default(),
            uid: node.metadata.uid.unwrap_or_default(),
            labels: node.metadata.labels.unwrap_or_default(),
            id: status.node_info.map(|info| info.machine_id).unwrap_or_default(),
            ready: ready.is_some_and(|condition| condition.status == "True"),
            cordoned: spec.unschedulable == Some(true),
            out_of_service: spec.taints.iter().flatten().any(|taint| taint.key == OUT_OF_SERVICE),
            capacity: counts(status.capacity.as_ref()),
            allocatable: counts(status.allocatable.as_ref()),
        }
    }

    /// Whether an allocation that names this Node's name, that UID and that machine is of it.
    pub(crate) fn is(&self, uid: &str, id: &str) -> bool {
        uid.is_empty() || self.uid == uid || (!id.is_empty() && self.id == id)
    }
}

fn counts(all: Option<&BTreeMap<String, Quantity>>) -> Counts {
    let extended = all.into_iter().flatten().filter(|(name, _)| is_extended(name));
    extended.filter_map(|(name, quantity)| Some((name.clone(), count(&quantity.0)?))).collect()
}

/// The Node of a name. By a list: who may list Nodes may not always get them, as the controller.
pub(crate) async fn one(server: &Server, name: &str) -> Result<Seen<Option<Machine>>, Fault> {
    let found = server.list::<Node>(PATH, &format!("metadata.name={name}"), "").await?;
    Ok(found.map(|found| found.into_iter().next().map(Machine::read)))
}

/// Every Node.
pub(crate) async fn all(server: &Server) -> Result<Seen<Vec<Machine>>, Fault> {
    let mut all = Vec::new();
    Ok(server.each(PATH, "", "", |node: Node| all.push(Machine::read(node))).await?.map(|()| all))
}

/// Pods that hold something on a Node.
pub(crate) async fn pods(server: &Server, node: &str) -> Result<Seen<Vec<Pod>>, Fault> {
    let fields = format!("spec.nodeName={node},status.phase!=Succeeded,status.phase!=Failed");
    server.list::<Pod>("/api/v1/pods", &fields, "").await
}

/// What the pods of a Node ask for together.
pub(crate) async fn requested(server: &Server, node: &str) -> Result<Seen<Counts>, Fault> {
    let add = |pods: Vec<Pod>| {
        let mut sum = Counts::new();
        for pod in &pods {
            requests::add(&mut sum, &requests::of(pod));
        }
        sum
    };
    Ok(pods(server, node).await?.map(add))
}
