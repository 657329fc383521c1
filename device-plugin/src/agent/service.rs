//! The verbs: decode, do, encode.

use super::flows::Flows;
use super::host::Machine;
use super::ipam::Ipam;
use super::request::Here;
use super::{answer, deadline, request};
use proto::agent::agent_server::Agent;
use proto::agent::{
    AddRequest, AddResponse, Attachment, CheckRequest, CheckResponse, DelRequest, DelResponse, Fault, GcRequest,
    GcResponse, GetRequest, GetResponse, Interface, StatusRequest, StatusResponse, add_response::Outcome,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tonic::{Request, Response, Status};

pub(super) struct Service<I> {
    pub(super) flows: Flows<I>,
    pub(super) machine: Arc<Machine>,
}

impl<I: Ipam> Service<I> {
    /// `left` is taken from the arrival of the request on.
    async fn here(&self, attachment: Option<&Attachment>, left: Duration) -> Here {
        let deadline = ipam_core::Host::now(self.machine.as_ref()).saturating_add(left);
        let netns = attachment.and_then(|attachment| attachment.netns.clone());
        Here { netns: self.machine.netns(netns).await, boot_id: self.machine.boot_id().to_owned(), deadline }
    }

    async fn added(&self, request: Request<AddRequest>) -> Result<Interface, Fault> {
        let (since, left) = (Instant::now(), deadline::of(request.metadata()));
        let request = request.into_inner();
        let here = self.here(request.attachment.as_ref(), left).await;
        let asked = request::add(request, here).map_err(|why| answer::invalid(&why))?;
        self.machine.note_add(&asked.add.container_id).await;
        self.flows.add(asked, since, left).await.map(answer::interface)
    }

    async fn checked(&self, request: Request<CheckRequest>) -> Result<(), Fault> {
        let left = deadline::of(request.metadata());
        let CheckRequest { attachment, cidrs } = request.into_inner();
        let here = self.here(attachment.as_ref(), left).await;
        let add = request::interface(attachment, here).map_err(|why| answer::invalid(&why))?;
        self.flows.ipam().check(add, cidrs).await.map_err(answer::failed)
    }

    async fn collected(&self, request: GcRequest) -> Result<(), Fault> {
        let (network, in_use) = request::gc(request).map_err(|why| answer::invalid(&why))?;
        self.flows.gc(network, in_use).await
    }
}

#[tonic::async_trait]
impl<I: Ipam> Agent for Service<I> {
    async fn add(&self, request: Request<AddRequest>) -> Result<Response<AddResponse>, Status> {
        Ok(Response::new(match self.added(request).await {
            Ok(interface) => AddResponse {
                outcome: Some(Outcome::Interface(interface)),
                detect: Some(answer::detect(self.flows.ipam().detection())),
            },
            Err(fault) => AddResponse { outcome: Some(Outcome::Fault(fault)), detect: None },
        }))
    }

    async fn del(&self, request: Request<DelRequest>) -> Result<Response<DelResponse>, Status> {
        match request::del(request.into_inner().attachment) {
            Ok(del) => {
                // From the runtime's word on the sandbox is gone, whatever becomes of its addresses.
                self.machine.note_del(&del.container_id).await;
                self.flows.del(del).await;
            }
            // Nothing was ever added under such names.
            Err(error) => tracing::warn!(%error, "a DEL of nothing"),
        }
        Ok(Response::new(DelResponse {}))
    }

    async fn check(&self, request: Request<CheckRequest>) -> Result<Response<CheckResponse>, Status> {
        Ok(Response::new(CheckResponse { fault: self.checked(request).await.err() }))
    }

    async fn status(&self, _: Request<StatusRequest>) -> Result<Response<StatusResponse>, Status> {
        let fault = self.flows.ipam().ready().err().map(answer::not_available);
        Ok(Response::new(StatusResponse { fault }))
    }

    async fn gc(&self, request: Request<GcRequest>) -> Result<Response<GcResponse>, Status> {
        Ok(Response::new(GcResponse { fault: self.collected(request.into_inner()).await.err() }))
    }

    async fn get(&self, request: Request<GetRequest>) -> Result<Response<GetResponse>, Status> {
        let proto::agent::Pod { namespace, name, uid } = request.into_inner().pod.unwrap_or_default();
        let got = self.flows.ipam().get(ipam_core::Pod { namespace, name, uid }).await;
        Ok(Response::new(match got {
            Ok(interfaces) => {
                let interfaces = interfaces.into_iter().map(answer::interface).collect();
                GetResponse { interfaces, fault: None }
            }
            Err(why) => GetResponse { interfaces: Vec::new(), fault: Some(answer::failed(why)) },
        }))
    }
}
