//! Keeps the label of namespaces as their annotations have it, since an API server selects whom it asks by labels alone.

use super::facts::Step;
use super::known::Namespaces;
use crate::lease::Leading;
use crate::metrics::{Metrics, count};
use crate::resilient::pauses;
use k8s_api::conf::Conf;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use runtime::{Chain, Pauses};
use std::collections::HashMap;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

/// An API server that takes longer is not there.
const ANSWER: Duration = Duration::from_secs(3);
/// Second line: everything that is due is looked at again.
const AGAIN: Duration = Duration::from_mins(1);

/// A label could not be written.
#[derive(Debug, thiserror::Error)]
enum NotWritten {
    #[error("the API server did not take it")]
    Failed(#[source] kube::Error),
    #[error("the API server did not answer in time")]
    Slow,
}

/// The task. It writes while this controller leads and injection is on.
pub(crate) async fn mirror(
    client: Client,
    namespaces: watch::Receiver<Namespaces>,
    leading: Leading,
    conf: watch::Receiver<Conf>,
    metrics: Metrics,
) -> Result<(), Infallible> {
    let mirror = Mirror { api: Api::all(client), namespaces, leading, conf, metrics, tried: HashMap::new() };
    match mirror.run().await {}
}

struct Mirror {
    api: Api<Namespace>,
    namespaces: watch::Receiver<Namespaces>,
    leading: Leading,
    conf: watch::Receiver<Conf>,
    metrics: Metrics,
    /// Those that were tried: one that nobody may write does not hold up the others.
    tried: HashMap<String, Tried>,
}

/// Not tried again before `not_before`, unless the namespace has changed.
struct Tried {
    version: String,
    not_before: Instant,
    pauses: Pauses,
    said: String,
}

impl Mirror {
    async fn run(mut self) -> Infallible {
        loop {
            self.leading.begins().await;
            let next = self.pass().await;
            if !self.leading.now() {
                // What is left is for whoever leads next.
                continue;
            }
            // A change, the end of a pause, or a little later in any case: all of it is looked at anew.
            tokio::select! {
                Ok(()) = self.namespaces.changed() => {}
                Ok(()) = self.conf.changed() => {}
                () = sleep_until(next) => {}
            }
        }
    }

    /// Writes what is due; says when to look again.
    async fn pass(&mut self) -> Instant {
        let due = self.namespaces.borrow_and_update().due().clone();
        let mut next = Instant::now() + AGAIN;
        self.tried.retain(|name, _| due.contains(name));
        if !self.conf.borrow_and_update().inject {
            return next;
        }
        for name in due {
            // It may be done or gone by now.
            let Some(Due { step, version, patch }) = self.due(&name) else { continue };
            if let Some(tried) = self.tried.get(&name)
                && tried.version == version
                && tried.not_before > Instant::now()
            {
                next = next.min(tried.not_before);
                continue;
            }
            if !self.leading.now() {
                break;
            }
            let outcome = self.write(&name, patch).await;
            let word = match (&outcome, step) {
                (Err(_), _) => "failed",
                (Ok(()), Step::Write) => "written",
                (Ok(()), Step::Remove) => "removed",
            };
            count(&self.metrics.namespace_labels, word);
            next = next.min(self.remember(&name, version, outcome));
        }
        next
    }

    fn due(&self, name: &str) -> Option<Due> {
        let known = self.namespaces.borrow();
        let facts = known.get(name)?;
        let step = facts.step()?;
        Some(Due { step, version: facts.version().to_owned(), patch: facts.patch(step) })
    }

    async fn write(&self, name: &str, patch: serde_json::Value) -> Result<(), NotWritten> {
        // It was made here, and is a patch.
        let Ok(patch) = serde_json::from_value(patch) else { return Ok(()) };
        let patch = Patch::<()>::Json(patch);
        let answer =
            timeout(ANSWER.min(self.leading.left()), self.api.patch_metadata(name, &PatchParams::default(), &patch))
                .await;
        answer.map_err(|_| NotWritten::Slow)?.map(drop).map_err(NotWritten::Failed)
    }

    /// Says when to try again. What was written shows in the watch in a moment; what was not is mostly a namespace that
    /// another changed meanwhile, and the watch shows that, too.
    fn remember(&mut self, name: &str, version: String, outcome: Result<(), NotWritten>) -> Instant {
        let now = Instant::now();
        let new = || Tried { version: String::new(), not_before: now, pauses: pauses(), said: String::new() };
        let tried = self.tried.entry(name.to_owned()).or_insert_with(new);
        let again = tried.version == version;
        tried.version = version;
        tried.not_before = now + tried.pauses.pause();
        match outcome {
            Ok(()) => tracing::info!(namespace = name, "the label of a namespace follows its annotations"),
            Err(error) => {
                let error = Chain(&error).to_string();
                if again && tried.said != error {
                    tracing::warn!(namespace = name, error, "cannot write the label of a namespace; trying again");
                    tried.said = error;
                }
            }
        }
        tried.not_before
    }
}

/// What a namespace lacks, and the version of it that lacks it.
struct Due {
    step: Step,
    version: String,
    patch: serde_json::Value,
}
