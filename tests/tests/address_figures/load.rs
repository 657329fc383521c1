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
#[derive(Clone, Debug)]
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

    /// How many a second, between these hundredths of all.
    pub fn rate(&self, from: usize, to: usize) -> f64 {
        let at = |percent: usize| self.0.len() * percent / 100;
        let ended = |n: usize| n.checked_sub(1).map_or(Duration::ZERO, |n| self.0[n].ended);
        let time = ended(at(to)).saturating_sub(ended(at(from)));
        f64::from(u32::try_from(at(to) - at(from)).expect("few")) / time.as_secs_f64()
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
