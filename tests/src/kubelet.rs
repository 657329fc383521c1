//! A kubelet that speaks the device-plugin protocol as the real one does, and misbehaves on demand.
//!
//! Like the real one it dials back while `Register` runs, asks for the options, and reads `ListAndWatch` from then on. A
//! restart empties the folder before the new `kubelet.sock` appears.

use crate::wait;
use futures::stream;
use hyper_util::rt::TokioIo;
use proto::deviceplugin::device_plugin_client::DevicePluginClient;
use proto::deviceplugin::registration_server::{Registration, RegistrationServer};
use proto::deviceplugin::{AllocateRequest, AllocateResponse, ContainerAllocateRequest, Empty, RegisterRequest};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status};
use tower::service_fn;

/// What `Register` answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Dials back and reads the list.
    Accept,
    /// Accepts, but never asks for the list.
    AcceptOnly,
    /// Refuses with this text.
    Refuse(&'static str),
    /// Accepts after this long.
    Slow(Duration),
    /// Never answers.
    Hang,
}

/// One list of devices, as it arrived.
#[derive(Clone, Debug)]
pub struct List {
    /// When.
    pub at: Instant,
    /// Id and health of each device.
    pub devices: Vec<(String, String)>,
}

/// What the kubelet knows of one resource.
#[derive(Debug, Default)]
struct Known {
    /// When each `Register` call came.
    registered: Vec<Instant>,
    endpoint: String,
    /// Lists of each stream, the latest stream last.
    streams: Vec<Vec<List>>,
    open: usize,
    reader: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct State {
    folder: PathBuf,
    answers: BTreeMap<String, Answer>,
    known: BTreeMap<String, Known>,
}

type Shared = Arc<Mutex<State>>;

/// A kubelet that listens in a folder.
#[derive(Debug)]
pub struct FakeKubelet {
    state: Shared,
    server: Option<JoinHandle<()>>,
}

fn lock(state: &Shared) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FakeKubelet {
    /// Knows of `folder`, and does not listen yet.
    pub fn stopped(folder: &Path) -> Self {
        fs::create_dir_all(folder).expect("a folder");
        let state = State { folder: folder.to_owned(), answers: BTreeMap::new(), known: BTreeMap::new() };
        Self { state: Arc::new(Mutex::new(state)), server: None }
    }

    /// Listens in `folder`.
    pub fn started(folder: &Path) -> Self {
        let mut kubelet = Self::stopped(folder);
        kubelet.start();
        kubelet
    }

    fn socket(&self) -> PathBuf {
        lock(&self.state).folder.join("kubelet.sock")
    }

    /// Makes a new `kubelet.sock` and listens.
    pub fn start(&mut self) {
        let socket = self.socket();
        let _ = fs::remove_file(&socket);
        let listener = UnixListener::bind(&socket).expect("a socket");
        let incoming = stream::unfold(listener, |listener| async move {
            Some((listener.accept().await.map(|(connection, _)| connection), listener))
        });
        let service = RegistrationServer::new(Register(Arc::clone(&self.state)));
        let serve = Server::builder().add_service(service).serve_with_incoming(incoming);
        self.server = Some(tokio::spawn(async move {
            let _ = serve.await;
        }));
    }

    /// Dies as a killed kubelet does: `kubelet.sock` stays as a dead file, streams break.
    pub fn kill(&mut self) {
        if let Some(server) = self.server.take() {
            server.abort();
        }
        for known in lock(&self.state).known.values_mut() {
            if let Some(reader) = known.reader.take() {
                reader.abort();
            }
        }
    }

    /// Restarts as the real one does: dies, empties the folder but for its checkpoint, listens again.
    pub async fn restart(&mut self) {
        self.kill();
        tokio::task::yield_now().await;
        self.empty_folder();
        self.start();
    }

    /// Removes every file but the checkpoint. `kubelet.sock` goes first: an agent that misses a socket of its own while that
    /// one is there has to register again, and whether it looks in between would be chance.
    pub fn empty_folder(&self) {
        let _ = fs::remove_file(self.socket());
        for entry in fs::read_dir(&lock(&self.state).folder).expect("readable").flatten() {
            if entry.file_name() != "kubelet_internal_checkpoint" {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// What `Register` answers for `resource` from now on.
    pub fn answer(&self, resource: &str, answer: Answer) {
        lock(&self.state).answers.insert(resource.to_owned(), answer);
    }

    /// How often `resource` has called `Register`.
    pub fn registrations(&self, resource: &str) -> usize {
        lock(&self.state).known.get(resource).map_or(0, |known| known.registered.len())
    }

    /// Streams of `resource` that are open.
    pub fn open_streams(&self, resource: &str) -> usize {
        lock(&self.state).known.get(resource).map_or(0, |known| known.open)
    }

    /// Lists that came on the latest stream of `resource`.
    pub fn lists(&self, resource: &str) -> Vec<List> {
        let state = lock(&self.state);
        state.known.get(resource).and_then(|known| known.streams.last().cloned()).unwrap_or_default()
    }

    /// How many streams `resource` ever had.
    pub fn streams(&self, resource: &str) -> usize {
        lock(&self.state).known.get(resource).map_or(0, |known| known.streams.len())
    }

    /// Devices that the latest list of `resource` calls healthy; none without an open stream, as the kubelet counts.
    pub fn allocatable(&self, resource: &str) -> Option<usize> {
        let state = lock(&self.state);
        // Not copied: lists may be large, and this is asked often.
        let list = state.known.get(resource).filter(|known| known.open > 0)?.streams.last()?.last()?;
        Some(list.devices.iter().filter(|(_, health)| health == "Healthy").count())
    }

    /// Waits until so many devices of `resource` are allocatable; how long that took.
    pub async fn until_allocatable(&self, resource: &str, wanted: usize, limit: Duration) -> Duration {
        let started = Instant::now();
        wait::until(format!("{wanted} of {resource}"), limit, async || {
            let found = self.allocatable(resource);
            if found == Some(wanted) { Ok(()) } else { Err(format!("it is {found:?}")) }
        })
        .await;
        started.elapsed()
    }

    /// Breaks the stream of `resource` and nothing else.
    pub fn cut(&self, resource: &str) {
        if let Some(reader) = lock(&self.state).known.get_mut(resource).and_then(|known| known.reader.take()) {
            reader.abort();
        }
    }

    /// Path of the socket that `resource` registered.
    pub fn endpoint(&self, resource: &str) -> PathBuf {
        let state = lock(&self.state);
        state.folder.join(&state.known.get(resource).expect("registered").endpoint)
    }

    /// Calls `Allocate`, one list of ids a container.
    pub async fn allocate(&self, resource: &str, containers: &[&[&str]]) -> Result<AllocateResponse, Status> {
        let endpoint = self.endpoint(resource);
        let mut client = dial(&endpoint).await.map_err(|error| Status::unavailable(error.to_string()))?;
        let container =
            |ids: &&[&str]| ContainerAllocateRequest { devices_ids: ids.iter().map(ToString::to_string).collect() };
        let request = AllocateRequest { container_requests: containers.iter().map(container).collect() };
        client.allocate(request).await.map(Response::into_inner)
    }
}

impl Drop for FakeKubelet {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A client of a plugin's socket, with the authority that kubelets of 1.26 and later send.
pub async fn dial(socket: &Path) -> Result<DevicePluginClient<Channel>, tonic::transport::Error> {
    let socket = socket.to_owned();
    let connect = service_fn(move |_| {
        let socket = socket.clone();
        async move { UnixStream::connect(socket).await.map(TokioIo::new) }
    });
    Ok(DevicePluginClient::new(Endpoint::from_static("http://localhost").connect_with_connector(connect).await?))
}

struct Register(Shared);

#[tonic::async_trait]
impl Registration for Register {
    async fn register(&self, request: Request<RegisterRequest>) -> Result<Response<Empty>, Status> {
        let RegisterRequest { version, endpoint, resource_name, options: _ } = request.into_inner();
        if version != proto::DEVICE_PLUGIN_VERSION {
            return Err(Status::invalid_argument(format!("version {version}")));
        }
        let (answer, socket) = {
            let mut state = lock(&self.0);
            let socket = state.folder.join(&endpoint);
            let answer = state.answers.get(&resource_name).cloned().unwrap_or(Answer::Accept);
            let known = state.known.entry(resource_name.clone()).or_default();
            known.registered.push(Instant::now());
            known.endpoint = endpoint;
            (answer, socket)
        };
        match answer {
            Answer::Refuse(reason) => return Err(Status::invalid_argument(reason)),
            Answer::Hang => std::future::pending().await,
            Answer::Slow(pause) => tokio::time::sleep(pause).await,
            Answer::Accept | Answer::AcceptOnly => {}
        }
        let unreachable = |error: tonic::transport::Error| Status::unavailable(format!("cannot dial back: {error}"));
        let mut client = dial(&socket).await.map_err(unreachable)?;
        client.get_device_plugin_options(Empty {}).await?;
        if answer != Answer::AcceptOnly {
            let reader = tokio::spawn(read(client, Arc::clone(&self.0), resource_name.clone()));
            let mut state = lock(&self.0);
            if let Some(known) = state.known.get_mut(&resource_name) {
                // A new registration takes the place of the old endpoint.
                if let Some(old) = known.reader.replace(reader) {
                    old.abort();
                }
            }
        }
        Ok(Response::new(Empty {}))
    }
}

/// Counts a stream as open for as long as it is read.
struct Open(Shared, String);

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(known) = lock(&self.0).known.get_mut(&self.1) {
            known.open -= 1;
        }
    }
}

async fn read(mut client: DevicePluginClient<Channel>, state: Shared, resource: String) {
    let Ok(answer) = client.list_and_watch(Empty {}).await else { return };
    let mut lists = answer.into_inner();
    let (stream, _open) = {
        let mut locked = lock(&state);
        let Some(known) = locked.known.get_mut(&resource) else { return };
        known.streams.push(Vec::new());
        known.open += 1;
        (known.streams.len() - 1, Open(Arc::clone(&state), resource.clone()))
    };
    while let Ok(Some(list)) = lists.message().await {
        let devices = list.devices.into_iter().map(|device| (device.id, device.health)).collect();
        if let Some(known) = lock(&state).known.get_mut(&resource)
            && let Some(lists) = known.streams.get_mut(stream)
        {
            lists.push(List { at: Instant::now(), devices });
        }
    }
}
