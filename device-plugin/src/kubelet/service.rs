//! What the kubelet asks of a resource.
//!
//! Nothing here waits for anything but the next list: the kubelet admits the pods of a node one by one, and a slow
//! `Allocate` would hold up pods that do not use us.

use super::handed_out::HandedOut;
use super::session::Offered;
use crate::report::Report;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use proto::EncodedList;
use proto::plugin::device_plugin_server::DevicePlugin;
use proto::plugin::{
    AllocateRequest, AllocateResponse, ContainerAllocateResponse, DevicePluginOptions, Empty, PreStartContainerRequest,
    PreStartContainerResponse, PreferredAllocationRequest, PreferredAllocationResponse,
};
use std::sync::Arc;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

/// Serves one resource until `stop`.
pub(crate) struct Service {
    pub(crate) offered: watch::Receiver<Offered>,
    pub(crate) streams: Streams,
    pub(crate) stop: CancellationToken,
    pub(crate) report: Report,
    pub(crate) handed_out: HandedOut,
}

/// Counts the streams that are open.
#[derive(Clone, Debug)]
pub(crate) struct Streams(Arc<watch::Sender<usize>>);

/// One open stream.
struct Open(Streams);

impl Default for Streams {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }
}

impl Streams {
    pub(crate) fn count(&self) -> watch::Receiver<usize> {
        self.0.subscribe()
    }

    fn open(&self) -> Open {
        self.0.send_modify(|count| *count = count.saturating_add(1));
        Open(self.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}

#[tonic::async_trait]
impl DevicePlugin for Service {
    type ListAndWatchStream = BoxStream<'static, Result<EncodedList, Status>>;

    async fn get_device_plugin_options(&self, _: Request<Empty>) -> Result<Response<DevicePluginOptions>, Status> {
        Ok(Response::new(DevicePluginOptions::default()))
    }

    async fn list_and_watch(&self, _: Request<Empty>) -> Result<Response<Self::ListAndWatchStream>, Status> {
        self.report.contact();
        let open = self.streams.open();
        let lists = lists(self.offered.clone()).take_until(self.stop.clone().cancelled_owned());
        Ok(Response::new(lists.map(move |list| (Ok(list), &open).0).boxed()))
    }

    async fn allocate(&self, request: Request<AllocateRequest>) -> Result<Response<AllocateResponse>, Status> {
        let request = request.into_inner();
        let answer = allocate(&self.offered.borrow(), &request)?;
        self.report.allocated(answer.container_responses.len());
        let ids = request.container_requests.into_iter().flat_map(|container| container.devices_ids).collect();
        self.handed_out.note(self.offered.borrow().devices.name(), ids);
        Ok(Response::new(answer))
    }

    async fn get_preferred_allocation(
        &self,
        _: Request<PreferredAllocationRequest>,
    ) -> Result<Response<PreferredAllocationResponse>, Status> {
        Ok(Response::new(PreferredAllocationResponse::default()))
    }

    async fn pre_start_container(
        &self,
        _: Request<PreStartContainerRequest>,
    ) -> Result<Response<PreStartContainerResponse>, Status> {
        Ok(Response::new(PreStartContainerResponse::default()))
    }
}

/// The whole list at once, then again after each change; the last one when the resource is withdrawn. A reader that
/// falls behind misses lists in between, never the latest.
fn lists(mut offered: watch::Receiver<Offered>) -> impl Stream<Item = EncodedList> {
    offered.mark_changed();
    stream::unfold(offered, |mut offered| async move {
        offered.changed().await.ok()?;
        let list = offered.borrow_and_update().list.clone();
        Some((list, offered))
    })
}

/// One empty answer a container: the devices are slots to be counted, there is nothing to mount. Asked twice, it answers
/// the same.
fn allocate(offered: &Offered, request: &AllocateRequest) -> Result<AllocateResponse, Status> {
    let mut ids = request.container_requests.iter().flat_map(|container| &container.devices_ids);
    if let Some(id) = ids.find(|id| !offered.devices.owns(id)) {
        let name = offered.devices.name();
        return Err(Status::invalid_argument(format!("unknown network resource device ID {id:?} for {name}")));
    }
    let container_responses = request.container_requests.iter().map(|_| ContainerAllocateResponse::default()).collect();
    Ok(AllocateResponse { container_responses })
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_api::resource::DeviceSet;
    use proto::plugin::ContainerAllocateRequest;
    use std::collections::BTreeSet;

    fn offered(count: u32) -> Offered {
        let name = "spidernet.io/sub-eni".parse().expect("a name");
        Offered::new(DeviceSet::new(name, "sub-eni".to_owned(), count).expect("small"), &BTreeSet::new(), 0)
    }

    fn request(containers: &[&[&str]]) -> AllocateRequest {
        let container =
            |ids: &&[&str]| ContainerAllocateRequest { devices_ids: ids.iter().map(ToString::to_string).collect() };
        AllocateRequest { container_requests: containers.iter().map(container).collect() }
    }

    #[test]
    fn answers_every_container_and_twice_the_same() {
        let request = request(&[&["sub-eni-1", "sub-eni-0"], &["sub-eni-2"]]);
        let first = allocate(&offered(3), &request).expect("ours");
        assert_eq!(first.container_responses, vec![ContainerAllocateResponse::default(); 2]);
        assert_eq!(allocate(&offered(3), &request).expect("ours"), first);
    }

    #[test]
    fn an_id_that_a_lower_count_took_away_is_still_ours() {
        assert!(allocate(&offered(1), &request(&[&["sub-eni-255"]])).is_ok());
    }

    #[test]
    fn a_foreign_id_is_refused_by_name() {
        let refused = allocate(&offered(3), &request(&[&["sub-eni-0"], &["gpu-0"]])).expect_err("foreign");
        assert_eq!(refused.message(), "unknown network resource device ID \"gpu-0\" for spidernet.io/sub-eni");
    }

    #[tokio::test]
    async fn a_stream_begins_with_the_whole_list_and_ends_with_the_last() {
        let (sender, receiver) = watch::channel(offered(3));
        let mut lists = std::pin::pin!(lists(receiver));
        assert_eq!(lists.next().await, Some(offered(3).list), "at once, although nothing changed");
        sender.send_replace(offered(2));
        sender.send_replace(offered(0));
        drop(sender);
        assert_eq!(lists.next().await, Some(offered(0).list), "the latest, also after the resource was withdrawn");
        assert_eq!(lists.next().await, None);
    }
}
