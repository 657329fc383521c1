//! Addresses in use, as they are listed.

use crate::api::Server;
use crate::fault::{Fault, Seen};
use k8s_api::crd::ip_allocation::SpiderIPAllocation;
use k8s_openapi::jiff::Timestamp;
use kube::Resource;
use kube::api::DynamicObject;
use serde::Serialize;
use store::{Allocation, State, Then};

/// One SpiderIPAllocation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Held {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) version: String,
    pub(crate) created: Option<Timestamp>,
    /// When it was last written, whoever did.
    written: Option<Timestamp>,
    /// What it says, or why that cannot be read. Its address is taken in any case.
    pub(crate) what: Result<Allocation, String>,
}

impl Held {
    pub(crate) fn read(object: &DynamicObject) -> Self {
        let metadata = object.metadata.clone();
        Self {
            name: metadata.name.unwrap_or_default(),
            uid: metadata.uid.unwrap_or_default(),
            version: metadata.resource_version.unwrap_or_default(),
            created: metadata.creation_timestamp.map(|time| time.0),
            written: metadata.managed_fields.iter().flatten().filter_map(|one| Some(one.time.as_ref()?.0)).max(),
            what: store::allocation_of(object),
        }
    }

    /// Seconds since the last write, if the API server tells.
    pub(crate) fn since_written(&self, now: Timestamp) -> Option<i64> {
        self.written.map(|written| now.as_second() - written.as_second())
    }

    /// Seconds that it has been there.
    pub(crate) fn age(&self, now: Timestamp) -> i64 {
        self.created.map_or(0, |created| now.as_second() - created.as_second())
    }
}

/// Path of the kind.
pub(crate) fn path() -> String {
    SpiderIPAllocation::url_path(&(), None)
}

/// Those that a field selector selects; in the order of their addresses.
pub(crate) async fn list(server: &Server, fields: &str) -> Result<Seen<Vec<Held>>, Fault> {
    let mut all = Vec::new();
    let seen = server.each(&path(), fields, "", |object: DynamicObject| all.push(Held::read(&object))).await?;
    all.sort_by(|a, b| (store::address_of(&a.name), &a.name).cmp(&(store::address_of(&b.name), &b.name)));
    Ok(seen.map(|()| all))
}

/// As programs read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Row {
    pub(crate) address: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pod: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pod_uid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) interface: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) container_id: Option<String>,
    /// `Held`, `Releasing` or `Unreadable`.
    pub(crate) state: &'static str,
    pub(crate) detached: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) provider: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bind_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) release_requested_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fault: Option<String>,
    pub(crate) age_seconds: i64,
}

impl Row {
    pub(crate) fn of(held: &Held, now: Timestamp) -> Self {
        let age_seconds = held.age(now);
        let address = store::address_of(&held.name).map_or_else(|| held.name.clone(), |address| address.to_string());
        match &held.what {
            Ok(one) => Self {
                address,
                pool: Some(one.pool.clone()),
                namespace: Some(one.pod.namespace.clone()),
                pod: Some(one.pod.name.clone()),
                pod_uid: Some(one.pod.uid.clone()),
                interface: Some(one.interface.clone()),
                node: Some(one.node.name.clone()),
                container_id: Some(one.container_id.clone()),
                state: if one.held() { "Held" } else { "Releasing" },
                detached: one.detached,
                provider: one.provider.as_ref().map(|binding| binding.server.clone()),
                bind_id: one.bind_id().map(str::to_owned),
                release_requested_by: one.release_request.as_ref().map(|request| request.by.clone()),
                fault: None,
                age_seconds,
            },
            Err(why) => Self {
                address,
                pool: None,
                namespace: None,
                pod: None,
                pod_uid: None,
                interface: None,
                node: None,
                container_id: None,
                state: "Unreadable",
                detached: false,
                provider: None,
                bind_id: None,
                release_requested_by: None,
                fault: Some(why.clone()),
                age_seconds,
            },
        }
    }
}

/// What is being done with it, in words.
pub(crate) fn state(one: &Allocation) -> String {
    let state = match &one.state {
        State::Held => "Held".to_owned(),
        State::Releasing(releasing) if releasing.then == Then::Keep => "Releasing, then kept for its pod".to_owned(),
        State::Releasing(_) => "Releasing".to_owned(),
    };
    let detached = if one.detached { ", without a sandbox" } else { "" };
    let request = one.release_request.as_ref().map(|request| format!(", release asked for by {}", request.by));
    format!("{state}{detached}{}", request.unwrap_or_default())
}

/// An age as people read it: `45s`, `12m`, `3h`, `5d`.
pub(crate) fn age(seconds: i64) -> String {
    match seconds.max(0) {
        seconds @ 0..120 => format!("{seconds}s"),
        seconds @ 120..7200 => format!("{}m", seconds / 60),
        seconds @ 7200..172_800 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86_400),
    }
}
