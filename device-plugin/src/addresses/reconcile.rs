//! Looks at allocations of this node that no call is about.

use super::{Addresses, pods};
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use ipam_core::{Address, Looked, Stopped, Store};
use kube::Client;
use runtime::Chain;
use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::time::DelayQueue;
use tokio_util::time::delay_queue::Key;

/// Pods that have ended and were not looked at yet. What does not fit is found by the next look at all.
pub(super) const ENDED: usize = 1024;
/// Each look at all costs a read or two of each address.
const ALL: Duration = Duration::from_mins(5);
/// A sandbox is torn down after its pod has ended, and its DEL may not come; this is looked for with growing pauses.
const AGAIN_MIN: Duration = Duration::from_secs(1);
const AGAIN_MAX: Duration = Duration::from_mins(1);

/// Never ends.
pub(super) async fn run(
    addresses: Arc<Addresses>,
    mut unended: mpsc::Receiver<Address>,
    client: Client,
    node: String,
) -> Infallible {
    addresses.store.synced().await;
    let (told, mut ended) = mpsc::channel(ENDED);
    let mut all = interval(ALL);
    all.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut again = Again::default();
    let watching = pods::watch(client, &node, told, &addresses.pods);
    let looking = async {
        let mut looks = Looks::default();
        loop {
            let due = tokio::select! {
                (address, looked) = looks.next() => {
                    match looked {
                        Ok(Looked::Done) => again.forget(address),
                        Ok(Looked::Waits) => again.wait(address),
                        Err(stopped) => {
                            tracing::info!(%address, error = %Chain(&stopped), "an address is looked at again later");
                            again.wait(address);
                        }
                    }
                    continue;
                }
                Some(address) = unended.recv() => {
                    again.wait(address);
                    continue;
                }
                Some(uid) = ended.recv() => addresses.store.of_pod(&uid),
                address = again.due() => {
                    let found = addresses.store.of_address(address);
                    if found.is_none() {
                        again.forget(address);
                    }
                    found.into_iter().collect()
                }
                _ = all.tick() => addresses.store.all(),
            };
            for one in due {
                looks.begin(&addresses, one.value.address);
            }
        }
    };
    tokio::select! {
        never = watching => never,
        never = looking => never,
    }
}

/// A few addresses are looked at for the first time at a time; those that a provider is asked for take as long as that takes, and
/// hold up nobody. There are no more than the node has addresses.
struct Looks<'a> {
    running: FuturesUnordered<BoxFuture<'a, (Address, Result<Looked, Stopped>)>>,
    at: HashSet<Address>,
    begins: Arc<Semaphore>,
}

/// Each is two or three requests to the API server.
const AT_ONCE: usize = 8;
/// A look that takes longer waits for a provider.
const REQUESTS: Duration = Duration::from_secs(10);

impl Default for Looks<'_> {
    fn default() -> Self {
        Self { running: FuturesUnordered::new(), at: HashSet::new(), begins: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

impl<'a> Looks<'a> {
    fn begin(&mut self, addresses: &'a Addresses, address: Address) {
        if !self.at.insert(address) {
            return;
        }
        let begins = Arc::clone(&self.begins);
        self.running.push(Box::pin(async move {
            let turn = begins.acquire().await.ok();
            let mut look = pin!(addresses.flows.reconcile(address));
            let looked = if let Ok(looked) = timeout(REQUESTS, look.as_mut()).await {
                looked
            } else {
                drop(turn);
                look.await
            };
            (address, looked)
        }));
    }

    /// The next that has ended; never, while none runs.
    async fn next(&mut self) -> (Address, Result<Looked, Stopped>) {
        let Some((address, looked)) = self.running.next().await else { return std::future::pending().await };
        self.at.remove(&address);
        (address, looked)
    }
}

/// Addresses to look at again. No more than the node has.
#[derive(Default)]
struct Again {
    queue: DelayQueue<Address>,
    waits: HashMap<Address, Wait>,
}

struct Wait {
    /// None while it is looked at.
    queued: Option<Key>,
    pause: Duration,
}

impl Again {
    /// The next one whose time has come.
    async fn due(&mut self) -> Address {
        let Some(due) = std::future::poll_fn(|context| self.queue.poll_expired(context)).await else {
            return std::future::pending().await;
        };
        let address = due.into_inner();
        if let Some(wait) = self.waits.get_mut(&address) {
            wait.queued = None;
        }
        address
    }

    fn wait(&mut self, address: Address) {
        let wait = self.waits.entry(address).or_insert(Wait { queued: None, pause: AGAIN_MIN / 2 });
        if wait.queued.is_none() {
            wait.pause = (wait.pause * 2).min(AGAIN_MAX);
            wait.queued = Some(self.queue.insert(address, wait.pause));
        }
    }

    fn forget(&mut self, address: Address) {
        if let Some(Wait { queued: Some(key), .. }) = self.waits.remove(&address) {
            self.queue.try_remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::{Instant, timeout};

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_until_it_is_forgotten() {
        let address: Address = "10.0.0.1".parse().expect("an address");
        let mut again = Again::default();
        let mut pauses = Vec::new();
        for _ in 0..8 {
            again.wait(address);
            // A look for another reason does not put it off.
            again.wait(address);
            let begin = Instant::now();
            assert_eq!(again.due().await, address);
            pauses.push(begin.elapsed().as_secs());
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        again.wait(address);
        again.forget(address);
        assert!(timeout(2 * AGAIN_MAX, again.due()).await.is_err(), "it is not looked at any more");
        again.wait(address);
        let begin = Instant::now();
        assert_eq!((again.due().await, begin.elapsed().as_secs()), (address, 1), "a new one begins anew");
    }
}
