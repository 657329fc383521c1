//! How many ADDs work on one pool at a time. A pool whose writes hang, or that is listed for every guess, keeps so many of
//! them and no more: those of other pools go on. An ADD counts for the pool that it tries first, from its choice to its end.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// More than a node has callers that get on; a few stuck pools together stay far below what an agent lets in.
pub(super) const PLACES: usize = 64;

/// Who has how many.
#[derive(Debug, Default)]
pub(super) struct Places(Mutex<HashMap<String, usize>>);

/// One place, until it is dropped.
#[derive(Debug)]
pub(super) struct Place<'a> {
    all: &'a Places,
    pool: String,
}

impl Places {
    /// A place in `pool`, if there is one.
    pub(super) fn take(&self, pool: &str) -> Option<Place<'_>> {
        let mut taken = self.taken();
        let count = taken.entry(pool.to_owned()).or_default();
        let free = *count < PLACES;
        if free {
            *count += 1;
        }
        free.then(|| Place { all: self, pool: pool.to_owned() })
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut taken = self.all.taken();
        match taken.get_mut(&self.pool) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(taken.remove(&self.pool)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_has_so_many_and_another_has_its_own() {
        let places = Places::default();
        let mut held: Vec<_> = (0..PLACES).map(|_| places.take("a").expect("free")).collect();
        assert!(places.take("a").is_none());
        let other = places.take("b").expect("another pool");
        held.pop();
        held.push(places.take("a").expect("free again"));
        drop((held, other));
        assert!(places.taken().is_empty(), "nothing is left of pools that nobody asks for");
    }
}
