//! CNI DEL: a sandbox goes.

use super::{Del, Flows, Stopped, at};
use crate::{Allocation, Host, Provider, Step, Store, Stored, Then};

impl<S: Store, P: Provider, H: Host> Flows<S, P, H> {
    /// Frees what an interface of a sandbox had, if its pod is gone. Nothing is known of the sandbox: nothing is done, and
    /// that is a success. (An allocation that another sandbox of the pod has taken over names that one.)
    pub async fn del(&self, del: &Del) -> Result<(), Stopped> {
        let theirs = |one: &Stored<Allocation>| one.value.interface == del.interface && one.value.held();
        let Some(uid) =
            self.store.of_container(&del.container_id).into_iter().find(theirs).map(|one| one.value.pod.uid)
        else {
            return Ok(());
        };
        let _lock = self.locks.take((uid, del.interface.clone())).await;
        let mut first = Ok(());
        // Read again: an ADD may have been on its way.
        for one in self.store.of_container(&del.container_id).into_iter().filter(theirs) {
            let done = self.let_go(one).await;
            first = first.and(done);
        }
        first
    }

    async fn let_go(&self, stored: Stored<Allocation>) -> Result<(), Stopped> {
        let allocation = &stored.value;
        let pod = &allocation.pod;
        self.host.at(Step::ReadPod).await;
        let facts = self.store.pod(&pod.namespace, &pod.name).await.map_err(at(Step::ReadPod))?;
        let live = facts.is_some_and(|facts| facts.lives_as(&pod.uid));
        if live || self.retained(&pod.namespace, &pod.name, allocation.owner.as_ref()).await? {
            if allocation.detached { Ok(()) } else { self.detach(stored).await }
        } else if allocation.provider.is_some() {
            self.free(stored, Then::Delete).await
        } else {
            self.remove(&stored).await
        }
    }

    /// Marks it: its sandbox is gone.
    pub(super) async fn detach(&self, stored: Stored<Allocation>) -> Result<(), Stopped> {
        let next = Allocation { detached: true, ..stored.value };
        self.host.at(Step::Detach).await;
        self.store.advance(next.address, &stored.version, next).await.map_err(at(Step::Detach))?;
        Ok(())
    }
}
