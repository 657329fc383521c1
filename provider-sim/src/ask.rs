//! A request that keeps the contract, out of what came.
//!
//! Refused is what the contract does not allow, each with the name of its field. Fields that it does not know are allowed: a
//! later version of it may have them.

use crate::mac::Mac;
use crate::wire::{AllocateRequest, Operation, ReleaseRequest};
use ipam_core::{Address, Subnet};
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;

/// Whose an address is. What was not said is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pod {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
}

/// A call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Bind these.
    Allocate(Allocate),
    /// Release this.
    Release(Release),
}

/// Addresses that are to be bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Allocate {
    /// For whom.
    pub pod: Pod,
    /// Where.
    pub node: String,
    /// Which; at least one, none twice.
    pub addresses: Vec<Wanted>,
}

/// An address that is to be bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The address.
    pub address: Address,
    /// Its subnet, which holds it.
    pub subnet: Subnet,
    /// The NIC.
    pub parent: Mac,
}

/// An address that is to be released.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Release {
    /// Whose it was, as far as the sender knows.
    pub pod: Pod,
    /// Where.
    pub node: String,
    /// The NIC, if the sender knows it.
    pub parent: Option<Mac>,
    /// Its subnet, which holds it.
    pub subnet: Subnet,
    /// The address.
    pub address: Address,
}

/// A request that breaks the contract.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {why}")]
pub(crate) struct Breach {
    /// Where in the request.
    pub field: String,
    /// What is wrong, and what to do.
    pub why: String,
}

impl Breach {
    #[allow(clippy::needless_pass_by_value, reason = "texts and errors are handed over alike")]
    pub(crate) fn new(field: impl Into<String>, why: impl ToString) -> Self {
        Self { field: field.into(), why: why.to_string() }
    }
}

impl Asked {
    /// Reads the body of a call.
    pub(crate) fn read(operation: Operation, body: &[u8]) -> Result<Self, Breach> {
        match operation {
            Operation::Allocate => Allocate::check(json(body)?).map(Self::Allocate),
            Operation::Release => Release::check(json(body)?).map(Self::Release),
        }
    }

    /// The pod that it is about.
    #[must_use]
    pub(crate) const fn pod(&self) -> &Pod {
        match self {
            Self::Allocate(allocate) => &allocate.pod,
            Self::Release(release) => &release.pod,
        }
    }

    /// The node that it is about.
    #[must_use]
    pub(crate) fn node(&self) -> &str {
        match self {
            Self::Allocate(allocate) => &allocate.node,
            Self::Release(release) => &release.node,
        }
    }

    /// Whether it is about this address, too.
    #[must_use]
    pub(crate) fn names(&self, address: Address) -> bool {
        match self {
            Self::Allocate(allocate) => allocate.addresses.iter().any(|wanted| wanted.address == address),
            Self::Release(release) => release.address == address,
        }
    }
}

impl Allocate {
    fn check(raw: AllocateRequest) -> Result<Self, Breach> {
        let AllocateRequest { pod_name, pod_namespace, pod_uid, node_name, addresses } = raw;
        let list = "iaasIPsAllocationRequest";
        if addresses.is_empty() {
            return Err(Breach::new(list, "it is empty; name at least one address"));
        }
        let mut seen = BTreeSet::new();
        let mut wanted = Vec::with_capacity(addresses.len());
        for (at, asked) in addresses.iter().enumerate() {
            let field = |name: &str| format!("{list}[{at}].{name}");
            let (address, subnet) = place(&asked.ip_address, &asked.subnet, field)?;
            let parent = filled(&asked.parent_nic_mac, field("parentNicMac"))?;
            let parent = parent.parse().map_err(|why| Breach::new(field("parentNicMac"), why))?;
            if !seen.insert(address) {
                return Err(Breach::new(field("ipAddress"), format!("{address} is there twice; name it once")));
            }
            wanted.push(Wanted { address, subnet, parent });
        }
        let pod = Pod { namespace: pod_namespace, name: pod_name, uid: pod_uid };
        Ok(Self { pod, node: node(node_name)?, addresses: wanted })
    }
}

impl Release {
    fn check(raw: ReleaseRequest) -> Result<Self, Breach> {
        let ReleaseRequest { pod_name, pod_namespace, pod_uid, node_name, parent_nic_mac, subnet, ip_address } = raw;
        let (address, subnet) = place(&ip_address, &subnet, str::to_owned)?;
        let parent = match parent_nic_mac.as_str() {
            "" => None,
            text => Some(text.parse().map_err(|why| Breach::new("parentNicMac", why))?),
        };
        let pod = Pod { namespace: pod_namespace, name: pod_name, uid: pod_uid };
        Ok(Self { pod, node: node(node_name)?, parent, subnet, address })
    }
}

fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Breach> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let read = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        // `?`: it ends before it says where it is.
        let field = if path == "." || path == "?" { "body".to_owned() } else { path };
        Breach::new(field, error.into_inner())
    })?;
    reader.end().map_err(|error| Breach::new("body", error))?;
    Ok(read)
}

fn filled(text: &str, field: String) -> Result<&str, Breach> {
    if text.is_empty() { Err(Breach::new(field, "it is empty, but required")) } else { Ok(text) }
}

fn node(name: String) -> Result<String, Breach> {
    filled(&name, "nodeName".to_owned())?;
    Ok(name)
}

/// An address and the subnet that holds it.
fn place(address: &str, subnet: &str, field: impl Fn(&str) -> String) -> Result<(Address, Subnet), Breach> {
    let at = field("ipAddress");
    let text = filled(address, at.clone())?;
    let address: Address = text.parse().map_err(|why| Breach::new(at.clone(), why))?;
    if address.to_string() != text {
        return Err(Breach::new(at, format!("it is not the usual spelling; write {address}")));
    }
    let within = field("subnet");
    let subnet: Subnet = filled(subnet, within.clone())?.parse().map_err(|why| Breach::new(within.clone(), why))?;
    if !subnet.contains(address) {
        return Err(Breach::new(within, format!("{subnet} does not hold {address}")));
    }
    Ok((address, subnet))
}
