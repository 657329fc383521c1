//! Objects of our own group: one question, one answer.
//!
//! ```text
//! mutate ───> objects::…::complete ──> patch
//! validate ─> objects::…::validate ──> faults: Status 422 │ warnings
//!              └── beside: other attachments, other pools, addresses in use; waited for or asked where it matters
//! ```

mod beside;

pub(crate) use beside::Beside;

use super::body::Budget;
use super::handler::{Handler, failure, review};
use super::review::{Request, Response};
use crate::metrics::{KindOutcome, Metrics};
use crate::objects::multus_config::Attachment;
use crate::objects::{Findings, Object, ip_pool, multus_config, reserved_ip, status};
use axum::Router;
use axum::body::Body;
use axum::response::Response as HttpResponse;
use axum::routing::post;
use beside::Unresolved;
use http::StatusCode;
use k8s_api::conf::Conf;
use runtime::Chain;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

/// Objects that are taken apart at a time: each may take many times the memory of its text.
const AT_ONCE: usize = 4;
/// The API server waits 5 s in all.
const WHOLE: Duration = Duration::from_millis(4500);

/// Answers for objects. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Objects {
    conf: watch::Receiver<Conf>,
    beside: Beside,
    metrics: Metrics,
    budget: Budget,
    places: Arc<Semaphore>,
}

/// What is asked about.
#[derive(Clone, Copy, Debug)]
enum Kind {
    MultusConfig,
    IpPool,
    ReservedIp,
}

/// What is wanted of it.
#[derive(Clone, Copy, Debug)]
enum Step {
    Mutate,
    Validate,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::MultusConfig => "SpiderMultusConfig",
            Self::IpPool => "SpiderIPPool",
            Self::ReservedIp => "SpiderReservedIP",
        }
    }
}

/// One request, taken apart.
struct Asked<'r> {
    kind: Kind,
    request: &'r Request<'r>,
    new: Object,
    old: Option<Object>,
}

/// What is counted, and what is answered.
type Answer = (&'static str, HttpResponse);

impl Objects {
    pub(crate) fn new(conf: watch::Receiver<Conf>, beside: Beside, metrics: Metrics, pods: &Handler) -> Self {
        Self { conf, beside, metrics, budget: pods.budget(), places: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// The paths; existing installations name them.
    pub(super) fn router(self) -> Router {
        let mut router = Router::new();
        for kind in [Kind::MultusConfig, Kind::IpPool, Kind::ReservedIp] {
            for (step, word) in [(Step::Mutate, "mutate"), (Step::Validate, "validate")] {
                let path = format!("/{word}-spiderpool-spidernet-io-v2beta1-{}", kind.name().to_lowercase());
                let objects = self.clone();
                let answer = async move |body: Body| objects.http(kind, step, body).await;
                router = router.route(&path, post(answer));
            }
        }
        router
    }

    async fn http(&self, kind: Kind, step: Step, body: Body) -> HttpResponse {
        let began = Instant::now();
        let (outcome, response) = match timeout(WHOLE, self.answer(kind, step, body)).await {
            Ok(answer) => answer,
            Err(_) => ("unresolved", failure(StatusCode::INTERNAL_SERVER_ERROR, &Unresolved::Slow)),
        };
        self.metrics.object_admissions.get_or_create(&KindOutcome { kind: kind.name(), outcome }).inc();
        self.metrics.duration.observe(began.elapsed().as_secs_f64());
        response
    }

    async fn answer(&self, kind: Kind, step: Step, body: Body) -> Answer {
        let whole = match self.budget.read(body).await {
            Ok(whole) => whole,
            Err(error) => return ("unread", failure(error.status(), &error)),
        };
        let request = match Request::read(&whole.bytes) {
            Ok(request) => request,
            Err(error) => return ("unreadable", failure(StatusCode::BAD_REQUEST, &error)),
        };
        if !request.writes(kind.name()) {
            return ("passed", review(&Response::allowed(&request.uid)));
        }
        let Ok(_place) = self.places.acquire().await else {
            return ("unresolved", failure(StatusCode::INTERNAL_SERVER_ERROR, &Unresolved::Slow));
        };
        let (new, old) = match (read(request.object), request.old_object.map(|old| read(Some(old))).transpose()) {
            (Ok(new), Ok(old)) => (new, old),
            (Err(error), _) | (_, Err(error)) => {
                let message = format!("the {} cannot be read: {error}", kind.name());
                return ("unreadable", review(&Response::refused(&request.uid, &message)));
            }
        };
        // Whoever is on the way out only waits for finalizers to be taken off.
        if new.is_terminating() {
            return ("passed", review(&Response::allowed(&request.uid)));
        }
        let asked = Asked { kind, request: &request, new, old };
        match step {
            Step::Mutate => complete(&asked),
            Step::Validate => self.judge(&asked).await,
        }
    }

    async fn judge(&self, asked: &Asked<'_>) -> Answer {
        let Asked { kind, request, new, old } = asked;
        let unchanged = old.as_ref().is_some_and(|old| asked.same(old));
        let found = match kind {
            _ if unchanged => Ok(self.alone(asked)),
            Kind::MultusConfig => self.attachment(asked).await,
            Kind::IpPool => self.pool(asked).await,
            Kind::ReservedIp => Ok(self.alone(asked)),
        };
        let name = new.name();
        let findings = match found {
            // What was there before the rules, or in spite of them, can still be labelled, and rid of finalizers.
            Ok(findings) if unchanged => Findings { warnings: findings.only_warnings(), ..Findings::default() },
            Ok(findings) => findings,
            Err(error) => {
                tracing::warn!(kind = kind.name(), name, error = %Chain(&error), "cannot judge an object");
                return ("unresolved", failure(StatusCode::INTERNAL_SERVER_ERROR, &error));
            }
        };
        if !findings.faults.is_empty() {
            tracing::debug!(kind = kind.name(), name, faults = findings.faults.len(), "refused an object");
            let refused = Response::denied(&request.uid, status(kind.name(), name, &findings));
            return ("refused", review(&refused.warn(findings.warnings)));
        }
        ("allowed", review(&Response::allowed(&request.uid).warn(findings.warnings)))
    }

    /// What the object says by itself.
    fn alone(&self, asked: &Asked<'_>) -> Findings {
        let (conf, new) = (self.conf.borrow(), &asked.new);
        let found = match asked.kind {
            Kind::MultusConfig => typed(&new.spec).map(|spec| {
                let (namespace, name, annotations) = (asked.namespace(), new.name(), new.annotations());
                let attachment = Attachment { namespace, name, annotations, spec: &spec };
                let index = self.beside.pools.borrow();
                multus_config::validate(&attachment, &conf, index.synced.then_some(&index.pools))
            }),
            Kind::IpPool => typed(&new.spec).map(|spec| ip_pool::read(&spec, &conf).1),
            Kind::ReservedIp => typed(&new.spec).map(|spec| reserved_ip::validate(&spec, &conf)),
        };
        found.unwrap_or_else(|findings| findings)
    }

    async fn attachment(&self, asked: &Asked<'_>) -> Result<Findings, Unresolved> {
        let Asked { new, old, .. } = asked;
        let found = self.alone(asked);
        let changed = old.as_ref().map(|old| multus_config::changed(new, old)).unwrap_or_default();
        let found = found.and(changed);
        let remember = !asked.request.dry_run && found.faults.is_empty();
        let mut beside = self.beside.of_attachment(asked.namespace(), new, remember).await?;
        if old.as_ref().is_some_and(|old| multus_config::network(old) == multus_config::network(new)) {
            // Two of one name that were there before can still be repaired otherwise.
            beside = Findings { warnings: beside.only_warnings(), ..Findings::default() };
        }
        Ok(found.and(beside))
    }

    async fn pool(&self, asked: &Asked<'_>) -> Result<Findings, Unresolved> {
        let Asked { new, old, .. } = asked;
        let (pool, found) = match typed(&new.spec) {
            Ok(spec) => ip_pool::read(&spec, &self.conf.borrow()),
            Err(findings) => return Ok(findings),
        };
        let changed = old.as_ref().map(|old| ip_pool::changed(new, old)).unwrap_or_default();
        let mut found = found.and(changed);
        let Some(pool) = pool else { return Ok(found) };
        let before = old.as_ref().and_then(|old| ip_pool::Pool::of(&old.spec));
        if before.as_ref() == Some(&pool) {
            return Ok(found);
        }
        if let (Some(before), Some(old)) = (before, old) {
            found = found.and(self.beside.in_use(new.name(), &before, &pool, &old.status).await?);
        }
        let remember = !asked.request.dry_run && found.faults.is_empty();
        Ok(found.and(self.beside.of_pool(new.name(), &pool, remember).await?))
    }
}

impl Asked<'_> {
    fn same(&self, old: &Object) -> bool {
        match self.kind {
            Kind::MultusConfig => multus_config::same(&self.new, old),
            Kind::IpPool => ip_pool::same(&self.new, old),
            Kind::ReservedIp => self.new.spec == old.spec,
        }
    }

    /// The object itself may have none yet.
    fn namespace(&self) -> &str {
        self.request.namespace.as_deref().unwrap_or_else(|| self.new.namespace())
    }
}

fn complete(asked: &Asked<'_>) -> Answer {
    let Asked { kind, request, new, old } = asked;
    let changed = old.as_ref().is_none_or(|old| !asked.same(old));
    let operations = match kind {
        Kind::MultusConfig => multus_config::complete(new, old.as_ref()),
        Kind::IpPool => ip_pool::complete(new, old.as_ref(), changed),
        Kind::ReservedIp if changed => reserved_ip::complete(new),
        Kind::ReservedIp => Vec::new(),
    };
    let outcome = if operations.is_empty() { "unchanged" } else { "patched" };
    (outcome, review(&Response::allowed(&request.uid).patch(&operations)))
}

fn read(object: Option<&RawValue>) -> Result<Object, String> {
    let object = object.ok_or("the request has none")?;
    serde_json::from_str(object.get()).map_err(|error| error.to_string())
}

/// The spec as its type, which its definition has checked; one that is older may be otherwise.
fn typed<S: DeserializeOwned>(spec: &Value) -> Result<S, Findings> {
    S::deserialize(spec).map_err(|error| {
        let mut findings = Findings::default();
        findings.invalid("spec", spec, format!("it cannot be read: {error}"));
        findings
    })
}
