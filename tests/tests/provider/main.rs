//! Addresses that a provider binds: agents and a controller against an API server and a provider that fails them.

mod bucket;
mod down;
mod faults;
mod finished;
mod identity;
mod kills;
mod stage;
