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
    loop {
        let reason = match look().await {
            Ok(value) => return value,
            Err(reason) => reason,
        };
        assert!(started.elapsed() < limit, "waited {limit:?} in vain for {what}: {reason:#}");
        tokio::time::sleep(PAUSE).await;
    }
}
