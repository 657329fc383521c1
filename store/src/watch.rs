//! Keeps the index: one consistent list, then a watch from its version on; again when the watch cannot go on.
//!
//! Lists name no resourceVersion: the API server answers them from a quorum. (`kube`'s watcher does not tell the version of
//! its list, without which own writes that overtake it cannot be told from objects that were deleted.) In pages, as pages can
//! be read by every server of the supported range, which streaming lists cannot.

use crate::allocation::read;
use crate::call::{Caller, chain};
use crate::object::{Numbered, number};
use crate::shared::Shared;
use backon::{BackoffBuilder, ExponentialBuilder};
use futures::StreamExt;
use ipam_core::StoreError;
use k8s_api::crd::ip_allocation::SpiderIPAllocation;
use kube::api::{DynamicObject, ListParams, ObjectList, WatchEvent, WatchParams};
use kube::core::{ApiResource, Request};
use kube::{Api, Resource};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// The server ends each watch after this, so that one that died unnoticed is noticed.
const RENEW_SECONDS: u32 = 120;
/// A watch that is silent for longer than it may live is dead.
const SILENCE: Duration = Duration::from_secs(150);
const PAGE: u32 = 500;
const PAUSE_MIN: Duration = Duration::from_millis(500);
/// The random part doubles it at the most.
const PAUSE_MAX: Duration = Duration::from_secs(15);

pub(crate) fn allocations() -> Request {
    Request::new(SpiderIPAllocation::url_path(&(), None))
}

/// Why a watch ended.
enum End {
    /// As agreed, or a connection broke: it goes on from the last version.
    GoesOn,
    /// The last version is too old for the server.
    TooOld,
    Failed(String),
}

pub(crate) async fn run(caller: Caller, shared: Arc<Shared>) -> Infallible {
    let mut troubles = Troubles::new();
    loop {
        match list(&caller, &shared).await {
            Ok(version) => {
                troubles.over();
                follow(&caller, &shared, version, &mut troubles).await;
            }
            Err(error) => troubles.wait(&error.to_string()).await,
        }
    }
}

fn fields(shared: &Shared) -> Option<String> {
    shared.node().map(|node| format!("spec.node.name={node}"))
}

/// Returns the version that the list is of.
async fn list(caller: &Caller, shared: &Shared) -> Result<String, StoreError> {
    let mut wanted = ListParams { field_selector: fields(shared), ..ListParams::default() }.limit(PAGE);
    let mut uids = BTreeSet::new();
    loop {
        let page: ObjectList<DynamicObject> = caller.json(allocations().list(&wanted)).await?;
        for object in &page.items {
            let object = read(object)?;
            uids.insert(object.version.uid.clone());
            // What cannot be read has been told.
            let _ = shared.put(object);
        }
        let version = page.metadata.resource_version.unwrap_or_default();
        let Some(next) = page.metadata.continue_.filter(|next| !next.is_empty()) else {
            shared.listed(&uids, numbered(&version)?);
            return Ok(version);
        };
        wanted = wanted.continue_token(&next);
    }
}

/// Watches until a new list is needed.
async fn follow(caller: &Caller, shared: &Shared, mut version: String, troubles: &mut Troubles) {
    loop {
        match watch(caller, shared, &mut version, troubles).await {
            End::GoesOn => {}
            End::TooOld => return,
            End::Failed(why) => troubles.wait(&why).await,
        }
    }
}

async fn watch(caller: &Caller, shared: &Shared, version: &mut String, troubles: &mut Troubles) -> End {
    let wanted = WatchParams { field_selector: fields(shared), ..WatchParams::default() }.timeout(RENEW_SECONDS);
    let kind = ApiResource::erase::<SpiderIPAllocation>(&());
    let api = Api::<DynamicObject>::all_with(caller.client().clone(), &kind);
    let opened = timeout(caller.deadline(), api.watch(&wanted, version)).await;
    let events = match opened {
        Ok(Ok(events)) => events,
        Ok(Err(error)) => return failed(&error),
        Err(_) => return End::Failed(format!("no answer within {:?}", caller.deadline())),
    };
    let mut events = std::pin::pin!(events);
    loop {
        let event = match timeout(SILENCE, events.next()).await {
            Ok(Some(Ok(event))) => event,
            Ok(Some(Err(error))) => return failed(&error),
            Ok(None) | Err(_) => return End::GoesOn,
        };
        let shown = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => read(&object).map(|object| {
                let resource = object.version.resource;
                // What cannot be read has been told.
                let _ = shared.put(object);
                resource
            }),
            WatchEvent::Deleted(object) => Numbered::of(&object.metadata).map(|of| {
                shared.delete(object.metadata.name.as_deref().unwrap_or_default(), &of);
                of.resource
            }),
            WatchEvent::Bookmark(bookmark) => numbered(&bookmark.metadata.resource_version),
            WatchEvent::Error(status) => return failed(&kube::Error::Api(status)),
        };
        match shown {
            Ok(shown) => {
                shared.passed(shown);
                *version = shown.to_string();
                troubles.over();
            }
            Err(error) => return End::Failed(error.to_string()),
        }
    }
}

fn numbered(version: &str) -> Result<u64, StoreError> {
    number(version).ok_or_else(|| StoreError::Unknown(format!("a resourceVersion that is no number: {version:?}")))
}

fn failed(error: &kube::Error) -> End {
    match error {
        kube::Error::Api(status) if status.code == 410 => End::TooOld,
        _ => End::Failed(chain(error)),
    }
}

/// Tells each trouble once, and waits longer each time.
struct Troubles {
    said: String,
    pauses: backon::ExponentialBackoff,
}

impl Troubles {
    fn new() -> Self {
        let pauses = ExponentialBuilder::new().with_min_delay(PAUSE_MIN).with_max_delay(PAUSE_MAX);
        Self { said: String::new(), pauses: pauses.with_jitter().without_max_times().build() }
    }

    fn over(&mut self) {
        *self = Self::new();
    }

    async fn wait(&mut self, error: &str) {
        if self.said != error {
            tracing::warn!(error, "cannot watch SpiderIPAllocations; what is known stays in force");
            error.clone_into(&mut self.said);
        }
        sleep(self.pauses.next().unwrap_or(PAUSE_MAX)).await;
    }
}
