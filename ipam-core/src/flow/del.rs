//! CNI DEL: a sandbox goes.

use super::{Del, Flows, Stopped, at};
use crate::{Allocation, Host, Provider, Step, Store, Stored, Then};

impl<S: Store, P: Provider, H: Host> Flows<S, P, H> {
    /// Frees what an interface of a sandbox had, if its pod is gone. Nothing is known of the sandbox: nothing is done, and
    /// that is a success. (An allocation that another sandbox of the pod has taken over names that one.)
    pub async fn del(&self, del: &Del) -> Result<(), Stopped> {
        let Some(uid) = self.of_sandbox(del).into_iter().next().map(|one| one.value.pod.uid) else {
            return Ok(());
        };
        let _lock = self.locks.take((uid, del.interface.clone())).await;
        let mut first = Ok(());
        // Read again: an ADD may have been on its way.
        for one in self.of_sandbox(del) {
            let done = self.let_go(one, del).await;
            first = first.and(done);
        }
        first
    }

    /// What the sandbox has, and what the pod has in a sandbox that nobody knows: this may be it.
    fn of_sandbox(&self, del: &Del) -> Vec<Stored<Allocation>> {
        let mut all = self.store.of_container(&del.container_id);
        if !del.pod_uid.is_empty() {
            let unknown = self.store.of_pod(&del.pod_uid).into_iter().filter(|one| one.value.sandbox_unknown());
            all.extend(unknown);
        }
        all.retain(|one| one.value.interface == del.interface && one.value.held());
        all
    }

    async fn let_go(&self, stored: Stored<Allocation>, del: &Del) -> Result<(), Stopped> {
        let allocation = &stored.value;
        let pod = &allocation.pod;
        self.host.at(Step::ReadPod).await;
        let facts = self.store.pod(&pod.namespace, &pod.name).await.map_err(at(Step::ReadPod))?;
        let there = facts.as_ref().is_some_and(|facts| facts.is(&pod.uid) && !facts.terminal);
        if there && allocation.sandbox_unknown() {
            // It may as well be an earlier one of the pod, also while that is ending.
            return Ok(());
        }
        let live = facts.is_some_and(|facts| facts.lives_as(&pod.uid));
        if live || self.retained(&pod.namespace, &pod.name, allocation.owner.as_ref()).await? {
            if allocation.detached { Ok(()) } else { self.detach(stored, &del.container_id).await }
        } else if allocation.provider.is_some() {
            self.free(stored, Then::Delete).await
        } else {
            self.remove(&stored).await
        }
    }

    /// Marks it: its sandbox is gone. Of one that nobody knew, the id as well.
    pub(super) async fn detach(&self, stored: Stored<Allocation>, container_id: &str) -> Result<(), Stopped> {
        let next = Allocation { detached: true, container_id: container_id.to_owned(), ..stored.value };
        self.host.at(Step::Detach).await;
        let address = next.address;
        self.store.advance(address, &stored.version, next).await.map_err(at(Step::Detach))?;
        self.ended.forget(address);
        Ok(())
    }
}
