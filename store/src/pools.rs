//! Which addresses of a pool somebody has.
//!
//! A list shows what was there after it began. So whoever asks takes a list that began after he asked: the one that many
//! who wait share, and never the one that is on its way.

use crate::call::Caller;
use crate::name;
use crate::path;
use crate::watch::allocations;
use ipam_core::{Address, StoreError};
use kube::api::ListParams;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Between the beginnings of two lists of one pool.
const BETWEEN: Duration = Duration::from_secs(1);
/// Names and versions alone are some 500 bytes each.
const PAGE: u32 = 1000;

#[derive(Default)]
pub(crate) struct Pools(Mutex<BTreeMap<String, Arc<Pool>>>);

#[derive(Default)]
struct Pool {
    last: tokio::sync::Mutex<Last>,
    waiting: AtomicUsize,
}

#[derive(Default)]
struct Last {
    began: Option<Instant>,
    /// Kept while somebody waits who may share it.
    found: Option<Result<Vec<Address>, StoreError>>,
}

/// One who waits; also when its caller goes away.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Pools {
    pub(crate) async fn addresses(&self, caller: &Caller, pool: &str) -> Result<Vec<Address>, StoreError> {
        let name = path::name(pool)?;
        let pool = self.pool(name);
        pool.addresses(|| list(caller, name)).await
    }

    fn pool(&self, name: &str) -> Arc<Pool> {
        // An insertion is whole or not at all.
        let mut pools = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(pools.entry(name.to_owned()).or_default())
    }
}

impl Pool {
    async fn addresses(
        &self,
        ask: impl AsyncFnOnce() -> Result<Vec<Address>, StoreError>,
    ) -> Result<Vec<Address>, StoreError> {
        let asked = Instant::now();
        let waiting = Waiting::new(&self.waiting);
        let mut last = self.last.lock().await;
        drop(waiting);
        let shared = last.found.take().filter(|_| last.began.is_some_and(|began| began >= asked));
        let found = if let Some(found) = shared {
            found
        } else {
            if let Some(began) = last.began {
                sleep_until(began + BETWEEN).await;
            }
            last.began = Some(Instant::now());
            ask().await
        };
        if self.waiting.load(Ordering::Relaxed) > 0 {
            last.found = Some(found.clone());
        }
        found
    }
}

#[derive(Deserialize)]
struct Names {
    metadata: Next,
    /// `null` where there is none.
    items: Option<Vec<Item>>,
}

#[derive(Deserialize)]
struct Next {
    #[serde(default, rename = "continue")]
    next: String,
}

#[derive(Deserialize)]
struct Item {
    metadata: Named,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

/// All pages of a list are of one version; names alone are sent.
async fn list(caller: &Caller, pool: &str) -> Result<Vec<Address>, StoreError> {
    let mut wanted = ListParams::default().fields(&format!("spec.pool={pool}")).limit(PAGE);
    let mut addresses = Vec::new();
    loop {
        let page: Names = match caller.json(allocations().list_metadata(&wanted)).await {
            // The version went while its pages were read, or the kind is not there: no list all the same.
            Err(StoreError::Gone) => {
                return Err(StoreError::Unknown("the list could not be read to its end".to_owned()));
            }
            page => page?,
        };
        for Item { metadata: Named { name } } in page.items.into_iter().flatten() {
            if let Some(address) = name::address(&name) {
                addresses.push(address);
            } else {
                tracing::warn!(allocation = name, pool, "is not named by an address");
            }
        }
        if page.metadata.next.is_empty() {
            return Ok(addresses);
        }
        wanted = wanted.continue_token(&page.metadata.next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};
    use tokio::join;
    use tokio::time::sleep;

    #[tokio::test(start_paused = true)]
    async fn who_waits_shares_a_list_that_began_after_he_asked_and_there_is_one_a_second() {
        let (pool, begun, first) = (Pool::default(), RefCell::new(Vec::new()), Instant::now());
        let list = async || {
            begun.borrow_mut().push(first.elapsed().as_millis());
            sleep(Duration::from_millis(300)).await;
            Ok(vec![
                Address::new(ipam_core::Family::V4, u128::try_from(begun.borrow().len()).expect("few")).expect("one"),
            ])
        };
        let ask = async |after: u64| {
            sleep(Duration::from_millis(after)).await;
            let found = pool.addresses(&list).await.expect("found");
            found[0].number()
        };
        let lists = join!(ask(0), ask(0), ask(100), ask(200), ask(1100));
        assert_eq!(lists, (1, 1, 2, 2, 3), "those in the middle do not take what began before");
        assert_eq!(*begun.borrow(), [0, 1000, 2000]);
        assert!(pool.last.lock().await.found.is_none(), "a long list is not kept for nobody");
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_who_goes_away_holds_nobody_up() {
        let (pool, calls) = (Pool::default(), Cell::new(0));
        let list = async || {
            calls.set(calls.get() + 1);
            sleep(Duration::from_millis(100)).await;
            Ok(Vec::new())
        };
        let leaver = tokio::time::timeout(Duration::from_millis(50), pool.addresses(&list));
        let (left, found) = join!(leaver, pool.addresses(&list));
        assert!(left.is_err() && found.is_ok());
        assert_eq!(calls.get(), 2);
        assert_eq!(pool.waiting.load(Ordering::Relaxed), 0);
    }
}
