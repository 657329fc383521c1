//! Which of the controllers works for the whole cluster: the one that holds the Lease.
//!
//! As client-go has it: no two clocks are compared. Whoever wants the Lease counts from when it last saw it change; whoever
//! holds it stops well before others may count to the end, whether or not it can reach the API server.

mod hold;
mod leading;
mod record;

pub(crate) use hold::{Candidate, hold};
pub(crate) use leading::Leading;
