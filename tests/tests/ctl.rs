//! `spiderpoolctl` on a real API server: its output, its exit codes, and what people may ask for.

#[path = "ctl/explained.rs"]
mod explained;
#[path = "ctl/left.rs"]
mod left;
#[path = "ctl/odd.rs"]
mod odd;
#[path = "ctl/released.rs"]
mod released;
#[path = "ctl/stage.rs"]
mod stage;
