//! The address pools of the cluster: what a watch shows of them, and what was admitted a moment ago.

mod live;
mod recent;
mod watch;

pub(crate) use live::{Live, NotAsked};
pub(crate) use recent::Recent;
pub(crate) use watch::{pools, reference, watch};

use crate::objects::ip_pool::Pool;
use crate::usage::Shown;
use ipam_core::Family;
use std::collections::BTreeMap;

/// Every pool by its name.
pub(crate) type Pools = BTreeMap<String, Known>;

/// What is known of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    Pool(Pool),
    /// Its subnet cannot be read; it has a name, and gives no address.
    Unreadable,
}

impl Known {
    pub(crate) fn pool(&self) -> Option<&Pool> {
        match self {
            Self::Pool(pool) => Some(pool),
            Self::Unreadable => None,
        }
    }

    pub(crate) fn family(&self) -> Option<Family> {
        self.pool().map(|pool| pool.subnet.family())
    }
}

/// The latest of what the watch has shown.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) pools: Pools,
    /// What each says of itself.
    pub(crate) shown: BTreeMap<String, Shown>,
    /// Whether the list has been seen whole: before that, what is not here says nothing.
    pub(crate) synced: bool,
}
