//! All that is known of one node.

use crate::agents::Agent;
use crate::fault::Seen;
use crate::held::Held;
use crate::machines::Machine;
use k8s_api::conf::Conf;
use k8s_openapi::api::core::v1::Pod;

/// Facts, as they were read.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) name: String,
    pub(super) machine: Seen<Option<Machine>>,
    /// Those that have not ended.
    pub(super) pods: Seen<Vec<Pod>>,
    pub(super) allocations: Seen<Vec<Held>>,
    pub(super) agent: Seen<Option<Agent>>,
    /// `conf.yml`.
    pub(super) conf: Seen<Conf>,
}
