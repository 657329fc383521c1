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
