//! Looks that run: a few at a time, and beside them those that wait for a provider, which take as long as that does and hold up
//! nobody else.

use super::report::Looked;
use crate::usage::{Suspect, Suspicion};
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use std::collections::HashSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// What came of one.
type Ended = (Suspect, Suspicion, Looked);

/// A look that takes longer waits for a provider, or for time to settle.
const REQUESTS: Duration = Duration::from_secs(10);
/// So many may. One more is dropped where it stands, as at the end of a lease: what it has written is gone on from.
const WAITING: usize = 256;

pub(super) struct Looks<'a> {
    running: FuturesUnordered<BoxFuture<'a, Ended>>,
    at: HashSet<Suspect>,
    begins: Arc<Semaphore>,
    waits: Arc<Semaphore>,
}

impl<'a> Looks<'a> {
    pub(super) fn new(at_once: usize) -> Self {
        let [begins, waits] = [at_once, WAITING].map(|most| Arc::new(Semaphore::new(most)));
        Self { running: FuturesUnordered::new(), at: HashSet::new(), begins, waits }
    }

    pub(super) fn runs(&self, suspect: &Suspect) -> bool {
        self.at.contains(suspect)
    }

    /// Whether another one may begin now.
    pub(super) fn has_room(&self) -> bool {
        self.begins.available_permits() > 0
    }

    /// Unless one at this suspect runs, or there is no room.
    pub(super) fn begin<F>(
        &mut self,
        suspect: Suspect,
        why: Suspicion,
        look: impl FnOnce(Suspect, Suspicion) -> F + Send + 'a,
    ) where
        F: Future<Output = Ended> + Send,
    {
        if self.at.contains(&suspect) {
            return;
        }
        let Ok(turn) = Arc::clone(&self.begins).try_acquire_owned() else { return };
        self.at.insert(suspect.clone());
        let waits = Arc::clone(&self.waits);
        self.running.push(Box::pin(async move {
            let again = (suspect.clone(), why.clone(), Looked::Waits);
            let mut look = pin!(look(suspect, why));
            if let Ok(ended) = timeout(REQUESTS, look.as_mut()).await {
                return ended;
            }
            // Who waits for a provider must not keep the turn of who does not.
            drop(turn);
            let Ok(_wait) = waits.try_acquire() else { return again };
            look.await
        }));
    }

    /// The next that has ended; never, while none runs.
    pub(super) async fn next(&mut self) -> Ended {
        let Some(ended) = self.running.next().await else { return std::future::pending().await };
        self.at.remove(&ended.0);
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;

    fn suspect(number: usize) -> Suspect {
        Suspect::Endpoint("ns".to_owned(), number.to_string())
    }

    #[tokio::test(start_paused = true)]
    async fn those_that_wait_for_a_provider_hold_up_nobody_else() {
        let mut looks = Looks::new(16);
        let stuck = WAITING + 50;
        let mut number = 0;
        let mut given_up = 0;
        while number < stuck || given_up < stuck - WAITING {
            while looks.has_room() && number < stuck {
                looks.begin(suspect(number), Suspicion::default(), async |_, _| pending().await);
                number += 1;
            }
            let next = timeout(REQUESTS + Duration::from_secs(1), looks.next()).await;
            given_up += usize::from(next.is_ok_and(|ended| ended.2 == Looked::Waits));
        }
        assert!(looks.has_room() && looks.runs(&suspect(0)), "all wait, and none has a turn");
        looks.begin(suspect(9999), Suspicion::default(), async |suspect, why| (suspect, why, Looked::Kept));
        looks.begin(suspect(9999), Suspicion::default(), async |_, _| panic!("one at a time"));
        let ended = timeout(Duration::from_secs(1), looks.next()).await.expect("at once");
        assert_eq!((ended.0, ended.2), (suspect(9999), Looked::Kept));
        assert!(!looks.runs(&suspect(9999)));
    }
}
