//! What is done with addresses.
//!
//! ```text
//! add ──> reserve | swap ──> bind (cloud) ──> publish ──> answer          del, reconcile, garbage, move ──> free
//!                              └─ no ──> free                             free = withdraw ──> fence ──> unbind ──> remove | give back
//! ```
//!
//! Each line of a flow that touches the world is a [`Step`]; between any two of them the process may die, and what is stored
//! is something from which another can go on. A flow ends at the first conflict: whoever wrote meanwhile decides anew.

mod add;
mod asked;
mod bind;
mod del;
mod free;
mod garbage;
mod known;
mod locks;
mod moves;
mod places;
mod publish;
mod reconcile;
mod refused;
mod request;
mod reserve;
mod settled;
mod swap;
mod unknown;
mod vlans;

pub use add::Failed;
pub use asked::{Answered, Asked};
pub use free::Undo;
pub use garbage::Verdict;
pub use moves::Successor;
pub use reconcile::Looked;
pub use request::{Add, AddError, Answer, Candidate, Chosen, Del, NoPool, NotYet, Parent, Pools, Wanted};

use crate::{Address, Allocation, Host, Node, Provider, Step, Store, StoreError};
use std::sync::Arc;

/// Who acts.
#[derive(Clone, Debug)]
pub struct Me {
    /// Random, new with each start of the process.
    pub releaser: String,
    /// An agent's node; a controller has none.
    pub node: Node,
}

/// The flows of one process.
#[derive(Debug)]
pub struct Flows<S, P, H> {
    store: S,
    provider: P,
    host: H,
    me: Me,
    locks: Arc<locks::Locks>,
    known: known::Known,
    places: places::Places,
    ended: unknown::Ended,
    vlans: vlans::Vlans,
    refused: refused::Refused,
}

/// A flow that nobody waits for ended early. Whoever sees the object next decides anew.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stopped {
    /// The API server did not do a step.
    #[error("{step} failed")]
    Store {
        /// Where.
        step: Step,
        /// Why.
        #[source]
        source: StoreError,
    },
    /// Nobody may be asked to let go of it, so it is kept.
    #[error(
        "{address} may be bound at provider {server}, which is neither iaasNetworkProvider.serverUrl nor one of its formerServers: name it there, or release the address with spiderpoolctl release --abandon"
    )]
    Unserved {
        /// Which.
        address: Address,
        /// Whom its allocation names.
        server: String,
    },
    /// The process is to end; what was written is gone on from by a later one.
    #[error("{step} is left to a later process")]
    Stopping {
        /// What it waited for.
        step: Step,
    },
}

impl<S: Store, P: Provider, H: Host> Flows<S, P, H> {
    /// Flows over these.
    pub fn new(store: S, provider: P, host: H, me: Me) -> Self {
        Self {
            store,
            provider,
            host,
            me,
            locks: Arc::default(),
            known: known::Known::default(),
            places: places::Places::default(),
            ended: unknown::Ended::default(),
            vlans: vlans::Vlans::default(),
            refused: refused::Refused::default(),
        }
    }

    /// What they work on.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Where they run.
    pub fn host(&self) -> &H {
        &self.host
    }

    /// Whether whoever may have it bound may be asked to let go of it.
    fn served(&self, allocation: &Allocation) -> Result<(), Stopped> {
        match &allocation.provider {
            Some(binding) if !self.provider.serves(&binding.server) => {
                Err(Stopped::Unserved { address: allocation.address, server: binding.server.clone() })
            }
            _ => Ok(()),
        }
    }

    /// A new identifier.
    fn fresh(&self) -> String {
        format!("{:032x}", self.host.random())
    }
}

/// Says where a fault was met.
fn at(step: Step) -> impl FnOnce(StoreError) -> Stopped {
    move |source| Stopped::Store { step, source }
}
