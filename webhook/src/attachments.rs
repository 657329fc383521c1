//! The network attachments of the cluster: an index that a watch keeps, and a look-up for what is not in it yet.

mod config;
mod definition;
mod index;
mod live;
mod lookup;
mod watch;

pub(crate) use config::{Config, READY};
pub(crate) use definition::{Definition, FIELD_MANAGER, Made};
pub(crate) use index::Index;
pub(crate) use live::Live;
pub(crate) use lookup::Lookup;
pub(crate) use watch::{RENEW_SECONDS, configs, definitions, resilient, watch};
