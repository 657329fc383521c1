//! Looks at allocations of this node that no call is about.

use super::{Addresses, pods};
use ipam_core::{Address, Store};
use kube::Client;
use runtime::Chain;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

/// Pods that have ended and were not looked at yet. What does not fit is found by the next look at all.
const ENDED: usize = 1024;
/// Each look at all costs a read or two of each address.
const ALL: Duration = Duration::from_mins(5);
/// A sandbox is torn down after its pod has ended; until then there is nothing to do, and its DEL may not come. While the API
/// server fails it goes on with the last of these.
const AGAIN: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(20)];

/// Never ends.
pub(super) async fn run(addresses: Arc<Addresses>, client: Client, node: String) -> Infallible {
    addresses.store.synced().await;
    let (told, mut ended) = mpsc::channel(ENDED);
    let mut all = interval(ALL);
    all.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut later = tokio_util::time::DelayQueue::new();
    let watching = pods::ended(client, &node, told);
    let looking = async {
        loop {
            let (uid, tries) = tokio::select! {
                Some(uid) = ended.recv() => (uid, 0),
                Some(due) = std::future::poll_fn(|context| later.poll_expired(context)) => due.into_inner(),
                _ = all.tick() => {
                    let every: Vec<Address> = addresses.store.all().iter().map(|one| one.value.address).collect();
                    look(&addresses, &every).await;
                    continue;
                }
            };
            let of_pod = |uid: &str| -> Vec<Address> {
                addresses.store.of_pod(uid).iter().map(|one| one.value.address).collect()
            };
            let whole = look(&addresses, &of_pod(&uid)).await;
            let pause = AGAIN.get(tries).or(AGAIN.last().filter(|_| !whole));
            if let Some(pause) = pause.filter(|_| !of_pod(&uid).is_empty()) {
                later.insert((uid, tries + 1), *pause);
            }
        }
    };
    tokio::select! {
        never = watching => never,
        never = looking => never,
    }
}

/// Whether each could be looked at.
async fn look(addresses: &Addresses, at: &[Address]) -> bool {
    let mut whole = true;
    for address in at {
        if let Err(stopped) = addresses.flows.reconcile(*address).await {
            tracing::info!(%address, error = %Chain(&stopped), "an address is looked at again later");
            whole = false;
        }
    }
    whole
}
