//! How many ADDs work on one pool at a time. A pool whose writes hang, or that is listed for every guess, has so many at work
//! and so many in its queue, and no more: those of other pools go on. An ADD counts for the pool that it tries first, from its
//! choice to its end; one of a pod that got nothing the last time, from its beginning, so that it costs nothing while it waits.

use futures::channel::oneshot;
use futures::future::{Either, select};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::future::Future;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// As many as an API server answers well at a time; they get on, or all of them are stuck.
pub(super) const PLACES: usize = 32;
/// A node that has just come up starts all of its pods at once.
pub(super) const QUEUE: usize = 256;
/// Pods that are remembered.
const MOST: usize = 4096;

/// Who has how many.
#[derive(Debug, Default)]
pub(super) struct Places(Mutex<All>);

#[derive(Debug, Default)]
struct All {
    pools: HashMap<String, Pool>,
    /// Of interfaces that were given nothing, by pod UID and name, the pools in which they asked.
    tried: HashMap<(String, String), BTreeSet<String>>,
}

#[derive(Debug, Default)]
struct Pool {
    taken: usize,
    waiting: VecDeque<oneshot::Sender<()>>,
}

/// One place, until it is dropped.
#[derive(Debug)]
pub(super) struct Place<'a> {
    all: &'a Places,
    pub(super) pool: String,
}

/// One who waits. A place that comes while he leaves goes to the next.
struct Turn<'a> {
    all: &'a Places,
    pool: &'a str,
    told: oneshot::Receiver<()>,
}

impl Places {
    /// The pools in which it was asked for this interface in vain the last time.
    pub(super) fn tried(&self, of: &(String, String)) -> Option<BTreeSet<String>> {
        self.all().tried.get(of).cloned()
    }

    /// An interface was given nothing in these.
    pub(super) fn remember(&self, of: (String, String), pools: &BTreeSet<String>) {
        let tried = &mut self.all().tried;
        if tried.len() >= MOST {
            tried.clear();
        }
        tried.insert(of, pools.clone());
    }

    /// It has what it wants, or wants something else.
    pub(super) fn forget(&self, of: &(String, String)) {
        self.all().tried.remove(of);
    }

    /// A place in `pool`, and whether it was waited for; none if the queue is full or `end` comes first.
    pub(super) async fn take(&self, pool: &str, end: impl Future<Output = ()>) -> Option<(Place<'_>, bool)> {
        let place = || Place { all: self, pool: pool.to_owned() };
        let mut turn = {
            let mut all = self.all();
            let found = all.pools.entry(pool.to_owned()).or_default();
            if found.taken < PLACES {
                found.taken += 1;
                return Some((place(), false));
            }
            found.waiting.retain(|waiting| !waiting.is_canceled());
            if found.waiting.len() >= QUEUE {
                return None;
            }
            let (tell, told) = oneshot::channel();
            found.waiting.push_back(tell);
            Turn { all: self, pool, told }
        };
        match select(&mut turn.told, pin!(end)).await {
            Either::Left((Ok(()), _)) => Some((place(), true)),
            Either::Left((Err(_), _)) | Either::Right(_) => None,
        }
    }

    fn all(&self) -> MutexGuard<'_, All> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place goes to the next who still waits.
    fn leave(&self, pool: &str) {
        let mut all = self.all();
        let Some(found) = all.pools.get_mut(pool) else { return };
        while let Some(next) = found.waiting.pop_front() {
            if next.send(()).is_ok() {
                return;
            }
        }
        found.taken = found.taken.saturating_sub(1);
        if found.taken == 0 {
            all.pools.remove(pool);
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.all.leave(&self.pool);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.told.close();
        if let Ok(Some(())) = self.told.try_recv() {
            self.all.leave(self.pool);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use futures::future::pending;

    fn now<'a>(places: &'a Places, pool: &'a str) -> Place<'a> {
        places.take(pool, pending()).now_or_never().flatten().expect("free").0
    }

    #[test]
    fn who_waits_is_served_in_turn_and_another_pool_at_once() {
        let places = Places::default();
        let mut held: Vec<_> = (0..PLACES).map(|_| now(&places, "a")).collect();
        let mut first = Box::pin(places.take("a", pending()));
        let mut second = Box::pin(places.take("a", pending()));
        assert!(first.as_mut().now_or_never().is_none() && second.as_mut().now_or_never().is_none());
        drop(now(&places, "b"));
        held.pop();
        assert!(second.as_mut().now_or_never().is_none(), "not his turn");
        drop(first);
        let (_, waited) = second.now_or_never().flatten().expect("the first left with his place");
        assert!(waited);
        drop(held);
        assert!(places.all().pools.is_empty(), "nothing is left of pools that nobody asks for");
    }

    #[test]
    fn a_full_queue_refuses() {
        let places = Places::default();
        let held: Vec<_> = (0..PLACES).map(|_| now(&places, "a")).collect();
        let mut waiting: Vec<_> = (0..QUEUE).map(|_| Box::pin(places.take("a", pending()))).collect();
        assert!(waiting.iter_mut().all(|one| one.as_mut().now_or_never().is_none()));
        assert!(places.take("a", pending()).now_or_never().expect("at once").is_none());
        waiting.pop();
        assert!(places.take("a", async {}).now_or_never().expect("at once").is_none(), "his time is over");
        drop(waiting);
        drop(held);
        assert!(places.all().pools.is_empty());
    }
}
