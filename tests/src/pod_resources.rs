//! The kubelet's `PodResources` API, answering what it is told to.

use futures::stream;
use proto::podresources::pod_resources_lister_server::{PodResourcesLister, PodResourcesListerServer};
use proto::podresources::{
    AllocatableResourcesRequest, AllocatableResourcesResponse, ContainerDevices, ContainerResources,
    GetPodResourcesRequest, GetPodResourcesResponse, ListPodResourcesRequest, ListPodResourcesResponse, PodResources,
};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::UnixListener;
use tokio::task::JoinHandle;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

/// What `List` answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Says {
    /// Pods, each with the devices of one resource; and one without any, as the agent's own.
    Held(Vec<(&'static str, Vec<&'static str>)>),
    /// Never to the first question, and this to the next.
    HeldAtSecond(Vec<(&'static str, Vec<&'static str>)>),
    /// No pod at all, as a kubelet that has just started.
    NoPod,
    /// An error.
    Error,
    /// Never.
    Nothing,
}

#[derive(Debug)]
struct State {
    says: Says,
    asked: usize,
}

/// Serves the API below a kubelet's root folder.
#[derive(Debug)]
pub struct FakePodResources {
    state: Arc<Mutex<State>>,
    server: JoinHandle<()>,
}

fn change<T>(state: &Mutex<State>, change: impl FnOnce(&mut State) -> T) -> T {
    change(&mut state.lock().unwrap_or_else(PoisonError::into_inner))
}

impl FakePodResources {
    /// Listens at `pod-resources/kubelet.sock` in `root`.
    pub fn started(root: &Path, says: Says) -> Self {
        let folder = root.join("pod-resources");
        std::fs::create_dir_all(&folder).expect("a folder");
        let listener = UnixListener::bind(folder.join("kubelet.sock")).expect("a socket");
        let incoming = stream::unfold(listener, |listener| async move {
            Some((listener.accept().await.map(|(connection, _)| connection), listener))
        });
        let state = Arc::new(Mutex::new(State { says, asked: 0 }));
        let service = PodResourcesListerServer::new(Lister(Arc::clone(&state)));
        let serve = Server::builder().add_service(service).serve_with_incoming(incoming);
        let server = tokio::spawn(async move {
            let _ = serve.await;
        });
        Self { state, server }
    }

    /// What it says from now on.
    pub fn says(&self, says: Says) {
        change(&self.state, |state| *state = State { says, asked: 0 });
    }

    /// How often it was asked since it says what it says.
    pub fn asked(&self) -> usize {
        change(&self.state, |state| state.asked)
    }
}

impl Drop for FakePodResources {
    fn drop(&mut self) {
        self.server.abort();
    }
}

struct Lister(Arc<Mutex<State>>);

#[tonic::async_trait]
impl PodResourcesLister for Lister {
    async fn list(&self, _: Request<ListPodResourcesRequest>) -> Result<Response<ListPodResourcesResponse>, Status> {
        let (says, asked) = change(&self.0, |state| {
            state.asked += 1;
            (state.says.clone(), state.asked)
        });
        let pod_resources = match says {
            Says::HeldAtSecond(_) if asked == 1 => std::future::pending().await,
            Says::Held(held) | Says::HeldAtSecond(held) => {
                held.into_iter().map(|(resource, ids)| pod(resource, &ids)).chain([PodResources::default()]).collect()
            }
            Says::NoPod => Vec::new(),
            Says::Error => return Err(Status::internal("cannot list")),
            Says::Nothing => std::future::pending().await,
        };
        Ok(Response::new(ListPodResourcesResponse { pod_resources }))
    }

    async fn get_allocatable_resources(
        &self,
        _: Request<AllocatableResourcesRequest>,
    ) -> Result<Response<AllocatableResourcesResponse>, Status> {
        Err(Status::unimplemented("not asked by the agent"))
    }

    async fn get(&self, _: Request<GetPodResourcesRequest>) -> Result<Response<GetPodResourcesResponse>, Status> {
        Err(Status::unimplemented("not asked by the agent"))
    }
}

fn pod(resource: &str, ids: &[&str]) -> PodResources {
    let device_ids = ids.iter().map(ToString::to_string).collect();
    let devices = vec![ContainerDevices { resource_name: resource.to_owned(), device_ids, topology: None }];
    PodResources { containers: vec![ContainerResources { devices, ..Default::default() }], ..Default::default() }
}
