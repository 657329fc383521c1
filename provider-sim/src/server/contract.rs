//! The two calls of the contract.

use super::answer::Answer;
use super::cable::Cable;
use super::metrics::name;
use super::shared::{Shared, clock};
use crate::ask::{Asked, Breach};
use crate::budget::budget;
use crate::fault::{Plan, Shape, Work};
use crate::record::Outcome;
use crate::wire::{MAX_BODY, Operation};
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// The longest that the body of a request may take.
const BODY: Duration = Duration::from_secs(30);

pub(super) async fn allocate(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    call(&shared, Operation::Allocate, request).await
}

pub(super) async fn release(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    call(&shared, Operation::Release, request).await
}

/// A call that is being answered.
#[derive(Debug)]
struct InHand<'a> {
    shared: &'a Arc<Shared>,
    operation: Operation,
    received: Instant,
    seq: u64,
}

async fn call(shared: &Arc<Shared>, operation: Operation, request: Request) -> Response {
    let received = Instant::now();
    let seq = shared.lock().records.open(operation.path(), clock());
    let in_hand = InHand { shared, operation, received, seq };
    let cable = Cable::of(&request);
    let (asked, budget) = match in_hand.read(request).await {
        Ok(read) => read,
        Err((status, why)) => {
            shared.note(seq, |record| record.outcome = Outcome::Refused);
            in_hand.answered(Some(status));
            return Answer::refusal(status, why).response();
        }
    };
    let plan = in_hand.plan(&asked);
    let answer = in_hand.work(&plan, asked, budget).await;
    in_hand.answered(plan.shape.status(&answer));
    shared.deliver(plan.shape, answer, cable).await
}

impl InHand<'_> {
    /// The request and its budget, if it keeps the contract.
    async fn read(&self, request: Request) -> Result<(Asked, Duration), (StatusCode, Breach)> {
        let (parts, body) = request.into_parts();
        let bad = |why| (StatusCode::BAD_REQUEST, why);
        let budget = budget(&parts.headers);
        if let Ok(budget) = &budget {
            let milliseconds = u64::try_from(budget.as_millis()).unwrap_or(u64::MAX);
            self.shared.note(self.seq, |record| record.budget_ms = Some(milliseconds));
        }
        let longest = budget.as_ref().map_or(BODY, |budget| BODY.min(*budget));
        let bytes = collect(body, longest).await?;
        self.shared.lock().records.body(self.seq, &bytes);
        let budget = budget.map_err(bad)?;
        is_json(&parts.headers).map_err(bad)?;
        let asked = Asked::read(self.operation, &bytes).map_err(bad)?;
        Ok((asked, budget))
    }

    /// What is to go wrong, if anything.
    fn plan(&self, asked: &Asked) -> Plan {
        let mut inner = self.shared.lock();
        let super::shared::Inner { faults, chance, records, .. } = &mut *inner;
        let Some(fault) = faults.choose(self.operation, asked, || chance.f64()) else { return Plan::honest() };
        records.note(self.seq, |record| record.fault = Some(name(fault.kind)));
        self.shared.metrics.fault(fault.kind);
        fault.plan
    }

    /// Does the work, or arranges for it. The answer is what there would be to say.
    async fn work(&self, plan: &Plan, asked: Asked, budget: Duration) -> Answer {
        let deadline = self.received.checked_add(budget);
        let (shared, seq) = (Arc::clone(self.shared), self.seq);
        match plan.work {
            Work::Never => {
                shared.note(seq, |record| record.outcome = Outcome::Skipped);
                shared.preview(&asked)
            }
            Work::First => {
                let done = self.shared.work.spawn(async move { shared.perform(&asked, deadline, seq).await });
                done.await.unwrap_or_else(|error| {
                    Answer::refusal(StatusCode::INTERNAL_SERVER_ERROR, format!("a fault of the provider: {error}"))
                })
            }
            Work::Later { pause, beyond_budget } => {
                let preview = shared.preview(&asked);
                let deadline = if beyond_budget { None } else { deadline };
                self.shared.work.spawn(async move {
                    sleep(pause).await;
                    shared.perform(&asked, deadline, seq).await
                });
                preview
            }
        }
    }

    fn answered(&self, status: Option<StatusCode>) {
        self.shared.metrics.answered(self.operation, status);
        self.shared.note(self.seq, |record| record.status = status.map(|status| status.as_u16()));
    }
}

impl Shape {
    /// The status that goes out with it.
    fn status(&self, honest: &Answer) -> Option<StatusCode> {
        match self {
            Self::Cut { .. } | Self::PartialStatusLine { .. } | Self::Silence => None,
            Self::Status { status, .. } | Self::Redirect { status, .. } => Some(*status),
            Self::Garbage => Some(StatusCode::OK),
            Self::Empty => Some(StatusCode::NO_CONTENT),
            Self::Honest
            | Self::After(_)
            | Self::Half { .. }
            | Self::Drip(_)
            | Self::Endless
            | Self::Huge(_)
            | Self::Altered(_) => Some(honest.status),
        }
    }
}

async fn collect(body: axum::body::Body, longest: Duration) -> Result<Bytes, (StatusCode, Breach)> {
    match timeout(longest, Limited::new(body, MAX_BODY).collect()).await {
        Ok(Ok(whole)) => Ok(whole.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Err((StatusCode::PAYLOAD_TOO_LARGE, Breach::new("body", format!("it is more than {MAX_BODY} bytes"))))
        }
        Ok(Err(error)) => {
            Err((StatusCode::BAD_REQUEST, Breach::new("body", format!("it did not come whole: {error}"))))
        }
        Err(_) => {
            let why = format!("it did not come whole within {longest:?}; nothing was done");
            Err((StatusCode::REQUEST_TIMEOUT, Breach::new("body", why)))
        }
    }
}

fn is_json(headers: &HeaderMap) -> Result<(), Breach> {
    let mut given = headers.get_all(header::CONTENT_TYPE).iter();
    let first = given.next().and_then(|value| value.to_str().ok());
    let kind = first.and_then(|text| text.split(';').next()).map(str::trim);
    if given.next().is_none() && kind.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json")) {
        return Ok(());
    }
    Err(Breach::new("Content-Type", "it must be application/json"))
}
