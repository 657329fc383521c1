//! The machine's clock and its chance.

use rustix::rand::{GetRandomFlags, getrandom};
use rustix::time::{ClockId, clock_gettime};
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Since the machine was started: never goes back, and counts the time that it slept (`CLOCK_BOOTTIME`).
#[must_use]
pub fn since_boot() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or_default())
}

/// A number that nobody else draws.
#[must_use]
pub fn random() -> u128 {
    let mut bytes = [0; 16];
    if getrandom(&mut bytes, GetRandomFlags::empty()) == Ok(bytes.len()) {
        return u128::from_ne_bytes(bytes);
    }
    // A filter that forbids the call: the standard library has another source.
    let half = || u128::from(RandomState::new().hash_one(since_boot()));
    (half() << 64) | half()
}
