//! A network interface of the node, as far as the rules look at it.

/// What the kernel says of one link. Up, down and carrier do not matter: the scheduler asks whether the NIC is there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nic {
    /// Interface name, at most 15 bytes.
    pub name: String,
    /// Where its packets go.
    pub kind: NicKind,
}

/// How the kernel backs a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NicKind {
    /// `/sys/class/net/<name>/device` exists: hardware, SR-IOV functions and their representors.
    Physical,
    /// Bonds, VLANs, bridges, veths and the like.
    Virtual,
    /// Never a master.
    Loopback,
}
