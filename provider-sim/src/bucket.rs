//! How often the cloud may be called: a bucket of tokens, as a value of time. Pure: `now` is handed in.

use std::time::Duration;

/// Tokens come at a rate, and so many are kept.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    /// Between two tokens.
    every: Duration,
    /// How far ahead of its rate it may be used.
    ahead: Duration,
    /// When the next token would be there if none were kept.
    next: Duration,
}

impl Bucket {
    /// `rate` tokens a second, at most `burst` kept. `None` if that is no rate.
    #[must_use]
    pub(crate) fn new(rate: f64, burst: u32) -> Option<Self> {
        let every = Duration::try_from_secs_f64(1.0 / rate).ok().filter(|every| !every.is_zero())?;
        let ahead = every.checked_mul(burst.saturating_sub(1))?;
        Some(Self { every, ahead, next: Duration::ZERO })
    }

    /// Takes a token: how long to wait until it is there. Takes none if that is more than `longest`.
    pub(crate) fn take(&mut self, now: Duration, longest: Duration) -> Option<Duration> {
        let next = self.next.max(now);
        let wait = next.saturating_sub(now.saturating_add(self.ahead));
        if wait > longest {
            return None;
        }
        self.next = next.saturating_add(self.every);
        Some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_burst_then_the_rate() {
        let now = Duration::ZERO;
        let mut bucket = Bucket::new(1.0, 3).expect("a rate");
        let waits: Vec<_> = (0..5).map(|_| bucket.take(now, 9 * SECOND)).collect();
        let none = Some(Duration::ZERO);
        assert_eq!(waits, [none, none, none, Some(SECOND), Some(2 * SECOND)]);
        assert_eq!(bucket.take(now, 2 * SECOND), None, "nobody waits longer than he would");
        assert_eq!(bucket.take(now, 3 * SECOND), Some(3 * SECOND), "and takes no token");
        assert_eq!(bucket.take(now + 60 * SECOND, SECOND), none, "after a while it is full again");
    }

    #[test]
    fn some_numbers_are_no_rate() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Bucket::new(rate, 1).is_none(), "{rate}");
        }
    }
}
