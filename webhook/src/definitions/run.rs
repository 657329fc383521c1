//! Keeps every definition as its attachment wants it, for as long as this controller leads.

use super::plan::{Step, plan};
use super::queue::{Key, Outcome, Queue};
use super::status::said;
use super::write::write;
use crate::attachments::{Config, Index};
use crate::events::Events;
use crate::lease::Leading;
use crate::metrics::{Metrics, count};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use k8s_api::conf::Conf;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Writes at a time; more wait in the queue.
const WRITES: usize = 16;
/// Between two looks at the whole index: a burst of changes costs a few looks, not one each.
const LOOK: Duration = Duration::from_millis(20);
/// When nothing else is to be done.
const IDLE: Duration = Duration::from_hours(1);

/// Runs for ever.
pub(crate) async fn keep(
    client: Client,
    mut index: watch::Receiver<Index>,
    mut conf: watch::Receiver<Conf>,
    mut leading: Leading,
    events: Events,
    metrics: Metrics,
) -> Result<(), Infallible> {
    let mut queue = Queue::default();
    let mut writing = FuturesUnordered::new();
    let mut epoch = 0_u64;
    let (mut changed, mut looked) = (true, Instant::now());
    loop {
        if !leading.now() {
            metrics.not_ready.set(0);
            leading.begins().await;
            queue.forget();
            changed = true;
        }
        {
            let now = Instant::now();
            let look = changed && looked <= now;
            let index = if look { index.borrow_and_update() } else { index.borrow() };
            if look {
                (changed, looked) = (false, now + LOOK);
            }
            if look && index.synced {
                queue.look(&index, (epoch, index.multus));
                let not_ready = index.configs().filter(|config| !config.is_ready()).count();
                metrics.not_ready.set(i64::try_from(not_ready).unwrap_or(i64::MAX));
            }
            let conf = conf.borrow();
            while writing.len() < WRITES {
                let Some(key) = queue.take(Instant::now()) else { break };
                let Some(config) = index.config(&key.0, &key.1) else { continue };
                let Some(step) = plan(&index, config, &conf, queue.refusal(&key), Timestamp::now()) else {
                    queue.settled(&key);
                    continue;
                };
                queue.busy(key.clone());
                writing.push(carry_out(client.clone(), key, config.clone(), step, leading.clone()));
            }
        }
        let pause = queue.next().into_iter().chain(changed.then_some(looked)).min();
        let pause = pause.unwrap_or_else(|| Instant::now() + IDLE);
        tokio::select! {
            Some((key, config, step, outcome)) = writing.next() => {
                tell(&events, &metrics, &config, &step, &outcome);
                queue.done(key, outcome, Instant::now());
            }
            Ok(()) = index.changed() => changed = true,
            Ok(()) = conf.changed() => (epoch, changed) = (epoch.wrapping_add(1), true),
            () = sleep_until(pause) => {}
        }
    }
}

async fn carry_out(
    client: Client,
    key: Key,
    config: Config,
    step: Step,
    leading: Leading,
) -> (Key, Config, Step, Outcome) {
    let outcome = write(client, &config, &step, &leading).await;
    (key, config, step, outcome)
}

/// Says what was done where people look: at the attachment, in the log, in the metrics.
fn tell(events: &Events, metrics: &Metrics, config: &Config, step: &Step, outcome: &Outcome) {
    let (namespace, name, network) = (&config.namespace, &config.name, &config.network);
    match (step, outcome) {
        (_, Outcome::Failed | Outcome::Refused(_)) => count(&metrics.definition_writes, "failed"),
        (Step::Apply { version: None, .. }, _) => {
            count(&metrics.definition_writes, "made");
            tracing::info!(namespace, name, network = %network, "made the NetworkAttachmentDefinition of an attachment");
        }
        (Step::Apply { why, .. }, _) => {
            count(&metrics.definition_writes, "mended");
            tracing::info!(namespace, name, network = %network, why, "mended the NetworkAttachmentDefinition of an attachment");
            events.tell(
                config,
                "DefinitionUpdated",
                &format!("NetworkAttachmentDefinition {network}: {why} from the attachment"),
            );
        }
        (Step::Remove { name: old, .. }, _) => {
            count(&metrics.definition_writes, "removed");
            tracing::info!(
                namespace,
                name,
                old,
                "removed a NetworkAttachmentDefinition that an attachment has left behind"
            );
            events.tell(
                config,
                "DefinitionRemoved",
                &format!("NetworkAttachmentDefinition {old}: the attachment has another name now"),
            );
        }
        (Step::Tell { standing, .. }, _) if said(config, standing) => {}
        (Step::Tell { standing, .. }, _) if standing.ready => events.tell(config, standing.reason, &standing.message),
        (Step::Tell { standing, .. }, _) => {
            tracing::warn!(
                namespace,
                name,
                reason = standing.reason,
                message = standing.message,
                "an attachment is not ready"
            );
            events.warn(config, standing.reason, &standing.message);
        }
    }
}
