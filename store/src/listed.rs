//! Objects as values, for who lists them without an index.

use crate::{allocation, endpoint, name};
use ipam_core::{Address, Allocation, Endpoint};
use kube::api::DynamicObject;

/// What an allocation says, or why it cannot be read. Its address is taken all the same.
pub fn allocation_of(object: &DynamicObject) -> Result<Allocation, String> {
    allocation::read(object).map_err(|error| error.to_string())?.what
}

/// What an endpoint says, or why it cannot be read.
pub fn endpoint_of(object: &DynamicObject) -> Result<Endpoint, String> {
    endpoint::read(object).map(|(value, _)| value).map_err(|error| error.to_string())
}

/// Name of the allocation of an address.
#[must_use]
pub fn name_of(address: Address) -> String {
    name::of(address)
}

/// The address that an allocation of this name has.
#[must_use]
pub fn address_of(name: &str) -> Option<Address> {
    name::address(name)
}
