//! One pass: from what is there to as much as can be done now.

use super::report::{Reason, Teller, faults, now, planned};
use crate::events::Events;
use crate::lease::Leading;
use futures::{StreamExt, stream};
use ipam_core::{Address, Allocation, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use store::adopt::{Adopter, Due, Imported, OldPool, Plan, plans};

/// Writes at a time.
const AT_ONCE: usize = 16;

/// What this process remembers between passes.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) said: BTreeMap<String, (Reason, String)>,
    /// Records that it has made allocations of: UID of the pool, address, UID of the pod. One that is gone again was freed, and
    /// is not made anew as long as its record stands.
    made: BTreeSet<(String, Address, String)>,
}

/// What a pass works with.
pub(super) struct Pass<'a> {
    pub(super) adopter: &'a Adopter,
    pub(super) events: &'a Events,
    pub(super) leading: &'a Leading,
    pub(super) memory: &'a mut Memory,
}

impl Pass<'_> {
    /// How many pools were adopted.
    pub(super) async fn run(mut self, provider: Option<String>, dry_run: bool) -> Result<usize, StoreError> {
        let gathered = self.adopter.gather(provider.clone()).await?;
        let plans = plans(&gathered);
        let uids: BTreeSet<&str> = gathered.pools.iter().map(|pool| pool.uid.as_str()).collect();
        self.memory.made.retain(|(uid, ..)| uids.contains(uid.as_str()));
        let pools: Vec<_> = gathered.pools.iter().zip(plans).collect();
        if dry_run {
            for (pool, plan) in &pools {
                self.teller().not_adopted(pool, Reason::DryRun, &planned(plan)).await;
            }
            return Ok(0);
        }
        let mut ready = Vec::new();
        let mut left: BTreeSet<&str> = BTreeSet::new();
        for (pool, plan) in &pools {
            if self.import(pool, plan).await {
                ready.push((*pool, plan));
            } else {
                left.insert(&pool.name);
            }
        }
        // An endpoint shows the binding that an allocation has now, not the one that it was to have.
        let bound = pools.iter().any(|(_, plan)| plan.imports.iter().any(|one| one.provider.is_some()));
        let again = if bound { Some(self.adopter.gather(provider).await?) } else { None };
        let mut due = again.as_ref().unwrap_or(&gathered).due();
        due.retain(|due| !due.endpoint.is_of(&left));
        let stuck = self.unhold(due).await;
        let mut adopted = 0;
        for (pool, plan) in ready {
            let own = BTreeSet::from([pool.name.as_str()]);
            if !self.leading.now() || stuck.iter().any(|due| due.endpoint.is_of(&own)) {
                continue;
            }
            let message = format!("{} records of an earlier system are addresses now", plan.records);
            match self.adopter.close(pool, "RecordsTakenOver", &message, now()).await {
                Ok(()) => {
                    adopted += 1;
                    self.teller().adopted(pool, &message);
                }
                Err(error) => tracing::info!(pool = pool.name, %error, "the records of a pool are read again"),
            }
        }
        Ok(adopted)
    }

    fn teller(&mut self) -> Teller<'_> {
        Teller { adopter: self.adopter, events: self.events, said: &mut self.memory.said }
    }

    /// Whether every record of the pool is an allocation now.
    async fn import(&mut self, pool: &OldPool, plan: &Plan) -> bool {
        let key = |one: &Allocation| (pool.uid.clone(), one.address, one.pod.uid.clone());
        let missing: Vec<_> =
            plan.imports.iter().filter(|one| !self.memory.made.contains(&key(one))).cloned().collect();
        if !missing.is_empty() {
            tracing::info!(pool = pool.name, records = plan.records, missing = missing.len(), "taking records over");
        }
        let (adopter, leading) = (self.adopter, self.leading);
        let writes = missing.into_iter().map(|one| async move {
            // A process that was stopped for a while may come here before it hears that the lease has run out.
            if !leading.now() {
                return (one, Err(StoreError::Throttled { after: None }));
            }
            let imported = adopter.import(one.clone(), || format!("{:032x}", runtime::random())).await;
            (one, imported)
        });
        let mut writes = stream::iter(writes).buffer_unordered(AT_ONCE);
        let (mut whole, mut failed) = (true, None);
        while let Some((one, outcome)) = writes.next().await {
            match outcome {
                Ok(Imported::Made) => drop(self.memory.made.insert(key(&one))),
                // Whose it is, the next plan says.
                Ok(Imported::Taken) => whole = false,
                Err(error) => {
                    tracing::warn!(pool = pool.name, address = %one.address, %error, "a record is not taken over yet");
                    failed = Some((one.address, error));
                }
            }
        }
        drop(writes);
        if let Some((address, error)) = failed {
            if leading.now() {
                let message = format!("SpiderIPAllocation {address} cannot be written: {error}; tried again");
                self.teller().not_adopted(pool, Reason::WritesFail, &message).await;
            }
            return false;
        }
        if !plan.faults.is_empty() {
            self.teller().not_adopted(pool, Reason::RecordsNotUsable, &faults(plan)).await;
            return false;
        }
        whole
    }

    /// Takes the earlier system's finalizer off endpoints and has them show their bindings. Those where that failed.
    async fn unhold(&self, due: Vec<Due>) -> Vec<Due> {
        let (adopter, leading) = (self.adopter, self.leading);
        let writes = due.into_iter().map(|due| async move {
            if !leading.now() {
                return Some(due);
            }
            let error = adopter.unhold(&due).await.err()?;
            let of = &due.endpoint;
            tracing::info!(namespace = of.namespace, name = of.name, %error, "an endpoint is read again");
            Some(due)
        });
        let failed: Vec<_> = stream::iter(writes).buffer_unordered(AT_ONCE).collect().await;
        failed.into_iter().flatten().collect()
    }
}
