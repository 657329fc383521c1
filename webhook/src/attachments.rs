//! The network attachments of the cluster: an index that a watch keeps, and a look-up for what is not in it yet.

mod config;
mod definition;
mod index;
mod live;
mod lookup;
mod values;
mod watch;

pub(crate) use config::{Config, READY};
pub(crate) use definition::{Definition, FIELD_MANAGER, Made};
pub(crate) use index::Index;
pub(crate) use live::Live;
pub(crate) use lookup::{Lookup, SYNC, Unresolved, WAIT};
pub(crate) use watch::{configs, definitions, watch};
