//! Pauses between tries.

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use std::time::Duration;

/// Pauses that grow from one to the next up to a longest one. Each has a random part, so that many who failed together
/// do not knock together.
#[derive(Debug)]
pub struct Pauses {
    shortest: Duration,
    longest: Duration,
    coming: ExponentialBackoff,
}

impl Pauses {
    /// No pause is shorter or longer than these.
    #[must_use]
    pub fn new(shortest: Duration, longest: Duration) -> Self {
        Self { shortest, longest, coming: coming(shortest, longest) }
    }

    /// The next pause.
    pub fn pause(&mut self) -> Duration {
        self.coming.next().unwrap_or(self.longest)
    }

    /// Things went well: the next pause is a short one.
    pub fn reset(&mut self) {
        *self = Self::new(self.shortest, self.longest);
    }
}

fn coming(shortest: Duration, longest: Duration) -> ExponentialBackoff {
    ExponentialBuilder::new()
        .with_min_delay(shortest)
        // The random part is added after this limit and is as long as it at the most.
        .with_max_delay(longest / 2)
        .with_jitter()
        .without_max_times()
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const SHORTEST: Duration = Duration::from_millis(100);
    const LONGEST: Duration = Duration::from_secs(5);

    #[test]
    fn no_pause_is_longer_than_the_longest_and_the_late_ones_differ() {
        let mut pauses = Pauses::new(SHORTEST, LONGEST);
        let thousand: Vec<Duration> = (0..1000).map(|_| pauses.pause()).collect();
        assert!(thousand.iter().all(|pause| (SHORTEST..=LONGEST).contains(pause)), "{thousand:?}");
        let tail: BTreeSet<&Duration> = thousand[900..].iter().collect();
        assert!(tail.len() > 10, "{tail:?}");
        assert!(tail.iter().all(|pause| **pause >= LONGEST / 2), "they have grown: {tail:?}");
        pauses.reset();
        assert!(pauses.pause() <= 2 * SHORTEST);
    }

    #[test]
    fn two_that_begin_together_do_not_stay_together() {
        let of = || {
            let mut pauses = Pauses::new(SHORTEST, LONGEST);
            (0..10).map(|_| pauses.pause()).collect::<Vec<_>>()
        };
        assert_ne!(of(), of());
    }
}
