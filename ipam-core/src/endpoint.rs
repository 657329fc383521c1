//! What a pod has: the object `SpiderEndpoint` as values.

use crate::{Address, Allocation, Owner, Pod};

/// The interfaces of one pod, under the pod's name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// The pod that has the name now.
    pub pod: Pod,
    /// Node that it runs on.
    pub node: String,
    /// The pod's top controller.
    pub owner: Option<Owner>,
    /// UID of the pod's object, which takes the endpoint along when it goes; none for a pod that is retained. (A static pod's
    /// object has another UID than the pod.)
    pub goes_with: Option<String>,
    /// One entry an interface.
    pub interfaces: Vec<Interface>,
}

/// One interface of a pod.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Interface {
    /// Its name in the pod.
    pub name: String,
    /// At most one of each family.
    pub addresses: Vec<Assigned>,
    /// VLAN id, 1 to 4094.
    pub vlan: Option<u16>,
    /// MAC address.
    pub mac: Option<String>,
    /// No default route through this interface.
    pub clean_gateway: bool,
    /// Further routes.
    pub routes: Vec<Route>,
    /// Which binding of the cloud this entry shows; an entry of another is no entry.
    pub bind_id: Option<String>,
}

/// An address of an interface.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Assigned {
    /// The address.
    pub address: Address,
    /// Length of its subnet's prefix.
    pub prefix: u8,
    /// Pool that it is from.
    pub pool: String,
    /// Gateway, if the pool has one.
    pub gateway: Option<Address>,
}

/// A route of a pod, as the pool writes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Route {
    /// Destination, as a subnet.
    pub dst: String,
    /// Gateway to it.
    pub gw: String,
}

impl Endpoint {
    /// The entry that shows `allocation`: same pod, same interface, same address, same binding. Anything else is no entry.
    #[must_use]
    pub fn entry(&self, allocation: &Allocation) -> Option<&Interface> {
        if self.pod.uid == allocation.pod.uid { self.shows(allocation) } else { None }
    }

    /// The same, of whichever pod has the name: a retained pod's successor takes it over.
    #[must_use]
    pub fn shows(&self, allocation: &Allocation) -> Option<&Interface> {
        self.interfaces.iter().find(|interface| {
            interface.name == allocation.interface
                && interface.addresses.iter().any(|assigned| assigned.address == allocation.address)
                && interface.bind_id.as_deref() == allocation.bind_id()
        })
    }
}
