//! What a pool asks of a pod, its namespace, its node and its network.

use std::cmp::Reverse;
use std::fmt;

/// How one rule of a pool stands to one pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// The pool does not ask.
    #[default]
    Absent,
    /// It asks, and this pod is as it asks.
    Holds,
    /// It asks for others.
    Fails,
}

/// All rules of one pool. A name of a node or a namespace counts instead of its affinity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// `spec.podAffinity`.
    pub pod: Rule,
    /// `spec.nodeName`.
    pub node_name: Rule,
    /// `spec.nodeAffinity`.
    pub node: Rule,
    /// `spec.namespaceName`.
    pub namespace_name: Rule,
    /// `spec.namespaceAffinity`.
    pub namespace: Rule,
    /// `spec.multusName`.
    pub network: Rule,
}

/// Why a pool is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Unfit {
    Terminating,
    Disabled,
    Unadopted,
    Version,
    NodeName,
    NodeAffinity,
    NamespaceName,
    NamespaceAffinity,
    PodAffinity,
    MultusName,
}

/// The pool that asks for most comes first: what was made for just such pods is not left for what anybody can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank(Reverse<[bool; 6]>);

impl Rules {
    pub(super) fn rank(self) -> Result<Rank, Unfit> {
        let Self { pod, node_name, node, namespace_name, namespace, network } = self;
        // Where a name counts, the affinity beside it is not looked at.
        let node = if node_name == Rule::Absent { node } else { Rule::Absent };
        let namespace = if namespace_name == Rule::Absent { namespace } else { Rule::Absent };
        for (rule, unfit) in [
            (node_name, Unfit::NodeName),
            (node, Unfit::NodeAffinity),
            (namespace_name, Unfit::NamespaceName),
            (namespace, Unfit::NamespaceAffinity),
            (pod, Unfit::PodAffinity),
            (network, Unfit::MultusName),
        ] {
            if rule == Rule::Fails {
                return Err(unfit);
            }
        }
        let asked = [pod, node_name, node, namespace_name, namespace, network].map(|rule| rule == Rule::Holds);
        Ok(Rank(Reverse(asked)))
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Terminating => "terminating IPPool",
            Self::Disabled => "disabled IPPool",
            Self::Unadopted => "records of an earlier system are being taken over, see its condition Adopted",
            Self::Version => "IPPool of another IP version",
            Self::NodeName => "spec.nodeName has not the pod's node",
            Self::NodeAffinity => "spec.nodeAffinity does not select the pod's node",
            Self::NamespaceName => "spec.namespaceName has not the pod's namespace",
            Self::NamespaceAffinity => "spec.namespaceAffinity does not select the pod's namespace",
            Self::PodAffinity => "spec.podAffinity does not select the pod",
            Self::MultusName => "spec.multusName has not the interface's network",
        })
    }
}
