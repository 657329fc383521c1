//! Words for who gets no pool.

use super::names::{Named, Source};
use super::rules::Unfit;
use crate::{Family, NoPool};
use std::fmt::Display;

/// More fits neither an event nor a screen.
const SHOWN: usize = 8;

/// Nobody names a pool, and none is the default.
pub(super) fn nothing_named() -> NoPool {
    NoPool::new(
        "no IPPool available, no pool selection rules of any type are specified; name pools in the Pod annotation \
         'ipam.spidernet.io/ippools', or set spec.default of an IPPool",
    )
}

/// Pods have no addresses of the family.
pub(super) fn off(source: &Source, family: Family, nic: &str) -> NoPool {
    NoPool::new(format!(
        "wrong input, {family} IPPools [{}] of {nic} in {} although {family} is disabled; leave them out, or set the chart \
         value ipam.enable{family} to true",
        list(source.of(family)),
        source.place
    ))
}

/// One pool twice in a list.
pub(super) fn duplicate(pool: &Named, source: &Source, nic: &str) -> NoPool {
    NoPool::new(format!("wrong input, duplicate IPPool {pool} specified for NIC {nic} in {}", source.place))
}

/// A pool that there is not.
pub(super) fn unknown(pool: &str, source: &Source, nic: &str) -> NoPool {
    NoPool::new(format!(
        "failed to get original IPPool {pool}: there is none of this name; correct {} for NIC {nic}, or create it",
        source.place
    ))
}

/// Patterns alone, and no pool that they cover.
pub(super) fn uncovered(source: &Source, family: Family, nic: &str) -> NoPool {
    NoPool::new(format!(
        "no IPPool available, no {family} IPPool is covered by [{}] of {nic} in {}",
        list(source.of(family)),
        source.place
    ))
}

/// Every pool is for others.
pub(super) fn filtered(left_out: &[(&str, Unfit)], family: Family, nic: &str) -> NoPool {
    let names: Vec<_> = left_out.iter().map(|(name, _)| *name).collect();
    let reasons: Vec<_> = left_out.iter().map(|(name, unfit)| format!("{name}: {unfit}")).collect();
    let text = format!(
        "no IPPool available, all {family} IPPools [{}] of {nic} filtered out: [{}]",
        list(&names),
        list(&reasons)
    );
    NoPool { text, passes: left_out.iter().any(|(_, unfit)| *unfit == Unfit::Unadopted) }
}

fn list(items: &[impl Display]) -> String {
    let mut shown: Vec<_> = items.iter().take(SHOWN).map(ToString::to_string).collect();
    if let more @ 1.. = items.len().saturating_sub(SHOWN) {
        shown.push(format!("and {more} more"));
    }
    shown.join(", ")
}
