//! What people see of each resource: one board behind `/registrations`, the metrics and the events on the Node.

use crate::events::Events;
use crate::metrics::{Metrics, Registration, Resource, resource};
use k8s_api::resource::ResourceName;
use k8s_openapi::jiff::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// All resources. Cheap to clone; held by the sessions and by the admin page.
#[derive(Clone, Debug)]
pub(crate) struct Reports {
    board: Arc<Mutex<Board>>,
    pub(crate) metrics: Metrics,
    pub(crate) events: Events,
}

/// The rows by resource name. Its lock also covers the metrics of a resource, so that none is written after its removal.
#[derive(Debug, Default)]
struct Board {
    rows: BTreeMap<String, Row>,
    /// How often a resource was offered, of whatever name.
    offers: u64,
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
    /// Unused devices that stand for bindings without a pod; the kubelet gives them to nobody.
    withheld: u32,
    /// When the kubelet last asked something.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_contact: Option<Timestamp>,
    /// Accepted registrations since the agent started.
    registrations: u32,
    /// Which offer it is about; 0 where there is none.
    #[serde(skip)]
    offer: u64,
}

impl Reports {
    pub(crate) fn new(metrics: Metrics, events: Events) -> Self {
        Self { board: Arc::default(), metrics, events }
    }

    /// The page `/registrations`: a JSON object by resource name.
    pub(crate) fn page(&self) -> String {
        serde_json::to_string_pretty(&self.board().rows).unwrap_or_default()
    }

    /// A resource that is on offer from now on.
    pub(crate) fn offer(&self, name: &ResourceName) -> Report {
        let mut board = self.board();
        board.offers = board.offers.saturating_add(1);
        let offer = board.offers;
        board.rows.insert(name.to_string(), Row::new(State::WaitingForKubelet, String::new(), offer));
        Report { name: name.clone(), offer, reports: self.clone() }
    }

    /// A resource that is not on offer any more. All its series go; a counter that comes back begins at 0, which
    /// Prometheus takes for a restart.
    pub(crate) fn forget(&self, name: &ResourceName) {
        let mut board = self.board();
        board.rows.remove(name.as_str());
        let resource = resource(name);
        self.metrics.devices.remove(&resource);
        self.metrics.in_use.remove(&resource);
        self.metrics.registered.remove(&resource);
        self.metrics.last_contact.remove(&resource);
        self.metrics.allocations.remove(&resource);
        for outcome in [ACCEPTED, FAILED] {
            self.metrics.registrations.remove(&Registration { resource: name.to_string(), outcome });
        }
    }

    /// A resource that a rule selects and that cannot be offered. Where another rule offers one of this name, the page
    /// shows that.
    pub(crate) fn refused(&self, name: &str, reason: &str) {
        tracing::warn!(resourceName = name, reason, "cannot advertise this resource; the others are not affected");
        self.events.warn("NetworkResourceRefused", &format!("cannot advertise {name}: {reason}"));
        let mut board = self.board();
        self.metrics.refused.get_or_create(&resource(&name)).set(1);
        if board.rows.get(name).is_none_or(|row| row.state == State::Refused) {
            board.rows.insert(name.to_owned(), Row::new(State::Refused, reason.to_owned(), 0));
        }
    }

    /// A resource that is not refused any more.
    pub(crate) fn not_refused(&self, name: &str) {
        let mut board = self.board();
        self.metrics.refused.remove(&resource(&name));
        if board.rows.get(name).is_some_and(|row| row.state == State::Refused) {
            board.rows.remove(name);
        }
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        // A row is whole after each statement, so a panic elsewhere leaves nothing half-written.
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One resource's part of the board.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    name: ResourceName,
    offer: u64,
    reports: Reports,
}

impl Report {
    /// The resource changed its state. A state that stays keeps its beginning.
    pub(crate) fn state(&self, state: State, reason: &str) {
        self.row(|row, metrics, resource| {
            metrics.registered.get_or_create(resource).set((state == State::Registered).into());
            if row.state != state {
                row.state = state;
                row.since = Timestamp::now();
            }
            reason.clone_into(&mut row.reason);
        });
    }

    /// The kubelet answered a registration, or failed to.
    pub(crate) fn registration(&self, outcome: &'static str) {
        self.row(|row, metrics, resource| {
            let label = Registration { resource: resource.resource.clone(), outcome };
            metrics.registrations.get_or_create(&label).inc();
            if outcome == ACCEPTED {
                row.registrations = row.registrations.saturating_add(1);
                contact(row, metrics, resource);
            }
        });
    }

    /// The kubelet asked something.
    pub(crate) fn contact(&self) {
        self.row(contact);
    }

    /// Containers were given devices.
    pub(crate) fn allocated(&self, containers: usize) {
        let containers = u64::try_from(containers).unwrap_or(u64::MAX);
        self.row(|row, metrics, resource| {
            metrics.allocations.get_or_create(resource).inc_by(containers);
            contact(row, metrics, resource);
        });
    }

    /// How many devices are offered, in use, and withheld.
    pub(crate) fn devices(&self, advertised: u32, in_use: usize, withheld: u32) {
        self.row(|row, metrics, resource| {
            metrics.devices.get_or_create(resource).set(advertised.into());
            metrics.in_use.get_or_create(resource).set(i64::try_from(in_use).unwrap_or(i64::MAX));
            (row.advertised, row.in_use, row.withheld) = (advertised, in_use, withheld);
        });
    }

    /// Something that a person should look at.
    pub(crate) fn warn(&self, reason: &'static str, note: &str) {
        self.reports.events.warn(reason, &format!("{}: {note}", self.name));
    }

    /// Something that was warned of is over.
    pub(crate) fn tell(&self, reason: &'static str, note: &str) {
        self.reports.events.tell(reason, &format!("{}: {note}", self.name));
    }

    /// Changes the row and the metrics, if this offer still stands: a session that ends late brings nothing back, and
    /// writes nothing into what a later offer of the same name shows.
    fn row(&self, change: impl FnOnce(&mut Row, &Metrics, &Resource)) {
        let mut board = self.reports.board();
        if let Some(row) = board.rows.get_mut(self.name.as_str()).filter(|row| row.offer == self.offer) {
            change(row, &self.reports.metrics, &resource(&self.name));
        }
    }
}

fn contact(row: &mut Row, metrics: &Metrics, resource: &Resource) {
    let now = Timestamp::now();
    metrics.last_contact.get_or_create(resource).set(now.as_second());
    row.last_contact = Some(now);
}

/// Outcomes of a registration.
pub(crate) const ACCEPTED: &str = "accepted";
pub(crate) const FAILED: &str = "failed";

impl Row {
    fn new(state: State, reason: String, offer: u64) -> Self {
        Self {
            state,
            since: Timestamp::now(),
            reason,
            advertised: 0,
            in_use: 0,
            withheld: 0,
            last_contact: None,
            registrations: 0,
            offer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::registry::Registry;

    struct Seen {
        registry: Registry,
        reports: Reports,
    }

    impl Seen {
        fn new() -> Self {
            let mut registry = Registry::default();
            let metrics = Metrics::register(&mut registry);
            Self { reports: Reports::new(metrics, Events::nowhere()), registry }
        }

        fn page(&self) -> serde_json::Value {
            serde_json::from_str(&self.reports.page()).expect("JSON")
        }

        /// Series about `name`.
        fn series(&self, name: &str) -> Vec<String> {
            let mut text = String::new();
            prometheus_client::encoding::text::encode(&mut text, &self.registry).expect("encodes");
            text.lines().filter(|line| line.contains(name)).map(ToOwned::to_owned).collect()
        }
    }

    const NAME: &str = "spidernet.io/eth1-nic";

    fn name() -> ResourceName {
        NAME.parse().expect("a name")
    }

    fn write_all(report: &Report) {
        report.state(State::Registered, "");
        report.registration(ACCEPTED);
        report.registration(FAILED);
        report.allocated(1);
        report.devices(4, 1, 0);
        report.contact();
    }

    #[test]
    fn a_refusal_leaves_a_live_resource_of_its_name_alone() {
        let seen = Seen::new();
        write_all(&seen.reports.offer(&name()));
        seen.reports.refused(NAME, "the name is taken");
        assert_eq!((&seen.page()[NAME]["state"], &seen.page()[NAME]["advertised"]), (&"Registered".into(), &4.into()));
        assert!(seen.series(NAME).iter().any(|line| line.starts_with("refused{") && line.ends_with(" 1")));
        seen.reports.not_refused(NAME);
        assert_eq!(seen.page()[NAME]["state"], "Registered");
        assert!(!seen.series(NAME).iter().any(|line| line.starts_with("refused{")));
    }

    #[test]
    fn a_refused_resource_has_a_row_until_it_is_not_or_is_offered() {
        let seen = Seen::new();
        seen.reports.refused(NAME, "too long");
        assert_eq!(
            (&seen.page()[NAME]["state"], &seen.page()[NAME]["reason"]),
            (&"Refused".into(), &"too long".into())
        );
        seen.reports.refused(NAME, "too odd");
        assert_eq!(seen.page()[NAME]["reason"], "too odd");
        seen.reports.not_refused(NAME);
        assert_eq!(seen.page(), serde_json::json!({}));
        assert_eq!(seen.series(NAME), Vec::<String>::new());
    }

    #[test]
    fn nothing_of_a_forgotten_resource_comes_back() {
        let seen = Seen::new();
        let late = seen.reports.offer(&name());
        write_all(&late);
        assert!(seen.series(NAME).len() >= 7, "{:?}", seen.series(NAME));
        seen.reports.forget(&name());
        assert_eq!(seen.series(NAME), Vec::<String>::new());
        write_all(&late);
        assert_eq!((seen.series(NAME), seen.page()), (Vec::new(), serde_json::json!({})));
        let _anew = seen.reports.offer(&name());
        write_all(&late);
        assert_eq!(seen.series(NAME), Vec::<String>::new(), "a session of the offer before");
        assert_eq!(seen.page()[NAME]["state"], "WaitingForKubelet");
    }
}
