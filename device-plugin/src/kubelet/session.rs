//! One resource and the kubelet, from the first registration to the withdrawal.

use super::Kubelet;
use super::folder::View;
use super::register::{NotRegistered, register};
use super::service::{Service, Streams};
use super::socket::{self, CannotListen, OwnSocket, Standing};
use crate::metrics::{Metrics, Registration, resource};
use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use futures::stream;
use k8s_api::resource::{DeviceSet, ResourceName};
use proto::EncodedList;
use proto::plugin::device_plugin_server::DevicePluginServer;
use runtime::Chain;
use std::path::Path;
use std::time::Duration;
use tokio::net::UnixListener;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;

/// What a resource offers now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offered {
    pub(crate) devices: DeviceSet,
    /// The list as it goes out; encoded once, sent to every stream.
    pub(crate) list: EncodedList,
}

impl From<DeviceSet> for Offered {
    fn from(devices: DeviceSet) -> Self {
        Self { list: EncodedList::healthy(devices.ids()), devices }
    }
}

/// One resource's side of the conversation.
pub(crate) struct Session {
    pub(crate) name: ResourceName,
    /// When the sender goes, the resource is withdrawn: the streams end after the list that was sent last.
    pub(crate) offered: watch::Receiver<Offered>,
    pub(crate) folder: watch::Receiver<View>,
    pub(crate) metrics: Metrics,
    pub(crate) stop: CancellationToken,
}

/// Why a session has to do something.
#[derive(Debug, thiserror::Error)]
enum Lost {
    #[error("the resource was withdrawn or the agent stops")]
    Stop,
    #[error("the kubelet restarted or went away")]
    Kubelet,
    #[error("network resource plugin socket disappeared")]
    Socket,
    #[error("another process serves this resource at our path")]
    Replaced(std::path::PathBuf),
    #[error(transparent)]
    NotRegistered(#[from] NotRegistered),
    #[error(transparent)]
    CannotListen(#[from] CannotListen),
    #[error("the kubelet does not read the list of devices")]
    Unread,
    #[error("the server ended")]
    Server(#[source] tonic::transport::Error),
}

/// The kubelet asks for the list right after it accepted a registration; a broken stream may be replaced at once by
/// another. After this long without any it has lost us.
const UNREAD: Duration = Duration::from_secs(2);
/// Streams that were told to end have this long to send what they have.
const LAST_WORDS: Duration = Duration::from_secs(1);

impl Session {
    /// Keeps the resource registered until it is withdrawn. Everything that can go wrong is waited out here, so that no
    /// other resource notices.
    pub(crate) async fn run(mut self) {
        let mut pauses = pauses();
        let mut said = String::new();
        loop {
            let Some(kubelet) = self.kubelet().await else { return };
            let lost = self.hold(&kubelet, &mut pauses, &mut said).await;
            self.metrics.registered.get_or_create(&resource(&self.name)).set(0);
            match &lost {
                Lost::Stop => return,
                Lost::Kubelet | Lost::Socket => {
                    tracing::info!(resourceName = %self.name, reason = %lost, "re-registering");
                    pauses = self::pauses();
                }
                Lost::Replaced(path) => {
                    tracing::warn!(resourceName = %self.name, socket = %path.display(), "{lost}; waiting until it ends");
                    if self.until_free(path).await.is_none() {
                        return;
                    }
                }
                Lost::NotRegistered(_) | Lost::CannotListen(_) | Lost::Unread | Lost::Server(_) => {
                    self.complain(&lost, &mut said);
                    if self.pause(&kubelet, &mut pauses).await.is_none() {
                        return;
                    }
                }
            }
        }
    }

    /// Serves and stays registered with `kubelet` until something is lost.
    async fn hold(&mut self, kubelet: &Kubelet, pauses: &mut ExponentialBackoff, said: &mut String) -> Lost {
        let (own, listener) = match OwnSocket::listen(&self.name, &kubelet.folder) {
            Ok(listening) => listening,
            Err(error) => return error.into(),
        };
        let streams = Streams::default();
        let end = CancellationToken::new();
        let _ends_streams = end.clone().drop_guard();
        let mut server = std::pin::pin!(self.serve(listener, streams.clone(), end.clone()));
        let lost = tokio::select! {
            ended = &mut server => return ended.map_or_else(Lost::Server, |()| Lost::Stop),
            lost = self.stay_registered(kubelet, &own, &streams, pauses, said) => lost,
        };
        if matches!(lost, Lost::Stop) {
            // Withdrawn streams end by themselves, after their last list; those of a process that stops are told to.
            if self.stop.is_cancelled() {
                end.cancel();
            }
            let mut open = streams.count();
            let last_words = async {
                tokio::select! {
                    _ = &mut server => {}
                    _ = open.wait_for(|open| *open == 0) => {}
                }
            };
            let _ = timeout(LAST_WORDS, last_words).await;
            tracing::info!(resourceName = %self.name, "network resource plugin server stopped");
        }
        lost
    }

    async fn stay_registered(
        &self,
        kubelet: &Kubelet,
        own: &OwnSocket,
        streams: &Streams,
        pauses: &mut ExponentialBackoff,
        said: &mut String,
    ) -> Lost {
        let mut watching = std::pin::pin!(self.until_lost(kubelet, own));
        let registering = async {
            let outcome = register(kubelet, &self.name, own.name()).await;
            let label = if outcome.is_ok() { "accepted" } else { "failed" };
            let registration = Registration { resource: self.name.to_string(), outcome: label };
            self.metrics.registrations.get_or_create(&registration).inc();
            outcome
        };
        let outcome = tokio::select! {
            lost = &mut watching => return lost,
            outcome = registering => outcome,
        };
        if let Err(error) = outcome {
            return error.into();
        }
        said.clear();
        *pauses = self::pauses();
        self.metrics.registered.get_or_create(&resource(&self.name)).set(1);
        let devices = self.offered.borrow().devices.count();
        tracing::info!(resourceName = %self.name, devices, "network resource plugin is running");
        tokio::select! {
            lost = &mut watching => lost,
            () = unread(streams.count()) => Lost::Unread,
        }
    }

    /// Waits for what only the folder or the advertiser can tell.
    async fn until_lost(&self, kubelet: &Kubelet, own: &OwnSocket) -> Lost {
        let mut folder = self.folder.clone();
        loop {
            if folder.borrow_and_update().kubelet.as_ref().is_some_and(|now| now != kubelet) {
                return Lost::Kubelet;
            }
            match own.standing() {
                Standing::Ours => {}
                Standing::Gone => return Lost::Socket,
                Standing::Replaced => return Lost::Replaced(own.path().to_owned()),
            }
            tokio::select! {
                () = self.ended() => return Lost::Stop,
                _ = folder.changed() => {}
            }
        }
    }

    /// The resource was withdrawn, or the agent stops.
    async fn ended(&self) {
        let mut offered = self.offered.clone();
        let withdrawn = async { while offered.changed().await.is_ok() {} };
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = withdrawn => {}
        }
    }

    /// The kubelet that listens, as soon as one does.
    async fn kubelet(&self) -> Option<Kubelet> {
        let mut folder = self.folder.clone();
        tokio::select! {
            () = self.ended() => None,
            view = folder.wait_for(|view| view.kubelet.is_some()) => view.ok()?.kubelet.clone(),
        }
    }

    /// Waits before the next try; a new kubelet cuts the wait short.
    async fn pause(&self, kubelet: &Kubelet, pauses: &mut ExponentialBackoff) -> Option<()> {
        let mut folder = self.folder.clone();
        let other = folder.wait_for(|view| view.kubelet.as_ref().is_some_and(|now| now != kubelet));
        tokio::select! {
            () = self.ended() => None,
            () = sleep(pauses.next().unwrap_or(PAUSE_MAX)) => Some(()),
            _ = other => Some(()),
        }
    }

    /// Waits until nobody answers at our path any more. The newest agent on a node serves it; an older one that is about
    /// to stop must not take it back.
    async fn until_free(&self, path: &Path) -> Option<()> {
        let mut folder = self.folder.clone();
        while socket::answers(path).await {
            tokio::select! {
                () = self.ended() => return None,
                _ = folder.changed() => {}
            }
        }
        Some(())
    }

    fn serve(
        &self,
        listener: UnixListener,
        streams: Streams,
        stop: CancellationToken,
    ) -> impl Future<Output = Result<(), tonic::transport::Error>> + use<> {
        let service = Service {
            offered: self.offered.clone(),
            streams,
            stop: stop.clone(),
            allocations: self.metrics.allocations.get_or_create_owned(&resource(&self.name)),
        };
        let incoming = stream::unfold(listener, |listener| async move {
            Some((listener.accept().await.map(|(connection, _)| connection), listener))
        });
        Server::builder()
            .add_service(DevicePluginServer::new(service))
            .serve_with_incoming_shutdown(incoming, stop.cancelled_owned())
    }

    /// Says what is wrong, once for as long as it stays the same.
    fn complain(&self, lost: &Lost, said: &mut String) {
        let text = Chain(lost).to_string();
        if *said != text {
            tracing::warn!(resourceName = %self.name, error = text, "network resource plugin registration failed");
            *said = text;
        }
    }
}

const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Each resource counts its own failures, with jitter, so that many do not knock at once.
fn pauses() -> ExponentialBackoff {
    ExponentialBuilder::new()
        .with_min_delay(PAUSE_MIN)
        .with_max_delay(PAUSE_MAX)
        .with_jitter()
        .without_max_times()
        .build()
}

/// Ends when no stream has been open for a while.
async fn unread(mut streams: watch::Receiver<usize>) {
    loop {
        if streams.wait_for(|open| *open == 0).await.is_err() {
            return;
        }
        if timeout(UNREAD, streams.wait_for(|open| *open > 0)).await.is_err() {
            return;
        }
    }
}
