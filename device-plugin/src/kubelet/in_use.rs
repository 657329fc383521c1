//! Which devices pods hold, as the kubelet says (`PodResources` API), and as it asked a moment ago (`Allocate`).

use super::dial::dial;
use k8s_api::resource::ResourceName;
use proto::podresources::ListPodResourcesRequest;
use proto::podresources::pod_resources_lister_client::PodResourcesListerClient;
use runtime::Chain;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// Ids in use by resource name.
pub(crate) type Ids = BTreeMap<String, BTreeSet<String>>;

/// What the kubelet said, and a count that moves when devices were handed out since.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Listed {
    ids: Arc<Ids>,
    handed_out: u64,
}

/// Devices that were handed out a moment ago, which the kubelet does not list yet. Cheap to clone: the sessions add to it,
/// the advertiser reads it with each pass, so that no count takes away what was just given.
#[derive(Clone, Debug, Default)]
pub(crate) struct HandedOut {
    fresh: Arc<Mutex<VecDeque<Fresh>>>,
    wake: Arc<Notify>,
}

#[derive(Debug)]
struct Fresh {
    at: Instant,
    resource: String,
    ids: Vec<String>,
}

/// Between two questions to the kubelet when nothing happens.
const ASK: Duration = Duration::from_secs(30);
/// After an `Allocate`; the kubelet lists a pod a moment later.
const ASK_SOON: Duration = Duration::from_secs(1);
/// The kubelet answers from memory.
const ANSWER: Duration = Duration::from_secs(1);
/// How long a device counts as in use on the strength of an `Allocate` alone.
const FRESH: Duration = Duration::from_secs(15);
/// While many pods start, what they got is put together for this long.
const BURST: Duration = Duration::from_millis(100);
/// More calls than a node has pods; the oldest go first, and the kubelet lists those by then.
const FRESH_MAX: usize = 4096;

/// Why the kubelet did not say.
#[derive(Debug, thiserror::Error)]
enum Unknown {
    #[error("cannot connect to {0}")]
    Connect(PathBuf, #[source] tonic::transport::Error),
    #[error("the kubelet refused to list pod resources: {}", .0.message())]
    Refused(tonic::Status),
    #[error("the kubelet did not list pod resources within {ANSWER:?}")]
    Slow,
}

/// Where the kubelet serves the API: below its root folder.
pub(crate) fn sockets(roots: [&Path; 2]) -> Vec<PathBuf> {
    let mut sockets: Vec<_> = roots.iter().map(|root| root.join("pod-resources/kubelet.sock")).collect();
    sockets.dedup();
    sockets
}

/// The latest that is known, and the task that keeps it. `None` until the kubelet was asked once, which takes a second at
/// the most, whether it answered or not.
pub(crate) fn watch(
    sockets: Vec<PathBuf>,
) -> (HandedOut, watch::Receiver<Option<Listed>>, impl Future<Output = Result<(), Infallible>>) {
    let handed_out = HandedOut::default();
    let (listed, latest) = watch::channel(None);
    (handed_out.clone(), latest, run(sockets, handed_out, listed))
}

async fn run(
    sockets: Vec<PathBuf>,
    handed_out: HandedOut,
    latest: watch::Sender<Option<Listed>>,
) -> Result<(), Infallible> {
    let mut listed = Listed::default();
    let mut said = String::new();
    loop {
        match ask(&sockets).await {
            Ok(ids) => {
                said.clear();
                listed.ids = Arc::new(ids);
            }
            Err(error) => {
                let text = Chain(&error).to_string();
                if said != text {
                    tracing::warn!(
                        error = text,
                        "cannot learn which devices are in use; counts still are as configured"
                    );
                    said = text;
                }
            }
        }
        let mut next = Instant::now() + ASK;
        loop {
            latest.send_if_modified(|before| before.replace(listed.clone()).as_ref() != Some(&listed));
            // What many pods get while they start is told together.
            sleep(BURST).await;
            if timeout_at(next, handed_out.wake.notified()).await.is_err() {
                break;
            }
            listed.handed_out += 1;
            next = next.min(Instant::now() + ASK_SOON);
        }
    }
}

impl HandedOut {
    /// The kubelet is being given these.
    pub(crate) fn note(&self, resource: &ResourceName, ids: Vec<String>) {
        let mut fresh = self.fresh();
        if fresh.len() == FRESH_MAX {
            fresh.pop_front();
        }
        fresh.push_back(Fresh { at: Instant::now(), resource: resource.to_string(), ids });
        self.wake.notify_one();
    }

    /// What is in use: listed by the kubelet, or handed out a moment before `now`.
    pub(crate) fn in_use(&self, listed: &Listed, now: Instant) -> Ids {
        let mut fresh = self.fresh();
        fresh.retain(|one| now.saturating_duration_since(one.at) < FRESH);
        let mut in_use = Ids::clone(&listed.ids);
        for Fresh { resource, ids, .. } in fresh.iter() {
            in_use.entry(resource.clone()).or_default().extend(ids.iter().cloned());
        }
        in_use
    }

    fn fresh(&self) -> MutexGuard<'_, VecDeque<Fresh>> {
        // An entry is whole once it is pushed, so a panic elsewhere leaves nothing half-written.
        self.fresh.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn ask(sockets: &[PathBuf]) -> Result<Ids, Unknown> {
    let live = sockets.iter().find(|socket| socket.exists()).or(sockets.first()).cloned().unwrap_or_default();
    let call = async {
        let channel = dial(&live).await.map_err(|source| Unknown::Connect(live.clone(), source))?;
        PodResourcesListerClient::new(channel).list(ListPodResourcesRequest {}).await.map_err(Unknown::Refused)
    };
    let pods = timeout(ANSWER, call).await.map_err(|_| Unknown::Slow)??.into_inner().pod_resources;
    let mut listed = Ids::new();
    for devices in pods.into_iter().flat_map(|pod| pod.containers).flat_map(|container| container.devices) {
        listed.entry(devices.resource_name).or_default().extend(devices.device_ids);
    }
    Ok(listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_device_counts_from_the_moment_it_is_handed_out() {
        let mut ids = Ids::new();
        ids.entry("a/r".to_owned()).or_default().insert("r-0".to_owned());
        let listed = Listed { ids: Arc::new(ids), handed_out: 0 };
        let handed_out = HandedOut::default();
        handed_out.note(&"a/r".parse().expect("a name"), vec!["r-7".to_owned()]);
        let ids = || handed_out.in_use(&listed, Instant::now()).remove("a/r").unwrap_or_default();
        assert_eq!(ids(), ["r-0".to_owned(), "r-7".to_owned()].into());
        tokio::time::advance(FRESH).await;
        assert_eq!(ids(), ["r-0".to_owned()].into(), "after a while only the kubelet's list counts");
    }
}
