//! The store, and the rights that the chart gives, on a real API server.

#[path = "store/reads.rs"]
mod reads;
#[path = "store/rights.rs"]
mod rights;
#[path = "store/stage.rs"]
mod stage;
#[path = "store/writes.rs"]
mod writes;
