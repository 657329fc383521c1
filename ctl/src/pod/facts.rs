//! All that is known of one pod.

use super::network::Network;
use crate::agents::Agent;
use crate::fault::Seen;
use crate::held::Held;
use crate::machines::Machine;
use crate::pools::Pool;
use crate::requests::Counts;
use k8s_api::conf::Conf;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use k8s_openapi::jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use store::Endpoint;

/// Facts, as they were read.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) now: Timestamp,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) pod: Option<Pod>,
    pub(super) of_namespace: Seen<Option<Namespace>>,
    /// Where spiderpool is installed.
    pub(super) system_namespace: String,
    /// `conf.yml`.
    pub(super) conf: Seen<Conf>,
    /// In the order in which Multus makes them; of those alone that annotations name legibly.
    pub(super) networks: Vec<Network>,
    pub(super) pools: Seen<Vec<Pool>>,
    /// How many addresses nobody has, of the pools that the pod may use.
    pub(super) free: BTreeMap<String, Seen<u128>>,
    /// The pod's node; of a pod without one those that offer what it waits for.
    pub(super) nodes: Seen<Vec<Machine>>,
    /// Nodes that offer it as well, beyond those looked at.
    pub(super) more_nodes: usize,
    /// What pods ask of each of these nodes.
    pub(super) requested: BTreeMap<String, Seen<Counts>>,
    /// Agents by their nodes, of the pod's node alone.
    pub(super) agents: Seen<BTreeMap<String, Agent>>,
    /// Of the pod's name, whatever their UID.
    pub(super) allocations: Seen<Vec<Held>>,
    /// Of these, those whose controller still has a place for the name.
    pub(super) retained: BTreeSet<String>,
    pub(super) endpoint: Seen<Option<Result<Endpoint, String>>>,
    /// Latest first.
    pub(super) events: Seen<Vec<Occurred>>,
}

/// An event of the pod's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Occurred {
    pub(super) warning: bool,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) at: Option<Timestamp>,
}

impl Facts {
    /// The pod's UID as the kubelet has it: a static pod's is the hash of its file.
    pub(super) fn uids(&self) -> Vec<&str> {
        let Some(pod) = &self.pod else { return Vec::new() };
        let hash = pod.metadata.annotations.iter().flatten().find(|(key, _)| *key == "kubernetes.io/config.hash");
        pod.metadata.uid.as_deref().into_iter().chain(hash.map(|(_, value)| value.as_str())).collect()
    }

    pub(super) fn node(&self) -> Option<&str> {
        self.pod.as_ref()?.spec.as_ref()?.node_name.as_deref().filter(|node| !node.is_empty())
    }

    pub(super) fn phase(&self) -> &str {
        self.pod.as_ref().and_then(|pod| pod.status.as_ref()?.phase.as_deref()).unwrap_or_default()
    }

    pub(super) fn annotation(&self, key: &str) -> Option<&str> {
        self.pod.as_ref()?.metadata.annotations.as_ref()?.get(key).map(String::as_str)
    }

    /// Whether it runs, so that its sandbox has been made.
    pub(super) fn runs(&self) -> bool {
        self.phase() == "Running"
    }

    pub(super) fn has_ended(&self) -> bool {
        matches!(self.phase(), "Succeeded" | "Failed")
    }

    pub(super) fn host_network(&self) -> bool {
        self.pod.as_ref().and_then(|pod| pod.spec.as_ref()?.host_network).unwrap_or_default()
    }
}
