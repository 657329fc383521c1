//! Asks the API server where the watch is not enough: before a refusal, and for addresses in use.

use super::Known;
use super::watch::{pools, read};
use crate::objects::ip_pool::Holder;
use ipam_core::Ranges;
use kube::api::{DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;

/// An API server that takes longer is not there.
const ANSWER: Duration = Duration::from_secs(2);
const PAGE: u32 = 500;
/// Holders that are enough to refuse; more would not be listed.
const HOLDERS: usize = 100;

/// The API server could not be asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotAsked {
    #[error("the API server did not answer")]
    Failed(#[source] Box<kube::Error>),
    #[error("the API server did not answer within {ANSWER:?}")]
    Slow,
}

/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct Live(Client);

impl Live {
    pub(crate) fn new(client: Client) -> Self {
        Self(client)
    }

    /// A pool as it is now; `None` if there is none of this name.
    pub(crate) async fn pool(&self, name: &str) -> Result<Option<Known>, NotAsked> {
        let api = Api::<DynamicObject>::all_with(self.0.clone(), &pools());
        let object = timeout(ANSWER, api.get_opt(name)).await.map_err(|_| NotAsked::Slow)?;
        Ok(object.map_err(|error| NotAsked::Failed(error.into()))?.as_ref().map(read))
    }

    /// Pods that have addresses of `taken` from the pool; of many, enough to refuse.
    pub(crate) async fn holders(&self, pool: &str, taken: &Ranges) -> Result<Vec<Holder>, NotAsked> {
        timeout(ANSWER, self.list(pool, taken)).await.map_err(|_| NotAsked::Slow)?
    }

    async fn list(&self, pool: &str, taken: &Ranges) -> Result<Vec<Holder>, NotAsked> {
        let kind = GroupVersionKind::gvk("spiderpool.spidernet.io", "v2beta1", "SpiderIPAllocation");
        let resource = ApiResource::from_gvk_with_plural(&kind, "spideripallocations");
        let api = Api::<DynamicObject>::all_with(self.0.clone(), &resource);
        let mut wanted = ListParams::default().fields(&format!("spec.pool={pool}")).limit(PAGE);
        let mut holders = Vec::new();
        loop {
            let page = api.list(&wanted).await.map_err(|error| NotAsked::Failed(error.into()))?;
            let held = page.items.iter().filter_map(holder).filter(|holder| taken.contains(holder.address));
            holders.extend(held);
            match page.metadata.continue_.filter(|next| !next.is_empty()) {
                Some(next) if holders.len() < HOLDERS => wanted = wanted.continue_token(&next),
                _ => return Ok(holders),
            }
        }
    }
}

fn holder(allocation: &DynamicObject) -> Option<Holder> {
    let text = |at: &str| allocation.data.pointer(at).and_then(Value::as_str);
    let address = text("/spec/address")?.parse().ok()?;
    let pod =
        format!("{}/{}", text("/spec/pod/namespace").unwrap_or_default(), text("/spec/pod/name").unwrap_or_default());
    Some(Holder { address, pod })
}
