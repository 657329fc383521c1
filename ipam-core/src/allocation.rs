//! Who has an address: the object `SpiderIPAllocation` as values.

use crate::Address;
use std::time::Duration;

/// One reserved address. That it exists is the reservation: the API server takes no second one of its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Allocation {
    /// Pool that it is from.
    pub pool: String,
    /// The address, which is the object's name.
    pub address: Address,
    /// Who holds it.
    pub node: Node,
    /// The pod that it is for.
    pub pod: Pod,
    /// The pod's top controller when the address was reserved.
    pub owner: Option<Owner>,
    /// The sandbox that uses it.
    pub container_id: String,
    /// Interface in the pod.
    pub interface: String,
    /// Attachment (`namespace/name`) that it is for.
    pub network: String,
    /// Network namespace of the sandbox.
    pub netns: Option<Netns>,
    /// Boot of the machine in which the sandbox was made.
    pub boot_id: String,
    /// New in every write that precedes a publish: a write that fences older ones.
    pub flow_id: String,
    /// What is being done with it.
    pub state: State,
    /// Present as soon as the cloud *may* know the address.
    pub provider: Option<Binding>,
    /// The sandbox is gone while the pod lives on or is retained.
    pub detached: bool,
    /// What a person asked for.
    pub release_request: Option<ReleaseRequest>,
}

/// Stands for a sandbox that there may be, of which nobody knows the id: that of an address that was taken over from an earlier
/// system. (No id at all says that there is none.) No runtime has such an id.
pub const UNKNOWN_SANDBOX: &str = "unknown";

/// What is being done with an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// It belongs to the pod.
    Held,
    /// The cloud is being asked to let go of it.
    Releasing(Releasing),
}

/// A release on its way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Releasing {
    /// Random id of the process start that releases, never a node's name.
    pub releaser: String,
    /// What becomes of the allocation when the cloud has let go.
    pub then: Then,
}

/// What becomes of an allocation after its release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Then {
    /// The address is free.
    Delete,
    /// It stays with its pod, unbound.
    Keep,
}

/// A node, told apart from others of its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Node {
    /// Name of the Node.
    pub name: String,
    /// UID of the Node.
    pub uid: String,
    /// The machine behind it.
    pub machine_id: String,
}

/// A pod, told apart from others of its name. The UID is the one that the kubelet uses: a static pod's is the hash of its file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Pod {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
}

/// A controller of pods, as in an ownerReference.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Owner {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
}

/// A network namespace, told apart from others at its path, as stat(2) does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Netns {
    /// Where it is mounted.
    pub path: String,
    /// Device.
    pub dev: u64,
    /// Inode.
    pub inode: u64,
}

/// What the cloud was told, or is about to be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Binding {
    /// Which provider: its `serverUrl`.
    pub server: String,
    /// Subnet of the address.
    pub subnet: String,
    /// NIC of the node that carries it.
    pub parent_nic_mac: String,
    /// Fresh in every write that precedes an allocate call.
    pub bind_id: String,
    /// How long calls that were sent under this version may still take effect, counted by each reader from when it first
    /// saw the version.
    pub settle: Duration,
}

/// A person's wish to release an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReleaseRequest {
    /// Who.
    pub by: String,
    /// When, RFC 3339.
    pub at: String,
    /// Do not ask the cloud: it is known to be free there, or that is accepted.
    pub abandon: bool,
}

/// A version of an object; the next write must match it, or it is a conflict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Version {
    /// UID of the object: the same name may have been given again.
    pub uid: String,
    /// Its resourceVersion.
    pub resource: String,
}

/// A value as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored<T> {
    /// The value.
    pub value: T,
    /// Its version.
    pub version: Version,
    /// When this process first saw this version, on its own clock ([`crate::Host::now`]).
    pub seen: Duration,
}

impl Owner {
    /// Whether pods of such a controller come back, and keep their addresses.
    #[must_use]
    pub fn retains(&self) -> bool {
        matches!(
            (self.api_version.split('/').next(), self.kind.as_str()),
            (Some("apps"), "StatefulSet") | (Some("kubevirt.io"), "VirtualMachine" | "VirtualMachineInstance")
        )
    }

    /// Whether it is a virtual machine: one pod after the other, each under a name of its own.
    #[must_use]
    pub fn is_machine(&self) -> bool {
        self.retains() && self.kind != "StatefulSet"
    }
}

impl Allocation {
    /// Of the cloud's binding, if there may be one.
    #[must_use]
    pub fn bind_id(&self) -> Option<&str> {
        self.provider.as_ref().map(|binding| binding.bind_id.as_str())
    }

    /// Whether there may be a sandbox that uses it and of which nothing is known.
    #[must_use]
    pub fn sandbox_unknown(&self) -> bool {
        self.container_id == UNKNOWN_SANDBOX
    }

    /// Whether it belongs to its pod, as opposed to being released.
    #[must_use]
    pub fn held(&self) -> bool {
        self.state == State::Held
    }
}
