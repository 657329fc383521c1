//! The store, for single questions.

use crate::api::Server;
use k8s_api::conf::Conf;
use std::sync::Arc;
use std::time::Instant;
use store::{KubeStore, Retained};

/// A store that looks at single things; we write nothing by it.
pub(crate) fn looker(server: &Server, retained: Retained) -> KubeStore {
    let began = Instant::now();
    let clock = Arc::new(move || began.elapsed());
    KubeStore::unwatched(server.client().clone(), server.deadline(), clock, Arc::new(move || retained))
}

/// Whose pods keep their addresses; all, where the configuration is not seen.
pub(crate) fn retained(conf: Option<&Conf>) -> Retained {
    conf.map_or_else(Retained::default, |conf| Retained { stateful_sets: conf.stateful_sets, machines: conf.machines })
}
