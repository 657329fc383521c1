//! What is done with addresses. `address-lifecycle` is the page that this is the code of.

mod request;

pub use request::{Add, AddError, Answer, Candidate, Del, NoPool, NotYet, Parent, Wanted};
