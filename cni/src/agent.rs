//! The node agent, asked over its socket.

use crate::args;
use crate::config::{Config, Link};
use crate::error::{Code, Fault};
use crate::log::{Level, Log};
use hyper_util::rt::TokioIo;
use proto::agent::agent_client::AgentClient;
use proto::agent::{
    AddRequest, AddResponse, Attachment, CheckRequest, DelRequest, Detect, GcRequest, GetRequest, GetResponse,
    Interface, Netns, Pod, StatusRequest, add_response::Outcome, gc_request::Valid,
};
use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};
use tower::service_fn;

/// A connection to the agent.
pub(crate) struct Agent {
    client: AgentClient<Channel>,
    timeout: Duration,
    socket: PathBuf,
}

/// A socket that exists answers at once, or its process hangs.
const CONNECT: Duration = Duration::from_secs(5);
/// The agent answers a DEL within 5 s.
const DEL: Duration = Duration::from_secs(8);
/// It knows at once whether it is ready, and runtimes ask again and again.
const STATUS: Duration = Duration::from_secs(5);

impl Agent {
    pub(crate) async fn dial(config: &Config) -> Result<Self, Fault> {
        let socket = config.ipam.socket.clone();
        let channel = dial(&socket).await.map_err(|error| away(&socket, &error))?;
        Ok(Self { client: AgentClient::new(channel), timeout: config.ipam.timeout, socket })
    }

    pub(crate) async fn add(
        mut self,
        attachment: Attachment,
        args: BTreeMap<String, String>,
        config: &Config,
    ) -> Result<(Interface, Detect), Fault> {
        let Link { kind, master, vlan_id, vlan_mode, becomes_gateway: _ } = config.link.clone();
        let request = AddRequest {
            attachment: Some(attachment),
            link: Some(proto::agent::Link { r#type: kind, master, vlan_id: vlan_id.map(u32::from), vlan_mode }),
            default_ipv4_ippool: config.ipam.ipv4_pools.clone(),
            default_ipv6_ippool: config.ipam.ipv6_pools.clone(),
            clean_gateway: config.ipam.clean_gateway,
            match_master_subnet: config.ipam.match_master_subnet,
            args: args.into_iter().collect(),
        };
        let answer = self.client.add(within(self.timeout, request)).await.map_err(|status| self.status(&status))?;
        let AddResponse { outcome, detect } = answer.into_inner();
        match outcome {
            Some(Outcome::Interface(interface)) => Ok((interface, detect.unwrap_or_default())),
            Some(Outcome::Fault(fault)) => Err(fault.into()),
            None => Err(Fault::new(
                Code::TryAgain,
                "the node agent's answer is of a version that this plugin does not know",
            )),
        }
    }

    pub(crate) async fn del(mut self, attachment: Attachment) -> Result<(), Fault> {
        let request = within(DEL, DelRequest { attachment: Some(attachment) });
        self.client.del(request).await.map(drop).map_err(|status| self.status(&status))
    }

    pub(crate) async fn check(mut self, attachment: Attachment, config: &Config) -> Result<(), Fault> {
        let request = CheckRequest { attachment: Some(attachment), cidrs: config.cidrs.clone() };
        let answer = self.client.check(within(self.timeout, request)).await.map_err(|status| self.status(&status))?;
        answer.into_inner().fault.map_or(Ok(()), |fault| Err(fault.into()))
    }

    /// What the pod's interface of this name has, as far as the agent knows of it.
    pub(crate) async fn get(mut self, pod: Pod, interface: &str) -> Result<Option<Interface>, Fault> {
        let answer = self.client.get(within(self.timeout, GetRequest { pod: Some(pod) })).await;
        let GetResponse { interfaces, fault } = answer.map_err(|status| self.status(&status))?.into_inner();
        match fault {
            None => Ok(interfaces.into_iter().find(|found| found.name == interface)),
            Some(fault) => Err(fault.into()),
        }
    }

    pub(crate) async fn ready(mut self) -> Result<(), Fault> {
        let answer = self.client.status(within(self.timeout.min(STATUS), StatusRequest {})).await;
        match answer.map_err(|status| self.status(&status))?.into_inner().fault {
            None => Ok(()),
            Some(fault) => Err(fault.into()),
        }
    }

    pub(crate) async fn gc(mut self, config: &Config) -> Result<(), Fault> {
        let valid = config.valid.iter().cloned();
        let valid = valid.map(|valid| Valid { container_id: valid.container_id, interface: valid.interface }).collect();
        let request = within(self.timeout, GcRequest { network: config.name.clone(), valid });
        let answer = self.client.gc(request).await.map_err(|status| self.status(&status))?;
        answer.into_inner().fault.map_or(Ok(()), |fault| Err(fault.into()))
    }

    /// Whatever kept the agent from an answer may be over at the next try: it restarts, is being replaced, or is of another
    /// version.
    fn status(&self, status: &Status) -> Fault {
        let socket = self.socket.display();
        Fault {
            details: chain(status),
            ..Fault::new(Code::TryAgain, format!("no answer from the node agent at {socket}: {}", status.message()))
        }
    }
}

/// Waits for answers of the agent.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Fault::new(Code::Io, format!("cannot wait for the agent: {error}")))
}

/// A DEL. What is left is the agent's to find when it is back; an error would keep the pod terminating.
pub(crate) async fn release(attachment: Attachment, config: &Config, log: &Log) {
    let deleted = match Agent::dial(config).await {
        Ok(agent) => agent.del(attachment).await,
        Err(fault) => Err(fault),
    };
    if let Err(Fault { msg, details, .. }) = deleted {
        log.write(Level::Warn, &format!("DEL {} is left to the agent: {msg}: {details}", config.name));
    }
}

/// A STATUS. Code 50 is the one by which a runtime knows that ADDs would fail.
pub(crate) async fn ready(config: &Config) -> Result<(), Fault> {
    let ready = match Agent::dial(config).await {
        Ok(agent) => agent.ready().await,
        Err(fault) => Err(fault),
    };
    ready.map_err(|fault| Fault { details: fault.details, ..Fault::new(Code::NotAvailable, fault.msg) })
}

/// Tells the agent that this sandbox will not be. What it frees of a pod that lives on are no addresses: it comes again for them.
pub(crate) async fn give_back(attachment: Attachment, config: &Config, until: Instant, log: &Log) {
    const LEAST: Duration = Duration::from_secs(1);
    let left = until.saturating_duration_since(Instant::now()).max(LEAST);
    let given = async { Agent::dial(config).await?.del(attachment).await };
    let why = match tokio::time::timeout(left, given).await {
        Ok(Ok(())) => return,
        Ok(Err(Fault { msg, details, .. })) => format!("{msg}: {details}"),
        Err(_) => "the time is up".to_owned(),
    };
    // The runtime ends what failed with a DEL of its own.
    log.write(Level::Warn, &format!("giving back what {} was given is left to the runtime: {why}", config.name));
}

/// What the agent is told of an interface.
pub(crate) fn attachment(asked: args::Attachment, network: &str, netns: Option<Netns>) -> Attachment {
    let args::Attachment { container_id, interface, netns: path, pod, args: _ } = asked;
    let args::Pod { namespace, name, uid } = pod;
    Attachment {
        container_id,
        interface,
        network: network.to_owned(),
        netns: netns.or_else(|| (!path.is_empty()).then_some(Netns { path, dev: 0, inode: 0 })),
        pod: Some(Pod { namespace, name, uid }),
    }
}

fn within<T>(time: Duration, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(time);
    request
}

async fn dial(socket: &Path) -> Result<Channel, tonic::transport::Error> {
    let path = socket.to_owned();
    let connect = service_fn(move |_| {
        let path = path.clone();
        async move { UnixStream::connect(path).await.map(TokioIo::new) }
    });
    // The address is not used: the connector knows its path.
    Endpoint::from_static("http://localhost").connect_timeout(CONNECT).connect_with_connector(connect).await
}

fn away(socket: &Path, error: &tonic::transport::Error) -> Fault {
    let msg =
        format!("the node agent does not answer at {}: it is starting, or it is not on this node", socket.display());
    Fault { details: chain(error), ..Fault::new(Code::TryAgain, msg) }
}

fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}
