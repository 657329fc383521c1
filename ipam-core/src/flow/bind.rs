//! Asking the cloud to bind.

use super::add::{Calls, Left, Pod, Problem};
use super::{AddError, Flows, NotYet};
use crate::{Allocation, Bound, Call, Deadline, Host, Outcome, Provider, Step, Store, Stored, Then};
use std::time::Duration;

impl<S: Store, P: Provider, H: Host> Flows<S, P, H> {
    /// Asks the cloud to bind an address whose allocation was written by this flow just before. What it does not say stays as
    /// the endpoint had it.
    pub(super) async fn bind(
        &self,
        pod: &Pod<'_>,
        own: &Stored<Allocation>,
        deadline: Deadline,
    ) -> Result<Bound, Problem> {
        let address = own.value.address;
        // Where nothing was sent, a retained pod keeps its address.
        let then = |calls| if calls == Calls::None && pod.retained { Then::Keep } else { Then::Delete };
        let failed = |error: AddError, calls| Problem {
            error,
            left: Some(Left { allocation: own.clone(), then: then(calls), calls }),
        };
        self.budget(pod.add).map_err(|error| failed(error, Calls::None))?;
        // A process that is to end has no time for a new call.
        self.pause(Duration::ZERO, Step::Bind).await.map_err(|stopped| failed(stopped.into(), Calls::None))?;
        let Some(call) = call(&own.value, deadline) else {
            return Err(NotYet::Changed(Step::Bind).into());
        };
        self.host.at(Step::Bind).await;
        let refused = |why| failed(AddError::Provider { address, why }, Calls::Answered);
        let bound = match self.provider.allocate(&call).await {
            Outcome::Answered(bound) => bound,
            Outcome::Rejected(why) => return Err(refused(why)),
            Outcome::Unsent(why) => return Err(failed(NotYet::Unreached { address, why }.into(), Calls::None)),
            Outcome::Unknown(why) => return Err(NotYet::Unanswered { address, why }.into()),
        };
        let before = pod.before();
        let mac = bound.mac.or_else(|| before.and_then(|before| before.mac.clone()));
        let vlan = bound.vlan.or_else(|| before.and_then(|before| before.vlan));
        match self.claim(&own.value, vlan).await {
            None => Ok(Bound { mac, vlan }),
            Some(why) => Err(refused(why)),
        }
    }
}

/// The call that takes it back. What is retained may have been bound for an earlier pod: a provider is not told a UID that it
/// never heard of (a machine's pods differ in their names, too), and all of that may be left out by the contract.
pub(super) fn back(allocation: &Allocation, deadline: Deadline) -> Option<Call> {
    let mut call = call(allocation, deadline)?;
    if let Some(owner) = allocation.owner.as_ref().filter(|owner| owner.retains()) {
        call.pod.uid.clear();
        if owner.is_machine() {
            call.pod.name.clear();
        }
    }
    Some(call)
}

/// The call for an allocation with a binding.
fn call(allocation: &Allocation, deadline: Deadline) -> Option<Call> {
    let binding = allocation.provider.as_ref()?;
    Some(Call {
        server: binding.server.clone(),
        pod: allocation.pod.clone(),
        node: allocation.node.name.clone(),
        parent_nic_mac: binding.parent_nic_mac.clone(),
        address: allocation.address,
        subnet: binding.subnet.clone(),
        deadline,
    })
}
