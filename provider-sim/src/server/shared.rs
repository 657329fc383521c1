//! What all requests share, behind one lock that is never held across a wait.

use super::CannotServe;
use super::metrics::Metrics;
use super::state_file::{self, listed};
use crate::bucket::Bucket;
use crate::cloud::{Cloud, View};
use crate::fault::{Faults, Hit, InvalidRule, Rule, TooMany};
use crate::record::{Record, Records};
use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How the cloud behaves when no fault is asked for.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// How many addresses a node can carry; `None`: as many as there are VLAN ids.
    pub capacity: Option<NonZeroUsize>,
    /// How many calls a second the cloud takes, and how many at once; `None`: any number.
    pub rate: Option<(f64, u32)>,
    /// How long a call of the cloud takes.
    pub latency: Duration,
    /// Where what is bound is kept; `None`: in memory alone.
    pub state: Option<PathBuf>,
    /// What chance begins with; `None`: with something else each time.
    pub seed: Option<u64>,
}

/// All that there is.
#[derive(Debug)]
pub(super) struct Shared {
    inner: Mutex<Inner>,
    pub(super) latency: Duration,
    state: Option<PathBuf>,
    pub(super) metrics: Metrics,
    /// Work that goes on whether its caller waits or not.
    pub(super) work: TaskTracker,
    /// Cancelled when the server stops: what would wait for ever ends.
    pub(super) stopped: CancellationToken,
    started: Instant,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) cloud: Cloud,
    pub(super) bucket: Option<Bucket>,
    pub(super) faults: Faults,
    pub(super) records: Records,
    pub(super) chance: fastrand::Rng,
}

impl Shared {
    pub(super) fn new(settings: Settings) -> Result<Self, CannotServe> {
        let Settings { capacity, rate, latency, state, seed } = settings;
        let bucket = rate.map(|(rate, burst)| {
            Bucket::new(rate, burst).ok_or(CannotServe::Setting("--rate must be a positive number of calls a second"))
        });
        let mut cloud = Cloud::new(capacity);
        if let Some(path) = &state {
            state_file::load(path, &mut cloud).map_err(|why| CannotServe::State(path.clone(), why.into()))?;
        }
        let chance = seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
        let inner = Inner {
            cloud,
            bucket: bucket.transpose()?,
            faults: Faults::default(),
            records: Records::default(),
            chance,
        };
        Ok(Self {
            inner: Mutex::new(inner),
            latency,
            state,
            metrics: Metrics::new(),
            work: TaskTracker::new(),
            stopped: CancellationToken::new(),
            started: Instant::now(),
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// On the clock of the bucket.
    pub(super) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Changes what is bound. With a state file nothing has changed unless it is on disk.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Cloud, &mut fastrand::Rng) -> T) -> io::Result<T> {
        let mut inner = self.lock();
        let Inner { cloud, chance, .. } = &mut *inner;
        let Some(path) = &self.state else { return Ok(change(cloud, chance)) };
        let mut changed = cloud.clone();
        let outcome = change(&mut changed, chance);
        state_file::save(path, &changed)?;
        *cloud = changed;
        Ok(outcome)
    }

    pub(super) fn note(&self, seq: u64, change: impl FnOnce(&mut Record)) {
        self.lock().records.note(seq, change);
    }

    pub(super) fn stop(&self) {
        self.stopped.cancel();
        self.work.close();
    }

    /// Waits for work that is in hand, but not for ever.
    pub(super) async fn drained(&self, longest: Duration) {
        self.stop();
        if tokio::time::timeout(longest, self.work.wait()).await.is_err() {
            tracing::warn!(tasks = self.work.len(), "stopped before all work was done");
        }
    }
}

/// Milliseconds since 1970.
pub(super) fn clock() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The cloud behind a server, for tests in the same process.
#[derive(Clone, Debug)]
pub struct Handle(Arc<Shared>);

impl Handle {
    pub(super) const fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    /// Adds rules of faults, as JSON.
    pub fn add_faults(&self, rules: &str) -> Result<(), CannotAdd> {
        let rules = Rule::list(rules.as_bytes())?;
        Ok(self.0.lock().faults.add(rules)?)
    }

    /// Takes all rules away.
    pub fn clear_faults(&self) {
        self.0.lock().faults.clear();
    }

    /// Rules, and how often each has hit.
    #[must_use]
    pub fn faults(&self) -> Vec<Hit> {
        self.0.lock().faults.list()
    }

    /// Calls after number `after`.
    #[must_use]
    pub fn records(&self, after: u64) -> Vec<Record> {
        self.0.lock().records.since(after).cloned().collect()
    }

    /// What is bound.
    #[must_use]
    pub fn bindings(&self) -> Vec<View> {
        listed(&self.0.lock().cloud).bindings
    }

    /// How often an address was released in the name of a pod that it was not bound for.
    #[must_use]
    pub fn foreign_releases(&self) -> u64 {
        self.0.metrics.foreign_releases.get()
    }

    /// Loses everything that is bound.
    pub fn forget(&self) -> io::Result<()> {
        self.0.change(|cloud, _| cloud.forget())
    }
}

/// Rules that are not added.
#[derive(Debug, thiserror::Error)]
pub enum CannotAdd {
    /// One of them is wrong.
    #[error(transparent)]
    Invalid(#[from] InvalidRule),
    /// There are too many.
    #[error(transparent)]
    TooMany(#[from] TooMany),
}
