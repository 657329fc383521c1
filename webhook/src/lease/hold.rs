//! Takes the Lease, renews it, and leaves it on the way out.

use super::leading::Leading;
use super::record::{HELD, Seen, Step};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use kube::api::PostParams;
use kube::{Api, Client};
use prometheus_client::metrics::gauge::Gauge;
use runtime::Chain;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Between two looks, and between two renewals.
const PAUSE: Duration = Duration::from_secs(2);
/// One look and one write.
const ANSWER: Duration = Duration::from_secs(3);

/// Who wants the Lease, and which.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) namespace: String,
    pub(crate) lease: String,
    /// Of this process alone: the name of its pod.
    pub(crate) identity: String,
}

/// The Lease could not be read or written.
#[derive(Debug, thiserror::Error)]
enum NotRenewed {
    #[error("the API server did not answer")]
    Failed(#[source] kube::Error),
    #[error("the API server did not answer within {ANSWER:?}")]
    Slow,
}

/// Whether this process leads, as `leads` shows it too, and the task that sees to it until `stop`.
pub(crate) fn hold(
    client: Client,
    candidate: Candidate,
    leads: Gauge,
    stop: CancellationToken,
) -> (Leading, impl Future<Output = Result<(), Infallible>>) {
    let (until, latest) = watch::channel(None);
    let api = Api::namespaced(client, &candidate.namespace);
    let holder = Holder { api, candidate, until, leads, seen: None, said: String::new() };
    (Leading::new(latest), holder.run(stop))
}

struct Holder {
    api: Api<Lease>,
    candidate: Candidate,
    until: watch::Sender<Option<Instant>>,
    leads: Gauge,
    seen: Option<Seen>,
    said: String,
}

impl Holder {
    async fn run(mut self, stop: CancellationToken) -> Result<(), Infallible> {
        let turns = async {
            loop {
                self.turn().await;
                self.leads.set(Leading::new(self.until.subscribe()).now().into());
                sleep(PAUSE).await;
            }
        };
        let _: Option<Infallible> = stop.run_until_cancelled(turns).await;
        // What is being written for the cluster ends first: nobody may begin while it may still arrive.
        if self.until.send_replace(None).is_some() {
            let _ = timeout(ANSWER, self.leave()).await;
        }
        Ok(())
    }

    async fn turn(&mut self) {
        // Counted from before the request: others count from later.
        let began = Instant::now();
        let outcome = timeout(ANSWER, self.look_and_write()).await.map_err(|_| NotRenewed::Slow);
        match outcome.and_then(|outcome| outcome.map_err(NotRenewed::Failed)) {
            Ok(held) => {
                self.said.clear();
                self.tell(held.then(|| began + HELD));
            }
            // The last renewal lasts as long as it was given for.
            Err(error) => {
                let error = Chain(&error).to_string();
                if self.said != error {
                    tracing::warn!(error, lease = self.candidate.lease, "cannot take or renew the lease; trying again");
                    self.said = error;
                }
            }
        }
    }

    /// Whether it is ours now.
    async fn look_and_write(&mut self) -> Result<bool, kube::Error> {
        let Candidate { lease: name, identity, .. } = &self.candidate;
        let found = match self.api.get_opt(name).await? {
            Some(found) => found,
            None => match self.api.create(&PostParams::default(), &empty(name)).await {
                Err(kube::Error::Api(status)) if status.code == 409 => return Ok(false),
                made => made?,
            },
        };
        let seen = Seen::again(self.seen.take(), found, Instant::now());
        let step = seen.step(identity, Instant::now());
        let written = seen.held_by(identity, Timestamp::now());
        self.seen = Some(seen);
        if step == Step::Wait {
            return Ok(false);
        }
        match self.api.replace(name, &PostParams::default(), &written).await {
            // Another was faster.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
            written => {
                self.seen = Some(Seen::again(self.seen.take(), written?, Instant::now()));
                Ok(true)
            }
        }
    }

    fn tell(&self, until: Option<Instant>) {
        let before = self.until.send_replace(until);
        let identity = &self.candidate.identity;
        match (before, until) {
            (None, Some(_)) => tracing::info!(identity, "this controller leads"),
            (Some(_), None) => tracing::warn!(identity, "this controller does not lead any more"),
            _ => {}
        }
    }

    async fn leave(&self) -> Result<(), kube::Error> {
        let Some(seen) = self.seen.as_ref().filter(|seen| seen.holder() == Some(&self.candidate.identity)) else {
            return Ok(());
        };
        self.api.replace(&self.candidate.lease, &PostParams::default(), &seen.left()).await?;
        tracing::info!("the lease is free");
        Ok(())
    }
}

fn empty(name: &str) -> Lease {
    let mut lease = Lease::default();
    lease.metadata.name = Some(name.to_owned());
    lease
}
