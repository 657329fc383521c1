//! A CNI plugin, as the agent hears it.

use hyper_util::rt::TokioIo;
use proto::agent::add_response::Outcome;
use proto::agent::agent_client::AgentClient;
use proto::agent::{AddRequest, Attachment, DelRequest, Fault, Interface, Link, Pod};
use std::path::Path;
use std::time::Duration;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};
use tower::service_fn;

/// One sandbox of a pod, with one interface.
#[derive(Clone, Debug)]
pub struct Sandbox {
    /// Its id.
    pub container: String,
    /// Name of the pod, in namespace `default`.
    pub pod: String,
    /// UID of the pod.
    pub uid: String,
    /// Pool that the network's configuration names.
    pub pool: String,
    /// NIC of the node on which a provider binds; empty for a network without a provider.
    pub master: String,
}

/// Why there is no interface.
#[derive(Clone, Debug)]
pub enum NoInterface {
    /// The agent says why.
    Fault(Fault),
    /// The agent says nothing that the plugin knows.
    Status(Status),
}

/// A connection to the agent of a node.
#[derive(Clone, Debug)]
pub struct Plugin(AgentClient<Channel>);

const DEL: Duration = Duration::from_secs(8);

impl Plugin {
    /// Connects to `socket`.
    pub async fn dial(socket: &Path) -> Result<Self, tonic::transport::Error> {
        let path = socket.to_owned();
        let connect = service_fn(move |_| {
            let path = path.clone();
            async move { UnixStream::connect(path).await.map(TokioIo::new) }
        });
        let channel = Endpoint::from_static("http://localhost").connect_with_connector(connect).await?;
        Ok(Self(AgentClient::new(channel)))
    }

    /// ADD, with so much time.
    pub async fn add(&self, sandbox: &Sandbox, time: Duration) -> Result<Interface, NoInterface> {
        let mut request = Request::new(AddRequest {
            attachment: Some(sandbox.attachment()),
            link: Some(sandbox.link()),
            default_ipv4_ippool: vec![sandbox.pool.clone()],
            ..AddRequest::default()
        });
        request.set_timeout(time);
        let answer = self.0.clone().add(request).await.map_err(NoInterface::Status)?;
        match answer.into_inner().outcome {
            Some(Outcome::Interface(interface)) => Ok(interface),
            Some(Outcome::Fault(fault)) => Err(NoInterface::Fault(fault)),
            None => Err(NoInterface::Status(Status::internal("an answer without an outcome"))),
        }
    }

    /// DEL.
    pub async fn del(&self, sandbox: &Sandbox) -> Result<(), Status> {
        let mut request = Request::new(DelRequest { attachment: Some(sandbox.attachment()) });
        request.set_timeout(DEL);
        self.0.clone().del(request).await.map(drop)
    }
}

impl Sandbox {
    fn link(&self) -> Link {
        let kind = if self.master.is_empty() { "macvlan" } else { "vlan" };
        Link { r#type: kind.to_owned(), master: self.master.clone(), ..Link::default() }
    }

    fn attachment(&self) -> Attachment {
        let pod = Pod { namespace: "default".to_owned(), name: self.pod.clone(), uid: self.uid.clone() };
        Attachment {
            container_id: self.container.clone(),
            interface: "net1".to_owned(),
            network: "default/net".to_owned(),
            netns: None,
            pod: Some(pod),
        }
    }
}

/// The one address of an interface, without the length of its prefix.
pub fn address(interface: &Interface) -> String {
    let [one] = interface.addresses.as_slice() else { panic!("one address: {interface:?}") };
    one.cidr.split('/').next().unwrap_or_default().to_owned()
}
