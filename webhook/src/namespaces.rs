//! The namespaces of the cluster, as far as injection by annotation goes: what a watch knows of them, a look-up for one
//! that it does not know yet, and the label that mirrors their annotations.

mod facts;
mod known;
mod lookup;
mod mirror;
mod watch;

#[cfg(test)]
pub(crate) use facts::Facts;
pub(crate) use known::Namespaces;
pub(crate) use lookup::{Lookup, Unresolved};
pub(crate) use mirror::mirror;
pub(crate) use watch::watch;
