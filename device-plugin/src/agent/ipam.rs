//! What stands behind the edge.

use ipam_core::{Add, Answer, Del, Failed, Interface, Pod, Undo};
use k8s_api::conf::Detection;

/// An ADD as it was asked for. [`Add::parent`] is not set yet: `link` says of which NIC its MAC is to be taken, and whether
/// the network is a provider's.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) add: Add,
    pub(crate) link: Link,
    pub(crate) ipv4_pools: Vec<String>,
    pub(crate) ipv6_pools: Vec<String>,
    pub(crate) match_master_subnet: bool,
}

/// What the network's configuration says of the link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Link {
    /// `type` of the plugin that makes it.
    pub(crate) kind: String,
    pub(crate) master: String,
    /// Written, be it 0.
    pub(crate) vlan_id: Option<u16>,
    pub(crate) vlan_mode: String,
}

impl Link {
    /// Whether VLAN and MAC come from a provider.
    pub(crate) fn provided(&self) -> bool {
        self.kind == "vlan" && self.vlan_id.is_none() && self.vlan_mode != "manual"
    }
}

/// The flows of addresses. Each ends by itself at an answer, whatever becomes of its caller.
pub(crate) trait Ipam: Send + Sync + 'static {
    fn add(&self, asked: Asked) -> impl Future<Output = Result<Answer, Failed>> + Send;
    /// Gives back what a failed ADD had, after its caller was answered.
    fn undo(&self, undo: Undo) -> impl Future<Output = ()> + Send;
    fn del(&self, del: Del) -> impl Future<Output = ()> + Send;
    /// Whether an interface still has these addresses; else why not, for people.
    fn check(&self, add: Add, cidrs: Vec<String>) -> impl Future<Output = Result<(), String>> + Send;
    /// Lets go of what `in_use` does not name, on this node, of this network, if the pod is dead.
    fn gc(&self, network: String, in_use: Vec<Del>) -> impl Future<Output = Result<(), String>> + Send;
    fn get(&self, pod: Pod) -> impl Future<Output = Result<Vec<Interface>, String>> + Send;
    /// What plugins ask a pod's network, as it is configured now.
    fn detection(&self) -> Detection;
    /// Whether an ADD would be tried, else what is missing.
    fn ready(&self) -> Result<(), String>;
}
