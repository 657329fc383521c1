//! An agent that answers by a script.

use futures::stream;
use proto::agent::agent_server::{Agent, AgentServer};
use proto::agent::{
    AddRequest, AddResponse, Address, CheckRequest, CheckResponse, DelRequest, DelResponse, Detect, Fault, GcRequest,
    GcResponse, GetRequest, GetResponse, Interface, Route, StatusRequest, StatusResponse, add_response::Outcome,
};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::UnixListener;
use tokio::sync::oneshot;
use tonic::{Request, Response, Status};

#[derive(Clone, Debug)]
pub(crate) enum Script {
    Good,
    Fault(u32),
    /// As an agent of a later version with an outcome that this plugin does not know.
    NoOutcome,
    BadAnswer,
    /// These addresses with their gateways, and what is to be found out about them first.
    Detect(Detect, Vec<(&'static str, &'static str)>),
    Error(tonic::Code),
    Never,
    /// This VLAN and this MAC.
    #[allow(dead_code, reason = "of the tests in a guest")]
    Link(u32, &'static str),
}

/// What was asked, and how much time the caller gave.
#[derive(Clone, Debug)]
pub(crate) enum Asked {
    Add(AddRequest, String),
    Del(DelRequest),
    Check(CheckRequest),
    Status,
    Gc(GcRequest),
}

pub(crate) struct FakeAgent {
    folder: tempfile::TempDir,
    asked: Arc<Mutex<Vec<Asked>>>,
    _stop: oneshot::Sender<()>,
}

struct Service {
    script: Script,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl FakeAgent {
    pub(crate) fn start(script: Script) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let service = Service { script, asked: asked.clone() };
        let (stop, stopped) = oneshot::channel::<()>();
        let (ready, is_ready) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let listener = UnixListener::bind(path).expect("listens");
                ready.send(()).expect("waited for");
                let incoming = stream::unfold(listener, |listener| async {
                    Some((listener.accept().await.map(|(stream, _)| stream), listener))
                });
                let server = tonic::transport::Server::builder().add_service(AgentServer::new(service));
                tokio::select! {
                    ended = server.serve_with_incoming(incoming) => ended.expect("serves"),
                    _ = stopped => {}
                }
            });
        });
        is_ready.recv().expect("starts");
        Self { folder, asked, _stop: stop }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("s")
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("no panic").clone()
    }
}

impl Service {
    async fn play(&self, asked: Asked) -> Result<Option<Fault>, Status> {
        self.asked.lock().expect("no panic").push(asked);
        match self.script {
            Script::Good | Script::NoOutcome | Script::BadAnswer | Script::Detect(..) | Script::Link(..) => Ok(None),
            Script::Fault(code) => Ok(Some(Fault { code, msg: "the reason".into(), details: "more".into() })),
            Script::Error(code) => Err(Status::new(code, "the status")),
            Script::Never => {
                tokio::time::sleep(Duration::from_mins(1)).await;
                Err(Status::aborted("nobody waits that long"))
            }
        }
    }
}

fn interface(cidr: &str) -> Interface {
    Interface {
        name: "net1".into(),
        addresses: vec![Address { cidr: cidr.into(), gateway: "172.91.0.1".into(), pool: "p".into() }],
        routes: vec![Route { dst: "0.0.0.0/0".into(), gw: "172.91.0.1".into() }],
        mac: "02:00:00:00:00:01".into(),
        vlan: 7,
    }
}

#[tonic::async_trait]
impl Agent for Service {
    async fn add(&self, request: Request<AddRequest>) -> Result<Response<AddResponse>, Status> {
        let time = request.metadata().get("grpc-timeout").and_then(|time| time.to_str().ok()).unwrap_or_default();
        let time = time.to_owned();
        let fault = self.play(Asked::Add(request.into_inner(), time)).await?;
        let detect = if let Script::Detect(detect, _) = self.script { Some(detect) } else { None };
        let outcome = match (fault, &self.script) {
            (Some(fault), _) => Some(Outcome::Fault(fault)),
            (None, Script::NoOutcome) => None,
            (None, Script::BadAnswer) => Some(Outcome::Interface(interface("172.91.0.7"))),
            (None, Script::Detect(_, addresses)) => {
                let address = |(cidr, gateway): &(&str, &str)| Address {
                    cidr: (*cidr).into(),
                    gateway: (*gateway).into(),
                    pool: "p".into(),
                };
                let addresses = addresses.iter().map(address).collect();
                Some(Outcome::Interface(Interface { addresses, routes: Vec::new(), ..interface("172.91.0.7/24") }))
            }
            (None, Script::Link(vlan, mac)) => {
                Some(Outcome::Interface(Interface { vlan: *vlan, mac: (*mac).into(), ..interface("172.91.0.7/24") }))
            }
            (None, _) => Some(Outcome::Interface(interface("172.91.0.7/24"))),
        };
        Ok(Response::new(AddResponse { outcome, detect }))
    }

    async fn del(&self, request: Request<DelRequest>) -> Result<Response<DelResponse>, Status> {
        self.play(Asked::Del(request.into_inner())).await?;
        Ok(Response::new(DelResponse {}))
    }

    async fn check(&self, request: Request<CheckRequest>) -> Result<Response<CheckResponse>, Status> {
        let fault = self.play(Asked::Check(request.into_inner())).await?;
        Ok(Response::new(CheckResponse { fault }))
    }

    async fn status(&self, _: Request<StatusRequest>) -> Result<Response<StatusResponse>, Status> {
        let fault = self.play(Asked::Status).await?;
        Ok(Response::new(StatusResponse { fault }))
    }

    async fn gc(&self, request: Request<GcRequest>) -> Result<Response<GcResponse>, Status> {
        let fault = self.play(Asked::Gc(request.into_inner())).await?;
        Ok(Response::new(GcResponse { fault }))
    }

    async fn get(&self, _: Request<GetRequest>) -> Result<Response<GetResponse>, Status> {
        let interfaces = match self.script {
            Script::Link(vlan, mac) => vec![Interface { vlan, mac: mac.into(), ..interface("172.91.0.7/24") }],
            _ => Vec::new(),
        };
        Ok(Response::new(GetResponse { interfaces, fault: None }))
    }
}
