//! Asking the cloud to bind.

use super::add::{Left, Problem};
use super::{Add, AddError, Flows, NotYet};
use crate::{Allocation, Bound, Call, Host, Outcome, Provider, Step, Store, Stored, Then};
use std::time::Duration;

impl<S: Store, P: Provider, H: Host> Flows<S, P, H> {
    /// Asks the cloud to bind an address whose allocation was written by this flow just before.
    pub(super) async fn bind(&self, add: &Add, own: &Stored<Allocation>, deadline: Duration) -> Result<Bound, Problem> {
        let address = own.value.address;
        let left = Some(Left { allocation: own.clone(), then: Then::Delete, answered: true });
        self.budget(add).map_err(|error| Problem { error, left: left.clone() })?;
        let Some(call) = call(&own.value, deadline) else {
            return Err(NotYet::Changed(Step::Bind).into());
        };
        self.host.at(Step::Bind).await;
        match self.provider.allocate(&call).await {
            Outcome::Answered(bound) => Ok(bound),
            Outcome::Rejected(why) => Err(Problem { error: AddError::Provider { address, why }, left }),
            Outcome::Unknown(why) => Err(NotYet::Unanswered { address, why }.into()),
        }
    }
}

/// The call for an allocation with a binding.
pub(super) fn call(allocation: &Allocation, deadline: Duration) -> Option<Call> {
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
