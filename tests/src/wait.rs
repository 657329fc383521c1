//! Waiting for a condition, with a deadline and a reason.

use std::fmt::Display;
use std::time::{Duration, Instant};

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// Looks until `look` gives a value. After `limit` it fails with `what` was waited for and the last reason given.
pub async fn until<T, E: Display>(
    what: impl Display,
    limit: Duration,
    mut look: impl AsyncFnMut() -> Result<T, E>,
) -> T {
    let started = Instant::now();
    let mut last = "it was not looked at".to_owned();
    loop {
        let left = limit.saturating_sub(started.elapsed());
        let reason = match tokio::time::timeout(left, look()).await {
            Ok(Ok(value)) => return value,
            Ok(Err(reason)) => format!("{reason:#}"),
            Err(_) => format!("a look did not end; the one before said: {last}"),
        };
        assert!(started.elapsed() < limit, "waited {limit:?} in vain for {what}: {reason}");
        last = reason;
        tokio::time::sleep(PAUSE).await;
    }
}
