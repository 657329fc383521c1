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
mod bind;
mod del;
mod free;
mod garbage;
mod locks;
mod moves;
mod places;
mod publish;
mod reconcile;
mod request;
mod reserve;
mod settled;
mod swap;

pub use add::Failed;
pub use free::Undo;
pub use moves::Successor;
pub use reconcile::Looked;
pub use request::{Add, AddError, Answer, Candidate, Chosen, Del, NoPool, NotYet, Parent, Pools, Wanted};

use crate::{Host, Node, Provider, Step, Store, StoreError};
use std::sync::Arc;
use std::time::Duration;

/// Who acts.
#[derive(Clone, Debug)]
pub struct Me {
    /// Random, new with each start of the process.
    pub releaser: String,
    /// An agent's node; a controller has none.
    pub node: Node,
    /// How long a call of the provider may take (`httpRequestTimeout`).
    pub call: Duration,
}

/// The flows of one process.
#[derive(Debug)]
pub struct Flows<S, P, H> {
    store: S,
    provider: P,
    host: H,
    me: Me,
    locks: Arc<locks::Locks>,
    known: reserve::Known,
    places: places::Places,
}

/// A flow that nobody waits for ended early. Whoever sees the object next decides anew.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{step} failed")]
pub struct Stopped {
    /// Where.
    pub step: Step,
    /// Why.
    #[source]
    pub source: StoreError,
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
            known: reserve::Known::default(),
            places: places::Places::default(),
        }
    }

    /// What they work on.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// A new identifier.
    fn fresh(&self) -> String {
        format!("{:032x}", self.host.random())
    }
}

/// Says where a fault was met.
fn at(step: Step) -> impl FnOnce(StoreError) -> Stopped {
    move |source| Stopped { step, source }
}
