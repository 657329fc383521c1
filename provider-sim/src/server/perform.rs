//! A call carried out: wait for a token, let the cloud take its time, and change what is bound, all within the budget.

use super::answer::{Answer, Content};
use super::shared::{Inner, Shared};
use crate::ask::{Allocate, Asked, Release};
use crate::cloud::{Binding, Cloud, Refusal, Released};
use crate::record::Outcome;
use crate::wire::AllocateResponse;
use http::StatusCode;
use serde_json::json;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The longest that a call waits for its token; the contract's own figure.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// Of the budget this is kept for the answer, or a fifth if that is less.
const FOR_THE_ANSWER: Duration = Duration::from_millis(200);

/// Until when a provider may begin to bind. `None`: a fault, it does not care.
pub(super) type Deadline = Option<Instant>;

impl Shared {
    /// Carries out a call and notes what came of it in record `seq`.
    pub(super) async fn perform(&self, asked: &Asked, deadline: Deadline, seq: u64) -> Answer {
        let (outcome, answer) = match self.admitted(deadline).await {
            Ok(()) => self.carry_out(asked, deadline),
            Err(answer) => (Outcome::Refused, answer),
        };
        if outcome == Outcome::ForeignUnbound {
            self.metrics.foreign_releases.inc();
        }
        self.note(seq, |record| record.outcome = outcome);
        answer
    }

    /// What the answer would be if the call were carried out.
    pub(super) fn preview(&self, asked: &Asked) -> Answer {
        let mut inner = self.lock();
        let Inner { cloud, chance, .. } = &mut *inner;
        let (_, answer) = apply(&mut cloud.clone(), asked, chance);
        answer
    }

    /// Waits until the cloud takes the call, and then as long as that takes. A complete refusal is 429: a proxy might have
    /// answered 503 or 504 while the work goes on, so nobody could rely on those.
    async fn admitted(&self, deadline: Deadline) -> Result<(), Answer> {
        let too_many = |why: String| Err(Answer::refusal(StatusCode::TOO_MANY_REQUESTS, why));
        let left = deadline.map_or(LONGEST_WAIT, |deadline| {
            let left = deadline.saturating_duration_since(Instant::now());
            left.saturating_sub(FOR_THE_ANSWER.min(left / 5)).saturating_sub(self.latency)
        });
        let longest = LONGEST_WAIT.min(left);
        let now = self.now();
        let wait = self.lock().bucket.as_mut().map(|bucket| bucket.take(now, longest));
        match wait {
            None => {}
            Some(Some(wait)) => sleep(wait).await,
            Some(None) => {
                sleep(longest).await;
                return too_many(format!("the cloud takes no more calls; waited {longest:?}, nothing was done"));
            }
        }
        if let Some(deadline) = deadline {
            let left = deadline.saturating_duration_since(Instant::now());
            if left <= self.latency {
                let latency = self.latency;
                return too_many(format!(
                    "X-Request-Timeout-Ms: the cloud takes {latency:?}, {left:?} are left; nothing was done"
                ));
            }
        }
        sleep(self.latency).await;
        Ok(())
    }

    fn carry_out(&self, asked: &Asked, deadline: Deadline) -> (Outcome, Answer) {
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            let why = "X-Request-Timeout-Ms: the budget is over; nothing was done";
            return (Outcome::Refused, Answer::refusal(StatusCode::TOO_MANY_REQUESTS, why));
        }
        match self.change(|cloud, chance| apply(cloud, asked, chance)) {
            Ok(done) => done,
            Err(error) => {
                tracing::error!(%error, "the state file cannot be written; nothing was done");
                let why = "the state file cannot be written; nothing was done";
                (Outcome::Refused, Answer::refusal(StatusCode::INTERNAL_SERVER_ERROR, why))
            }
        }
    }
}

fn apply(cloud: &mut Cloud, asked: &Asked, chance: &mut fastrand::Rng) -> (Outcome, Answer) {
    match asked {
        Asked::Allocate(allocate) => match cloud.allocate(allocate, &mut || chance.u64(..)) {
            Ok(bound) => (Outcome::Bound, bound_answer(allocate, &bound)),
            Err(refusal) => (Outcome::Refused, Answer::refusal(status(&refusal), refusal)),
        },
        Asked::Release(release) => match cloud.release(release) {
            Released::Unbound { foreign: false } => (Outcome::Unbound, released_answer(release)),
            Released::Unbound { foreign: true } => (Outcome::ForeignUnbound, released_answer(release)),
            Released::NotBound => (Outcome::NotBound, released_answer(release)),
        },
    }
}

const fn status(refusal: &Refusal) -> StatusCode {
    match refusal {
        Refusal::Taken { .. } => StatusCode::CONFLICT,
        Refusal::Full { .. } | Refusal::NoVlan { .. } => StatusCode::INSUFFICIENT_STORAGE,
    }
}

fn bound_answer(asked: &Allocate, bound: &[Binding]) -> Answer {
    let body = AllocateResponse {
        pod_name: asked.pod.name.clone(),
        pod_namespace: asked.pod.namespace.clone(),
        node_name: asked.node.clone(),
        addresses: bound.iter().map(Binding::answer).collect(),
    };
    Answer { status: StatusCode::OK, body: Content::Bound(body) }
}

/// Nobody reads it; that it is there lets faults cut it in half.
fn released_answer(asked: &Release) -> Answer {
    Answer {
        status: StatusCode::OK,
        body: Content::Other(json!({ "ipAddress": asked.address.to_string() }).to_string()),
    }
}
