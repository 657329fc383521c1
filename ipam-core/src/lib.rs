//! Addresses and sets of them, as pools write them. Pure: no client, no socket, no clock.
//!
//! ```text
//! "172.91.0.0/24" ──> Subnet ───> Range ──┐
//! "172.91.0.7", "172.91.0.7-172.91.0.9" ──┴──> Ranges: contains, union, difference, intersection, count
//! ```
//!
//! A set is kept as the ends of its ranges and never written out: a `/8` costs what one address does. What two sets have
//! in common, or one has beyond the other, takes a time that grows with their ranges, not with their addresses.

mod address;
mod range;
mod ranges;
mod subnet;

pub use address::{Address, Family, InvalidAddress};
pub use range::{InvalidRange, Range};
pub use ranges::Ranges;
pub use subnet::{InvalidSubnet, Subnet};
