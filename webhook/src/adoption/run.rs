//! Passes, one after the other, as long as there are records and this controller leads.

use super::pass::{Memory, Pass};
use super::proof::Prover;
use super::report::{Metrics, Reason, Teller};
use crate::events::Events;
use crate::lease::Leading;
use crate::pools::Index;
use k8s_api::conf::Conf;
use kube::{Client, Config};
use runtime::{Chain, Pauses};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;
use store::adopt::{Adopter, OldPool};
use tokio::sync::watch;
use tokio::time::sleep;

/// One request to the API server.
const REQUEST: Duration = Duration::from_secs(10);
/// What was admitted before a policy took effect is stored by then.
const QUIET: Duration = Duration::from_secs(2);
/// Between two passes that came to nothing, growing.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// Each reads every record's pod anew, and a pool may wait for months.
const PAUSE_MAX: Duration = Duration::from_mins(5);
/// The same while an API server does not refuse yet, which costs two requests.
const PAUSE_UNPROVEN: Duration = Duration::from_secs(30);
/// Pools of which one has to be refused.
const PROBED: usize = 5;

/// What it works with.
pub(crate) struct Inputs {
    /// Which repeats nothing by itself.
    pub(crate) client: Client,
    /// Of that client.
    pub(crate) config: Config,
    /// The controller's own.
    pub(crate) namespace: String,
    pub(crate) pools: watch::Receiver<Index>,
    pub(crate) conf: watch::Receiver<Conf>,
    pub(crate) leading: Leading,
    pub(crate) events: Events,
    pub(crate) metrics: Metrics,
}

/// Runs for ever.
pub(crate) async fn adopt(mut inputs: Inputs) -> Result<(), Infallible> {
    loop {
        inputs.leading.begins().await;
        let mut leading = inputs.leading.clone();
        // What is on its way when the lease goes is dropped: nothing is sent any more.
        tokio::select! {
            biased;
            () = leading.ends() => {}
            never = lead(&mut inputs) => match never {},
        }
        inputs.metrics.records.set(0);
    }
}

async fn lead(inputs: &mut Inputs) -> Infallible {
    let adopter = Adopter::new(inputs.client.clone(), REQUEST);
    let prover =
        Prover { config: inputs.config.clone(), client: inputs.client.clone(), namespace: inputs.namespace.clone() };
    let mut memory = Memory::default();
    let mut pauses = Pauses::new(PAUSE_MIN, PAUSE_MAX);
    loop {
        let old = with_records(&inputs.pools.borrow_and_update(), &inputs.metrics);
        if old.is_empty() {
            pauses.reset();
            if inputs.pools.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            continue;
        }
        let before = counts(&inputs.pools.borrow());
        let done = turn(inputs, &prover, &adopter, &mut memory, &old).await;
        if done.is_some_and(|pools| pools > 0) {
            pauses.reset();
        }
        let pause = if done.is_some() { pauses.pause() } else { pauses.pause().min(PAUSE_UNPROVEN) };
        tokio::select! {
            () = sleep(pause) => {}
            Ok(()) = inputs.conf.changed() => pauses.reset(),
            Ok(_) = inputs.pools.wait_for(|index| counts(index) != before) => pauses.reset(),
        }
    }
}

/// How many pools were adopted; nothing while it is not proven that the earlier system stands still.
async fn turn(
    inputs: &mut Inputs,
    prover: &Prover,
    adopter: &Adopter,
    memory: &mut Memory,
    old: &[OldPool],
) -> Option<usize> {
    let (adoption, provider) = {
        let conf = inputs.conf.borrow_and_update();
        (conf.adoption.clone(), conf.provider.as_ref().map(|server| server.id.clone()))
    };
    let Inputs { events, leading, .. } = &*inputs;
    if !adoption.dry_run {
        let names: Vec<&str> = old.iter().map(|pool| pool.name.as_str()).take(PROBED).collect();
        if let Err(not) = prover.prove(&adoption.api_servers, &names).await {
            tracing::info!(error = %Chain(&not), "an earlier system is not taken over yet");
            let (mut teller, why) = (Teller { adopter, events, said: &mut memory.said }, Chain(&not).to_string());
            for pool in old {
                teller.not_adopted(pool, Reason::PolicyNotInForce, &why).await;
            }
            return None;
        }
        sleep(QUIET).await;
    }
    match (Pass { adopter, events, leading, memory }).run(provider, adoption.dry_run).await {
        Ok(pools) => Some(pools),
        Err(error) => {
            tracing::warn!(error = %Chain(&error), "an earlier system is not taken over yet");
            Some(0)
        }
    }
}

/// How many records each pool has, where that is known.
fn counts(index: &Index) -> BTreeMap<String, Option<usize>> {
    let recorded = index.shown.iter().filter(|(_, shown)| shown.records != Some(0));
    recorded.map(|(name, shown)| (name.clone(), shown.records)).collect()
}

fn with_records(index: &Index, metrics: &Metrics) -> Vec<OldPool> {
    let old = index.shown.iter().filter(|(_, shown)| shown.records != Some(0));
    let (mut records, mut found) = (0, Vec::new());
    for (name, shown) in old {
        // Of one that cannot be read there is one at least.
        records += shown.records.unwrap_or(1);
        found.push(OldPool { name: name.clone(), uid: shown.uid.clone(), ..OldPool::default() });
    }
    metrics.records.set(i64::try_from(records).unwrap_or(i64::MAX));
    found
}
