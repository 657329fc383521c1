//! Does what the plan says, one step at a time.

use super::metrics::{Done, Metrics};
use super::named::Known;
use super::plan::{Plan, Step, plan};
use super::secret::{self, Written};
use super::state::{State, bundle};
use super::webhooks::{self, Seen};
use super::{Wanted, issue};
use crate::lease::Leading;
use futures::StreamExt;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use runtime::{Chain, Pauses};
use std::convert::Infallible;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

/// For one request, and for a write to come back by the watch.
const ANSWER: Duration = Duration::from_secs(10);
/// Without a certificate that can be shown for so long, a controller does not wait for the one that leads: in a change from
/// another method that is one of the old pods, and they stay until a new one is ready.
const PATIENCE: Duration = Duration::from_secs(4);
const PAUSE_MIN: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(20);
/// Between two looks of one that may not do anything.
const IDLE: Duration = Duration::from_mins(1);

/// A step came to nothing.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error("nothing new can be made")]
    Make(#[from] issue::CannotMake),
    #[error("the certificate's Secret cannot be written")]
    Secret(#[from] secret::CannotWrite),
    #[error("the webhooks cannot be told whom to trust")]
    Webhooks(#[from] webhooks::CannotPatch),
}

/// Keeps Secret and webhooks.
pub(super) struct Keeper {
    client: Client,
    wanted: Wanted,
    metrics: Metrics,
    leading: Leading,
    secret: watch::Receiver<Known<Secret>>,
    seen: Seen,
    /// Since when there has been no certificate that can be shown.
    without: Option<Instant>,
}

impl Keeper {
    pub(super) fn new(
        client: Client,
        wanted: Wanted,
        metrics: Metrics,
        leading: Leading,
        secret: watch::Receiver<Known<Secret>>,
    ) -> Self {
        Self { client, wanted, metrics, leading, secret, seen: Seen::default(), without: None }
    }

    pub(super) async fn run(mut self) -> Result<(), Infallible> {
        let mut changes = webhooks::watch(&self.client, &self.wanted.place.webhooks);
        let (mut pauses, mut said) = (Pauses::new(PAUSE_MIN, PAUSE_MAX), String::new());
        loop {
            let wait = match self.pass().await {
                Ok(wait) => {
                    pauses.reset();
                    said.clear();
                    wait
                }
                Err(error) => {
                    self.metrics.count(Done::Failed);
                    let error = Chain(&error).to_string();
                    if said != error {
                        tracing::error!(error, "the certificate cannot be kept; trying again");
                        said = error;
                    }
                    // Changes do not make it shorter: they may be what fails.
                    sleep(pauses.pause()).await;
                    Duration::ZERO
                }
            };
            tokio::select! {
                Some(change) = changes.next() => self.seen.take(change, Instant::now()),
                Ok(()) = self.secret.changed() => {}
                () = self.leading.changed() => {}
                () = sleep(wait) => {}
            }
        }
    }

    /// Whether this controller may write, now.
    fn may_write(&self) -> bool {
        self.leading.now() || self.without.is_some_and(|since| since.elapsed() >= PATIENCE)
    }

    /// At most one change; how long to wait for the next look.
    async fn pass(&mut self) -> Result<Duration, Failed> {
        let secret = self.secret.borrow_and_update().clone();
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX));
        let Some(trust) = self.seen.trust(Instant::now()).filter(|_| secret != Known::Unknown) else {
            return Ok(IDLE);
        };
        let state = State::read(&secret::data(&secret));
        self.metrics.authority_not_after.set(state.authority.as_ref().map_or(0, |one| one.certificate.not_after));
        let shows = state.shown.as_ref().is_some_and(|shown| shown.certificate.is_valid(now));
        self.without = if shows { None } else { self.without.or_else(|| Some(Instant::now())) };
        if !self.may_write() {
            return Ok(if shows { IDLE } else { PATIENCE });
        }
        let plan = plan(&state, &trust, &self.wanted.names, now, &self.wanted.lifetimes);
        // Before, unless the bundle is what has to change.
        if !matches!(&plan, Plan::Do(step) if step.extends_trust()) && self.repair(&secret, &state).await? {
            return Ok(ANSWER);
        }
        match plan {
            Plan::Wait(wait) => Ok(wait),
            Plan::Do(step) => self.step(&step, &secret, &state, now).await,
        }
    }

    /// Gives every webhook the bundle; whether there was anything to do. The watch shows what came of it.
    async fn repair(&self, secret: &Known<Secret>, state: &State) -> Result<bool, Failed> {
        let bundle = bundle(&state.bundle);
        let patches = self.seen.patches(&self.wanted.place.secret(), &bundle);
        let any = !patches.is_empty();
        // The webhooks were seen before: if they know of a later Secret than we do, this tells.
        if any && !secret::is_latest(&self.client, &self.wanted.place, secret, ANSWER).await? {
            return Ok(true);
        }
        for (kind, patch) in patches {
            if !self.may_write() {
                break;
            }
            if webhooks::patch(&self.client, &self.wanted.place, kind, patch, ANSWER).await? {
                self.metrics.count(Done::Trusted);
                tracing::info!(?kind, authorities = state.bundle.len(), "webhooks told whom to trust");
            }
        }
        Ok(any)
    }

    async fn step(&mut self, step: &Step, secret: &Known<Secret>, state: &State, now: i64) -> Result<Duration, Failed> {
        let Wanted { place, names, lifetimes } = &self.wanted;
        let after = issue::apply(step, state, names, now, lifetimes)?;
        if !self.may_write() {
            return Ok(Duration::ZERO);
        }
        if secret::write(&self.client, place, secret, &after, ANSWER).await? == Written::Done {
            self.tell(step, state, &after);
        }
        // The next step is planned on what came of this one, or of somebody else's.
        let before = secret::version(secret);
        let _ = timeout(ANSWER, self.secret.wait_for(|latest| secret::version(latest) != before)).await;
        Ok(Duration::ZERO)
    }

    fn tell(&self, step: &Step, before: &State, after: &State) {
        let authority = after.authority.as_ref().map(|authority| authority.certificate.subject.as_str());
        if matches!(step, Step::Make | Step::Announce { .. }) {
            let made = after.next.as_ref().or(after.authority.as_ref());
            let made = made.map(|made| (made.certificate.subject.as_str(), made.certificate.not_after));
            self.metrics.count(Done::Published);
            tracing::info!(authority = ?made, "authority published");
        }
        if let Some(shown) = after.shown.as_ref().filter(|_| before.shown != after.shown) {
            self.metrics.count(Done::Issued);
            tracing::info!(authority, not_after = shown.certificate.not_after, "certificate issued");
        }
        for former in before.bundle.iter().filter(|one| !after.bundle.contains(one)) {
            self.metrics.count(Done::Retired);
            tracing::info!(authority = former.subject, "authority retired");
        }
    }
}
