//! One resource and the kubelet, from the first registration to the withdrawal.
//!
//! ```text
//! wait for a kubelet ─> listen ─> register ─> be read ─> until something is lost ─┐
//!        ^                                                                        │
//!        └──────── at once (kubelet or socket new) or after a pause (failed) ─────┘
//! ```

use super::Kubelet;
use super::folder::View;
use super::register::{NotRegistered, register};
use super::service::{Service, Streams};
use super::socket::{self, CannotListen, OwnSocket, Standing};
use crate::advertise::Surroundings;
use crate::report::{ACCEPTED, FAILED, Report, State};
use futures::stream;
use k8s_api::resource::{DeviceSet, ResourceName};
use proto::EncodedList;
use proto::plugin::device_plugin_server::DevicePluginServer;
use runtime::{Chain, Pauses};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::UnixListener;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;

/// What a resource offers now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offered {
    pub(crate) devices: DeviceSet,
    /// The list as it goes out; encoded once, sent to every stream.
    pub(crate) list: EncodedList,
}

impl Offered {
    /// The list of `devices` while these numbers of them are in use, and so many slots are taken without a pod.
    pub(crate) fn new(devices: DeviceSet, in_use: &BTreeSet<u32>, bindings: u32) -> Self {
        let listed = devices.listed(in_use, bindings).map(|device| (device.id, device.healthy));
        Self { list: EncodedList::new(listed), devices }
    }
}

/// One resource's side of the conversation.
pub(crate) struct Session {
    name: ResourceName,
    /// When the sender goes, the resource is withdrawn: the streams end after the list that was sent last.
    offered: watch::Receiver<Offered>,
    report: Report,
    surroundings: Surroundings,
    /// Each resource counts its own failures.
    pauses: Pauses,
    /// The last complaint, so that it is made once.
    said: String,
    /// Since when nothing has gone well, and whether an event told of it.
    failing: Option<(Instant, bool)>,
    /// An event said that the resource is not registered, and none yet that it is again. Outlives a kubelet.
    told: bool,
}

/// Why a session has to do something.
#[derive(Debug, thiserror::Error)]
enum Lost {
    #[error("the resource was withdrawn or the agent stops")]
    Stop,
    #[error("the kubelet restarted")]
    Kubelet,
    #[error("network resource plugin socket disappeared")]
    Socket,
    #[error("another process serves this resource at {0}")]
    Replaced(PathBuf),
    #[error(transparent)]
    NotRegistered(#[from] NotRegistered),
    #[error(transparent)]
    CannotListen(#[from] CannotListen),
    #[error("the kubelet does not read the list of devices")]
    Unread,
    #[error("the server ended")]
    Server(#[source] Option<tonic::transport::Error>),
}

/// The kubelet asks for the list right after it accepted a registration.
const UNREAD: Duration = Duration::from_secs(2);
/// A kubelet does not open a stream again by itself; this only lets a burst of changes settle.
const BROKEN: Duration = Duration::from_millis(50);
/// A registration that held for this long was a good one: the next failure begins with a short pause.
const STEADY: Duration = Duration::from_secs(10);
/// Who empties a folder removes one file after the other; by then kubelet.sock is gone too.
const EMPTYING: Duration = Duration::from_millis(20);
/// What an older agent on this node needs to notice that it was replaced.
const TAKE_OVER: Duration = Duration::from_millis(200);
/// Streams that were told to end have this long to send what they have.
const LAST_WORDS: Duration = Duration::from_secs(1);
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

impl Session {
    pub(crate) fn new(
        name: ResourceName,
        offered: watch::Receiver<Offered>,
        report: Report,
        surroundings: Surroundings,
    ) -> Self {
        let pauses = Pauses::new(PAUSE_MIN, PAUSE_MAX);
        Self { name, offered, report, surroundings, pauses, said: String::new(), failing: None, told: false }
    }

    /// Keeps the resource registered until it is withdrawn. Everything that can go wrong is waited out here, so that no
    /// other resource notices.
    pub(crate) async fn run(mut self) {
        while let Some(kubelet) = self.kubelet().await {
            let lost = self.hold(&kubelet).await;
            if self.recover(&kubelet, lost).await.is_none() {
                return;
            }
        }
    }

    /// Serves and stays registered with `kubelet` until something is lost.
    ///
    /// A kubelet that sees one stream of a resource end disconnects whatever is registered for it by then. So our streams
    /// end before the next registration, and where another process served before us it gets a moment to end its own.
    async fn hold(&mut self, kubelet: &Kubelet) -> Lost {
        let takes_over = socket::answers(&socket::path(&self.name, &kubelet.folder)).await;
        let (own, listener) = match OwnSocket::listen(&self.name, &kubelet.folder) {
            Ok(listening) => listening,
            Err(error) => return error.into(),
        };
        let streams = Streams::default();
        let end = CancellationToken::new();
        let _ends_streams = end.clone().drop_guard();
        let mut server = std::pin::pin!(self.serve(listener, streams.clone(), end.clone()));
        let staying = async {
            if takes_over {
                sleep(TAKE_OVER).await;
            }
            loop {
                let lost = self.stay_registered(kubelet, &own, &streams).await;
                // The socket stays meanwhile: an older agent on this node would take a free place.
                match self.try_again(kubelet, &own, lost).await {
                    Ok(()) => {}
                    Err(lost) => return lost,
                }
            }
        };
        let lost = tokio::select! {
            ended = &mut server => return Lost::Server(ended.err()),
            lost = staying => lost,
        };
        // The streams of a withdrawn resource end by themselves, after their last list.
        if !matches!(lost, Lost::Stop) || self.surroundings.stop.is_cancelled() {
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
        lost
    }

    async fn stay_registered(&mut self, kubelet: &Kubelet, own: &OwnSocket, streams: &Streams) -> Lost {
        self.report.state(State::Registering, "");
        let registering = async {
            register(kubelet, &self.name, own.name()).await.inspect_err(|_| self.report.registration(FAILED))?;
            self.report.registration(ACCEPTED);
            match timeout(UNREAD, streams.count().wait_for(|open| *open > 0)).await {
                Ok(_) => Ok(()),
                Err(_) => Err(Lost::Unread),
            }
        };
        let mut folder = self.surroundings.folder.view();
        let outcome = tokio::select! {
            lost = until_lost(&mut folder, kubelet, own) => return lost,
            () = self.ended() => return Lost::Stop,
            outcome = registering => outcome,
        };
        if let Err(lost) = outcome {
            return lost;
        }
        self.report.state(State::Registered, "");
        let devices = self.offered.borrow().devices.count();
        tracing::info!(resourceName = %self.name, devices, "network resource plugin is running");
        let broken = async {
            if timeout(STEADY, unread(streams.count())).await.is_err() {
                self.pauses.reset();
                self.said.clear();
                self.failing = None;
                if std::mem::take(&mut self.told) {
                    self.report.tell("NetworkResourceRegistered", "the kubelet has accepted it and reads its list");
                }
                unread(streams.count()).await;
            }
            Lost::Unread
        };
        let mut folder = self.surroundings.folder.view();
        tokio::select! {
            lost = until_lost(&mut folder, kubelet, own) => lost,
            () = ended(&self.surroundings.stop, &self.offered) => Lost::Stop,
            lost = broken => lost,
        }
    }

    /// Says what was lost and waits until it is worth trying again; nothing when the session is over.
    async fn recover(&mut self, kubelet: &Kubelet, lost: Lost) -> Option<()> {
        match &lost {
            Lost::Stop => None,
            Lost::Kubelet => {
                tracing::info!(resourceName = %self.name, reason = %lost, "re-registering");
                self.pauses.reset();
                // What another kubelet did is no complaint about this one.
                self.said.clear();
                self.failing = None;
                Some(())
            }
            Lost::Socket => {
                tracing::info!(resourceName = %self.name, reason = %lost, "re-registering");
                self.pause(kubelet).await
            }
            Lost::Replaced(path) => {
                self.report.state(State::Replaced, &lost.to_string());
                tracing::warn!(resourceName = %self.name, reason = %lost, "waiting until it ends");
                self.until_free(path).await
            }
            Lost::NotRegistered(_) | Lost::CannotListen(_) | Lost::Unread | Lost::Server(_) => {
                self.complain(&Chain(&lost).to_string());
                self.pause(kubelet).await
            }
        }
    }

    /// Waits until the same socket may be registered again; or what was lost for good, or meanwhile.
    async fn try_again(&mut self, kubelet: &Kubelet, own: &OwnSocket, lost: Lost) -> Result<(), Lost> {
        if !matches!(lost, Lost::NotRegistered(_) | Lost::Unread) {
            return Err(lost);
        }
        let mut folder = self.surroundings.folder.view();
        if !self.surroundings.folder.kubelet_listens().await {
            // Nobody refused anything: a stopped kubelet is waited for without a word.
            self.report.state(State::WaitingForKubelet, "");
            let mut back = folder.clone();
            return tokio::select! {
                lost = until_lost(&mut folder, kubelet, own) => Err(lost),
                () = self.ended() => Err(Lost::Stop),
                _ = back.wait_for(|view| view.kubelet.as_ref() == Some(kubelet)) => Ok(()),
            };
        }
        self.complain(&Chain(&lost).to_string());
        tokio::select! {
            lost = until_lost(&mut folder, kubelet, own) => Err(lost),
            over = self.pause(kubelet) => over.ok_or(Lost::Stop),
        }
    }

    /// Says what is wrong, once for as long as it stays the same.
    fn complain(&mut self, error: &str) {
        self.report.state(State::Failing, error);
        if self.said != error {
            tracing::warn!(resourceName = %self.name, error, "network resource plugin registration failed");
            error.clone_into(&mut self.said);
        }
        let (since, told) = self.failing.get_or_insert((Instant::now(), false));
        // Every restart of a kubelet breaks streams for a moment; that is no event.
        if !*told && since.elapsed() > STEADY {
            *told = true;
            self.told = true;
            let advice =
                "trying again every few seconds; if it stays, look for device-plugin errors in the kubelet's log";
            self.report.warn("NetworkResourceNotRegistered", &format!("{error}; {advice}"));
        }
    }

    /// The kubelet that listens, as soon as one does; none when the session is over.
    async fn kubelet(&self) -> Option<Kubelet> {
        let mut folder = self.surroundings.folder.view();
        if folder.borrow().kubelet.is_none() {
            self.report.state(State::WaitingForKubelet, "");
        }
        tokio::select! {
            () = self.ended() => None,
            view = folder.wait_for(|view| view.kubelet.is_some()) => view.ok()?.kubelet.clone(),
        }
    }

    /// Waits before the next try; a new kubelet cuts the wait short.
    async fn pause(&mut self, kubelet: &Kubelet) -> Option<()> {
        let pause = self.pauses.pause();
        let mut folder = self.surroundings.folder.view();
        let other = folder.wait_for(|view| view.kubelet.as_ref().is_some_and(|now| now != kubelet));
        tokio::select! {
            () = self.ended() => None,
            () = sleep(pause) => Some(()),
            _ = other => Some(()),
        }
    }

    /// Waits until nobody answers at our path any more. The newest agent on a node serves it; an older one that is about
    /// to stop must not take it back.
    async fn until_free(&self, path: &Path) -> Option<()> {
        let mut folder = self.surroundings.folder.view();
        while socket::answers(path).await {
            tokio::select! {
                () = self.ended() => return None,
                _ = folder.changed() => {}
            }
        }
        Some(())
    }

    /// The resource was withdrawn, or the agent stops.
    async fn ended(&self) {
        ended(&self.surroundings.stop, &self.offered).await;
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
            report: self.report.clone(),
            handed_out: self.surroundings.handed_out.clone(),
        };
        let incoming = stream::unfold(listener, |listener| async move {
            let accepted = listener.accept().await.map(|(connection, _)| connection);
            if let Err(error) = &accepted {
                // The server asks again at once; out of file descriptors it would spin.
                tracing::warn!(%error, "cannot accept a connection of the kubelet");
                sleep(PAUSE_MIN).await;
            }
            Some((accepted, listener))
        });
        Server::builder()
            .add_service(DevicePluginServer::new(service))
            .serve_with_incoming_shutdown(incoming, stop.cancelled_owned())
    }
}

/// Waits for what only the folder can tell.
///
/// Without a kubelet.sock nobody could be asked to dial a new socket, while open streams need no file: when somebody
/// emptied the folder of a kubelet that lives on, they are all there is until it restarts. So a file of ours that is gone
/// counts once a kubelet listens beside it.
async fn until_lost(folder: &mut watch::Receiver<View>, kubelet: &Kubelet, own: &OwnSocket) -> Lost {
    loop {
        let seen = folder.borrow_and_update().kubelet.clone();
        if seen.as_ref().is_some_and(|now| now != kubelet) {
            return Lost::Kubelet;
        }
        match own.standing() {
            Standing::Gone if seen.is_some() => {
                sleep(EMPTYING).await;
                if own.standing() == Standing::Gone && kubelet.still_there() {
                    return Lost::Socket;
                }
            }
            Standing::Ours | Standing::Gone => {}
            Standing::Replaced => return Lost::Replaced(own.path().to_owned()),
        }
        if folder.changed().await.is_err() {
            return Lost::Stop;
        }
    }
}

/// The resource was withdrawn, or the agent stops.
async fn ended(stop: &CancellationToken, offered: &watch::Receiver<Offered>) {
    let mut offered = offered.clone();
    let withdrawn = async { while offered.changed().await.is_ok() {} };
    tokio::select! {
        () = stop.cancelled() => {}
        () = withdrawn => {}
    }
}

/// Ends when no stream has been open for a while.
async fn unread(mut streams: watch::Receiver<usize>) {
    loop {
        if streams.wait_for(|open| *open == 0).await.is_err() {
            return;
        }
        if timeout(BROKEN, streams.wait_for(|open| *open > 0)).await.is_err() {
            return;
        }
    }
}
