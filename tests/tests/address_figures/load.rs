//! So many things, so many at a time or so many a second; and how long each took.

use futures::StreamExt;
use std::time::{Duration, Instant};
use tokio::time::sleep_until;

/// How a thing is begun.
#[derive(Clone, Copy, Debug)]
pub enum Load {
    /// So many at a time.
    Closed(usize),
    /// So many a second, whether or not earlier ones have ended.
    Paced(f64),
}

/// One thing that was done.
#[derive(Clone, Debug)]
pub struct Done {
    /// Since the beginning of all.
    pub ended: Duration,
    pub took: Duration,
    pub failed: Option<String>,
}

/// Does it `count` times. At a pace the time of each counts from when it should have begun.
pub async fn drive(count: usize, load: Load, each: impl AsyncFn(usize) -> Result<(), String>) -> Vec<Done> {
    let begin = Instant::now();
    let (at_once, gap) = match load {
        Load::Closed(callers) => (callers, 0.0),
        Load::Paced(rate) => (count, 1.0 / rate),
    };
    let each = &each;
    let things = (0..count).map(|n| async move {
        let mut due = Instant::now();
        if gap > 0.0 {
            due = begin + Duration::from_secs_f64(gap * f64::from(u32::try_from(n).expect("few")));
            sleep_until(due.into()).await;
        }
        let failed = each(n).await.err();
        Done { ended: begin.elapsed(), took: due.elapsed(), failed }
    });
    futures::stream::iter(things).buffer_unordered(at_once.max(1)).collect().await
}

/// All of them, in the order in which they ended.
#[derive(Clone, Debug, Default)]
pub struct Measured(Vec<Done>);

impl Measured {
    pub fn of(mut done: Vec<Done>) -> Self {
        done.sort_by_key(|one| one.ended);
        Self(done)
    }

    /// Ends the test if one failed.
    pub fn whole(&self) {
        let failed: Vec<_> = self.0.iter().filter_map(|one| one.failed.as_ref()).collect();
        assert!(failed.is_empty(), "{} of {} failed: {:?}", failed.len(), self.0.len(), failed.first());
    }

    /// How many a second.
    pub fn rate(&self) -> f64 {
        let ended = self.0.last().map_or(Duration::MAX, |last| last.ended);
        f64::from(u32::try_from(self.0.len()).expect("few")) / ended.as_secs_f64()
    }

    /// One after the other, as if they had been one.
    pub fn then(&mut self, more: Self) {
        let before = self.0.last().map_or(Duration::ZERO, |last| last.ended);
        self.0.extend(more.0.into_iter().map(|one| Done { ended: before + one.ended, ..one }));
    }

    /// What so many hundredths took at the most.
    pub fn at(&self, percent: usize) -> Duration {
        let mut took: Vec<_> = self.0.iter().map(|one| one.took).collect();
        took.sort_unstable();
        took[(took.len() * percent / 100).min(took.len() - 1)]
    }
}

pub fn percent(ratio: f64) -> String {
    format!("{:.0} %", ratio * 100.0)
}
