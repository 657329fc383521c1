//! One question, one answer.

use super::body::Budget;
use super::review::{Request, Response};
use crate::attachments::Lookup;
use crate::by_annotation::{ByAnnotation, Fault};
use crate::injection::{Decision, Offers, Pod, annotate, decide, patch};
use crate::metrics::{Metrics, count};
use axum::body::Body;
use axum::response::{IntoResponse, Response as HttpResponse};
use http::{HeaderValue, StatusCode, header};
use k8s_api::conf::Conf;
use runtime::Chain;
use std::time::Instant;
use tokio::sync::watch;

/// Answers for pods. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Handler {
    conf: watch::Receiver<Conf>,
    by_annotation: ByAnnotation,
    lookup: Lookup,
    offers: watch::Receiver<Option<Offers>>,
    metrics: Metrics,
    budget: Budget,
}

impl Handler {
    pub(crate) fn new(
        conf: watch::Receiver<Conf>,
        by_annotation: ByAnnotation,
        lookup: Lookup,
        offers: watch::Receiver<Option<Offers>>,
        metrics: Metrics,
    ) -> Self {
        Self { conf, by_annotation, lookup, offers, metrics, budget: Budget::default() }
    }

    /// What all bodies may take together, whoever reads them.
    pub(super) fn budget(&self) -> Budget {
        self.budget.clone()
    }

    /// Answers one HTTP request. What cannot be answered with a review is an HTTP error, and then the webhook's
    /// failurePolicy decides.
    pub(super) async fn mutate_pod(&self, body: Body) -> HttpResponse {
        let began = Instant::now();
        let (outcome, response) = self.answer(body).await;
        count(&self.metrics.admissions, outcome);
        self.metrics.duration.observe(began.elapsed().as_secs_f64());
        response
    }

    async fn answer(&self, body: Body) -> (&'static str, HttpResponse) {
        let whole = match self.budget.read(body).await {
            Ok(whole) => whole,
            Err(error) => return ("unread", failure(error.status(), &error)),
        };
        let request = match Request::read(&whole.bytes) {
            Ok(request) => request,
            Err(error) => return ("unreadable", failure(StatusCode::BAD_REQUEST, &error)),
        };
        if !request.creates_a_pod() || !self.conf.borrow().inject {
            return ("passed", review(&Response::allowed(&request.uid)));
        }
        let pod = match request.object.map(|object| serde_json::from_str::<Pod<'_>>(object.get())) {
            Some(Ok(pod)) => pod,
            Some(Err(error)) => {
                let message = format!("the pod cannot be read: {error}");
                return ("unreadable", review(&Response::refused(&request.uid, &message)));
            }
            None => {
                let message = "a pod is created, and the request has no object";
                return ("unreadable", review(&Response::refused(&request.uid, message)));
            }
        };
        self.judge(&request, &pod).await
    }

    async fn judge(&self, request: &Request<'_>, pod: &Pod<'_>) -> (&'static str, HttpResponse) {
        if let Some(reason) = pod.left_alone() {
            return ("passed", review(&Response::allowed(&request.uid).audit(reason.to_owned())));
        }
        let namespace = request.namespace.as_deref().unwrap_or_default();
        let unresolved = |error: &(dyn std::error::Error + 'static)| {
            tracing::warn!(namespace, name = pod.called(), error = %Chain(error), "cannot judge a pod");
            ("unresolved", failure(StatusCode::INTERNAL_SERVER_ERROR, error))
        };
        let given = match self.by_annotation.given(pod, namespace).await {
            Ok(given) => given,
            Err(Fault::Refused(refused)) => {
                let message = Chain(&refused).to_string();
                tracing::info!(namespace, name = pod.called(), message, "refused a pod");
                return ("refused", review(&Response::refused(&request.uid, &message)));
            }
            Err(unknown) => return unresolved(&unknown),
        };
        let mentions = pod.mentions(namespace, given.networks.as_deref(), &self.conf.borrow().multus);
        let found = match self.lookup.resolve(mentions.references).await {
            Ok(found) => found,
            Err(error) => return unresolved(&error),
        };
        let decision = decide(pod, &found, &given.selected, &self.conf.borrow(), self.offers.borrow().as_ref());
        let Decision { add, warnings, reason } = decision;
        let reason = given.reason.into_iter().chain([reason]).collect::<Vec<_>>().join("; ");
        let warnings = [given.warnings, mentions.faults, warnings].concat();
        self.metrics.warnings.inc_by(u64::try_from(warnings.len()).unwrap_or_default());
        // Without a container the API server refuses the pod in its own words.
        let resources = pod.first_container().map(|first| patch(first, &add)).unwrap_or_default();
        let networks = given.networks.iter().map(|networks| annotate(pod, networks));
        let operations: Vec<_> = networks.chain(resources).collect();
        let name = pod.called();
        tracing::debug!(namespace, name, injected = reason, ?warnings, "judged a pod");
        let outcome = if operations.is_empty() { "unchanged" } else { "patched" };
        let response = Response::allowed(&request.uid).patch(&operations).warn(warnings).audit(reason);
        (outcome, review(&response))
    }
}

pub(super) fn review(response: &Response<'_>) -> HttpResponse {
    let json = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, json)], response.write()).into_response()
}

/// Of the errors an API server shows the text of 500 alone to people.
pub(super) fn failure(status: StatusCode, error: &(dyn std::error::Error + 'static)) -> HttpResponse {
    (status, Chain(error).to_string()).into_response()
}
