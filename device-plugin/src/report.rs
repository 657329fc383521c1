//! What people see of each resource: one board behind `/registrations`, the metrics and the events on the Node.

use crate::events::Events;
use crate::metrics::{Metrics, Registration, resource};
use k8s_api::resource::ResourceName;
use k8s_openapi::jiff::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// All resources. Cheap to clone; held by the sessions and by the admin page.
#[derive(Clone, Debug)]
pub(crate) struct Reports {
    board: Arc<Mutex<BTreeMap<String, Row>>>,
    pub(crate) metrics: Metrics,
    pub(crate) events: Events,
}

/// Where one resource stands with the kubelet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum State {
    /// No kubelet listens.
    WaitingForKubelet,
    /// The kubelet was asked to take it.
    Registering,
    /// The kubelet has it and reads its list.
    Registered,
    /// The kubelet did not take it; the next try follows.
    Failing,
    /// Another agent on this node serves it.
    Replaced,
    /// A rule selects it, and a kubelet would refuse it.
    Refused,
}

/// One resource on `/registrations`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    state: State,
    /// When the state began.
    since: Timestamp,
    /// Why it is not registered.
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    advertised: u32,
    in_use: usize,
    /// When the kubelet last asked something.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_contact: Option<Timestamp>,
    /// Accepted registrations since the agent started.
    registrations: u32,
}

impl Reports {
    pub(crate) fn new(metrics: Metrics, events: Events) -> Self {
        Self { board: Arc::default(), metrics, events }
    }

    /// The page `/registrations`: a JSON object by resource name.
    pub(crate) fn page(&self) -> String {
        serde_json::to_string_pretty(&*self.board()).unwrap_or_default()
    }

    /// A resource that is on offer from now on.
    pub(crate) fn offer(&self, name: &ResourceName) -> Report {
        self.board().insert(name.to_string(), Row::new());
        Report { name: name.clone(), reports: self.clone() }
    }

    /// A resource that is not on offer any more.
    pub(crate) fn forget(&self, name: &ResourceName) {
        self.board().remove(name.as_str());
        let resource = resource(name);
        self.metrics.devices.remove(&resource);
        self.metrics.in_use.remove(&resource);
        self.metrics.registered.remove(&resource);
        self.metrics.last_contact.remove(&resource);
    }

    /// A resource that a rule selects and that cannot be offered.
    pub(crate) fn refused(&self, name: &str, reason: &str) {
        tracing::warn!(resourceName = name, reason, "cannot advertise this resource; the others are not affected");
        self.events.warn("NetworkResourceRefused", &format!("cannot advertise {name}: {reason}"));
        self.metrics.refused.get_or_create(&resource(&name)).set(1);
        let mut row = Row::new();
        row.state = State::Refused;
        reason.clone_into(&mut row.reason);
        self.board().insert(name.to_owned(), row);
    }

    /// A resource that is not refused any more.
    pub(crate) fn not_refused(&self, name: &str) {
        self.metrics.refused.remove(&resource(&name));
        let mut board = self.board();
        if board.get(name).is_some_and(|row| row.state == State::Refused) {
            board.remove(name);
        }
    }

    fn board(&self) -> MutexGuard<'_, BTreeMap<String, Row>> {
        // A row is whole after each statement, so a panic elsewhere leaves nothing half-written.
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One resource's part of the board.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    name: ResourceName,
    reports: Reports,
}

impl Report {
    /// The resource changed its state. A state that stays keeps its beginning.
    pub(crate) fn state(&self, state: State, reason: &str) {
        let registered = i64::from(state == State::Registered);
        self.reports.metrics.registered.get_or_create(&resource(&self.name)).set(registered);
        self.row(|row| {
            if row.state != state {
                row.state = state;
                row.since = Timestamp::now();
            }
            reason.clone_into(&mut row.reason);
        });
    }

    /// The kubelet answered a registration, or failed to.
    pub(crate) fn registration(&self, outcome: &'static str) {
        let label = Registration { resource: self.name.to_string(), outcome };
        self.reports.metrics.registrations.get_or_create(&label).inc();
        if outcome == ACCEPTED {
            self.row(|row| row.registrations = row.registrations.saturating_add(1));
            self.contact();
        }
    }

    /// The kubelet asked something.
    pub(crate) fn contact(&self) {
        let now = Timestamp::now();
        self.reports.metrics.last_contact.get_or_create(&resource(&self.name)).set(now.as_second());
        self.row(|row| row.last_contact = Some(now));
    }

    /// Containers were given devices.
    pub(crate) fn allocated(&self, containers: usize) {
        let containers = u64::try_from(containers).unwrap_or(u64::MAX);
        self.reports.metrics.allocations.get_or_create(&resource(&self.name)).inc_by(containers);
        self.contact();
    }

    /// How many devices are offered and how many are in use.
    pub(crate) fn devices(&self, advertised: u32, in_use: usize) {
        let resource = resource(&self.name);
        self.reports.metrics.devices.get_or_create(&resource).set(advertised.into());
        self.reports.metrics.in_use.get_or_create(&resource).set(i64::try_from(in_use).unwrap_or(i64::MAX));
        self.row(|row| (row.advertised, row.in_use) = (advertised, in_use));
    }

    /// Something that a person should look at.
    pub(crate) fn warn(&self, reason: &'static str, note: &str) {
        self.reports.events.warn(reason, &format!("{}: {note}", self.name));
    }

    /// Something that was warned of is over.
    pub(crate) fn tell(&self, reason: &'static str, note: &str) {
        self.reports.events.tell(reason, &format!("{}: {note}", self.name));
    }

    /// Changes the row, if the resource is still on offer: a session that ends late brings nothing back.
    fn row(&self, change: impl FnOnce(&mut Row)) {
        if let Some(row) = self.reports.board().get_mut(self.name.as_str()) {
            change(row);
        }
    }
}

/// Outcomes of a registration.
pub(crate) const ACCEPTED: &str = "accepted";
pub(crate) const FAILED: &str = "failed";

impl Row {
    fn new() -> Self {
        Self {
            state: State::WaitingForKubelet,
            since: Timestamp::now(),
            reason: String::new(),
            advertised: 0,
            in_use: 0,
            last_contact: None,
            registrations: 0,
        }
    }
}
