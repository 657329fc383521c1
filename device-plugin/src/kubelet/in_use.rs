//! Which devices pods hold, as the kubelet says (`PodResources` API), and as it asked a moment ago (`Allocate`).

use hyper_util::rt::TokioIo;
use k8s_api::resource::ResourceName;
use proto::podresources::ListPodResourcesRequest;
use proto::podresources::pod_resources_lister_client::PodResourcesListerClient;
use runtime::Chain;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout};
use tonic::transport::Endpoint;
use tower::service_fn;

/// Ids in use by resource name.
pub(crate) type InUse = Arc<BTreeMap<String, BTreeSet<String>>>;

/// Tells of devices that were just handed out. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct HandedOut(mpsc::Sender<(String, Vec<String>)>);

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
/// Full: the next question to the kubelet tells the same.
const QUEUE: usize = 1024;

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
) -> (HandedOut, watch::Receiver<Option<InUse>>, impl Future<Output = Result<(), Infallible>>) {
    let (handed_out, queue) = mpsc::channel(QUEUE);
    let (in_use, latest) = watch::channel(None);
    (HandedOut(handed_out), latest, run(sockets, queue, in_use))
}

async fn run(
    sockets: Vec<PathBuf>,
    mut queue: mpsc::Receiver<(String, Vec<String>)>,
    in_use: watch::Sender<Option<InUse>>,
) -> Result<(), Infallible> {
    let mut ledger = Ledger::default();
    let mut said = String::new();
    loop {
        match ask(&sockets).await {
            Ok(listed) => {
                said.clear();
                ledger.listed = listed;
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
        let mut told = false;
        loop {
            if !told {
                let now = Arc::new(ledger.in_use(Instant::now()));
                in_use.send_if_modified(|before| before.replace(Arc::clone(&now)).as_ref() != Some(&now));
                told = true;
                // The first of many is told at once, the others together.
                sleep(BURST).await;
            }
            match tokio::time::timeout_at(next, queue.recv()).await {
                Ok(Some(handed_out)) => {
                    ledger.note(handed_out);
                    while let Ok(handed_out) = queue.try_recv() {
                        ledger.note(handed_out);
                    }
                    next = next.min(Instant::now() + ASK_SOON);
                    told = false;
                }
                Ok(None) => std::future::pending().await,
                Err(_) => break,
            }
        }
    }
}

/// What the kubelet listed, and what it was given since.
#[derive(Debug, Default)]
struct Ledger {
    listed: BTreeMap<String, BTreeSet<String>>,
    fresh: Vec<(Instant, String, Vec<String>)>,
}

impl Ledger {
    fn note(&mut self, (resource, ids): (String, Vec<String>)) {
        self.fresh.push((Instant::now(), resource, ids));
    }

    fn in_use(&mut self, now: Instant) -> BTreeMap<String, BTreeSet<String>> {
        self.fresh.retain(|(at, ..)| now.saturating_duration_since(*at) < FRESH);
        let mut in_use = self.listed.clone();
        for (_, resource, ids) in &self.fresh {
            in_use.entry(resource.clone()).or_default().extend(ids.iter().cloned());
        }
        in_use
    }
}

async fn ask(sockets: &[PathBuf]) -> Result<BTreeMap<String, BTreeSet<String>>, Unknown> {
    let live = sockets.iter().find(|socket| socket.exists()).or(sockets.first()).cloned().unwrap_or_default();
    let call = async {
        let path = live.clone();
        let connect = service_fn(move |_| {
            let path = path.clone();
            async move { UnixStream::connect(path).await.map(TokioIo::new) }
        });
        let endpoint = Endpoint::from_static("http://localhost");
        let channel = endpoint.connect_with_connector(connect).await;
        let channel = channel.map_err(|source| Unknown::Connect(live.clone(), source))?;
        PodResourcesListerClient::new(channel).list(ListPodResourcesRequest {}).await.map_err(Unknown::Refused)
    };
    let pods = timeout(ANSWER, call).await.map_err(|_| Unknown::Slow)??.into_inner().pod_resources;
    let mut listed = BTreeMap::<String, BTreeSet<String>>::new();
    for devices in pods.into_iter().flat_map(|pod| pod.containers).flat_map(|container| container.devices) {
        listed.entry(devices.resource_name).or_default().extend(devices.device_ids);
    }
    Ok(listed)
}

impl HandedOut {
    /// The kubelet has just been given these.
    pub(crate) fn note(&self, resource: &ResourceName, ids: Vec<String>) {
        let _ = self.0.try_send((resource.to_string(), ids));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_device_counts_from_the_moment_it_is_handed_out() {
        let mut ledger = Ledger::default();
        ledger.listed.entry("r".to_owned()).or_default().insert("r-0".to_owned());
        ledger.note(("r".to_owned(), vec!["r-7".to_owned()]));
        let ids = |ledger: &mut Ledger| ledger.in_use(Instant::now()).remove("r").unwrap_or_default();
        assert_eq!(ids(&mut ledger), ["r-0".to_owned(), "r-7".to_owned()].into());
        tokio::time::advance(FRESH).await;
        assert_eq!(ids(&mut ledger), ["r-0".to_owned()].into(), "after a while only the kubelet's list counts");
    }
}
