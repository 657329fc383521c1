//! Every name that a user, a manifest or a dashboard relies on, once.

/// Domain of the resources, labels and annotations of this project.
pub const DOMAIN: &str = "spidernet.io";

/// Resource that counts the cloud sub-interfaces which a node can still carry, unless a rule names another.
pub const SUB_ENI: &str = "spidernet.io/sub-eni";

/// Device ids of sub-interface resources are this, a dash and a number.
pub const SUB_ENI_STEM: &str = "sub-eni";

/// What follows the NIC's name in a NIC resource and in its device ids: `eth1-nic`, `eth1-nic-0`.
pub const NIC_SUFFIX: &str = "-nic";

/// The kubelet's root folder unless configured (`--root-dir`).
pub const KUBELET_ROOT_DIR: &str = "/var/lib/kubelet";

/// Annotations of an attachment, a pod or a namespace: a pod gets every attachment with the value that it, or else its
/// namespace, has. Looked at in this order.
pub const INJECT: [&str; 2] = ["cni.spidernet.io/rdma-resource-inject", "cni.spidernet.io/network-resource-inject"];

/// Annotation of a namespace: other namespaces whose pods may get its attachments by [`INJECT`], comma-separated; `*` is
/// all of them.
pub const INJECT_FROM: &str = "cni.spidernet.io/allow-inject-from";

/// Label of a namespace whose pods are all looked at; the controller keeps it as [`INJECT_LABEL_VALUE`] where the namespace
/// has one of [`INJECT`]. `false`, on a namespace or a pod, is the way out.
pub const INJECT_LABEL: &str = "cni.spidernet.io/inject";

/// The value of [`INJECT_LABEL`] that the controller writes, and the only one that it removes.
pub const INJECT_LABEL_VALUE: &str = "by-annotation";

/// Annotation of a pod: pools of each of its interfaces.
pub const POD_POOLS: &str = "ipam.spidernet.io/ippools";

/// Annotation of a pod: pools of any interface that [`POD_POOLS`] does not name.
pub const POD_POOL: &str = "ipam.spidernet.io/ippool";

/// Annotation of a pod: routes besides those of its pools.
pub const POD_ROUTES: &str = "ipam.spidernet.io/routes";

/// Annotations of a namespace, IPv4 and IPv6: pools of pods that name none.
pub const NAMESPACE_POOLS: [&str; 2] =
    ["ipam.spidernet.io/default-ipv4-ippool", "ipam.spidernet.io/default-ipv6-ippool"];

/// Finalizer of a pool of which pods may have addresses.
pub const POOL_FINALIZER: &str = "spiderpool.spidernet.io";

/// Annotation of addresses and endpoints: the resourceVersion that the last write replaced. It makes every write a new
/// version: the API server drops one that changes nothing. By it a policy tells our writes of endpoints from those of an
/// earlier system, which may have the same accounts.
pub const REPLACES: &str = "spiderpool.spidernet.io/replaces";

/// The value of [`REPLACES`] on a new endpoint. No object has this version.
pub const REPLACES_NOTHING: &str = "0";

/// Event on a pool: a person's request to release an address of it is not carried out.
pub const RELEASE_DECLINED: &str = "ReleaseDeclined";

/// Its text. `pod` is `namespace/name`.
#[must_use]
pub fn release_declined(address: impl std::fmt::Display, by: &str, pod: &str) -> String {
    format!("{address} is not released as {by} asked: its pod {pod} is there; delete the pod instead")
}
