//! SpiderIPAllocation as an object, and as the value of `ipam_core`.

use crate::name;
use crate::object::Numbered;
use ipam_core::{
    Allocation, Binding, Netns, Node, Owner, Pod, ReleaseRequest, Releasing, State, StoreError, Then, Version,
};
use k8s_api::crd::ip_allocation as crd;
use k8s_api::crd::ip_allocation::{IpAllocationSpec, SpiderIPAllocation};
use k8s_api::names::REPLACES;
use kube::Resource;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use std::time::Duration;

/// An object of the API server. What it says may be unreadable; that it is there, and so has its address, is certain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) name: String,
    pub(crate) version: Numbered,
    /// The value, or what is wrong with it.
    pub(crate) what: Result<Allocation, String>,
}

/// Reads an object.
pub(crate) fn read(object: &DynamicObject) -> Result<Object, StoreError> {
    let version = Numbered::of(&object.metadata)?;
    let name = object.metadata.name.clone().unwrap_or_default();
    let spec = object.data.get("spec").unwrap_or(&Value::Null);
    let what = match serde_json::from_value::<IpAllocationSpec>(spec.clone()) {
        Ok(spec) => value(spec).and_then(|value| named(&name, value)),
        Err(error) => Err(error.to_string()),
    };
    Ok(Object { name, version, what })
}

fn named(name: &str, value: Allocation) -> Result<Allocation, String> {
    let wanted = name::of(value.address);
    if name == wanted { Ok(value) } else { Err(format!("an allocation of {} is named {wanted}", value.address)) }
}

/// Writes an object: a new one, or the one that replaces `version`.
pub(crate) fn written(value: &Allocation, replaces: Option<&Version>) -> Value {
    let metadata = match replaces {
        None => json!({"name": name::of(value.address)}),
        Some(Version { uid, resource }) => json!({
            "name": name::of(value.address), "uid": uid, "resourceVersion": resource, "annotations": {REPLACES: resource},
        }),
    };
    json!({
        "apiVersion": SpiderIPAllocation::api_version(&()),
        "kind": SpiderIPAllocation::kind(&()),
        "metadata": metadata,
        "spec": spec(value.clone()),
    })
}

/// A value as it is read back: what is finer than the object can hold is rounded.
pub(crate) fn as_stored(allocation: Allocation) -> Result<Allocation, String> {
    value(spec(allocation))
}

fn spec(allocation: Allocation) -> IpAllocationSpec {
    let Allocation {
        pool,
        address,
        node: Node { name, uid, machine_id },
        pod,
        owner,
        container_id,
        interface,
        network,
        netns,
        boot_id,
        flow_id,
        state,
        provider,
        detached,
        release_request,
    } = allocation;
    let (state, releasing) = match state {
        State::Held => (crd::State::Held, None),
        State::Releasing(Releasing { releaser, then }) => {
            let then = match then {
                Then::Delete => crd::Then::Delete,
                Then::Keep => crd::Then::Keep,
            };
            (crd::State::Releasing, Some(crd::Releasing { releaser, then }))
        }
    };
    IpAllocationSpec {
        pool,
        address: address.to_string(),
        node: crd::NodeRef { name, uid, machine_id },
        pod: crd::PodRef { namespace: pod.namespace, name: pod.name, uid: pod.uid },
        owner: owner.map(|Owner { api_version, kind, name, uid }| crd::OwnerRef { api_version, kind, name, uid }),
        container_id,
        interface,
        network,
        // The same bits: JSON of Kubernetes has signed numbers alone.
        netns: netns.map(|Netns { path, dev, inode }| crd::Netns {
            path,
            dev: dev.cast_signed(),
            inode: inode.cast_signed(),
        }),
        boot_id,
        flow_id,
        state,
        releasing,
        provider: provider.map(|Binding { server, subnet, parent_nic_mac, bind_id, settle }| crd::ProviderRef {
            server,
            subnet,
            parent_nic_mac,
            bind_id,
            settle_milliseconds: milliseconds(settle),
        }),
        detached,
        release_request: release_request.map(|ReleaseRequest { by, at, abandon }| crd::ReleaseRequest {
            by,
            at,
            abandon,
        }),
    }
}

/// Rounded up: a settling time that is too long costs time, one that is too short an address.
fn milliseconds(time: Duration) -> i64 {
    let more = u128::from(!time.subsec_nanos().is_multiple_of(1_000_000));
    i64::try_from(time.as_millis() + more).unwrap_or(i64::MAX)
}

fn value(spec: IpAllocationSpec) -> Result<Allocation, String> {
    let IpAllocationSpec {
        pool,
        address,
        node: crd::NodeRef { name, uid, machine_id },
        pod,
        owner,
        container_id,
        interface,
        network,
        netns,
        boot_id,
        flow_id,
        state,
        releasing,
        provider,
        detached,
        release_request,
    } = spec;
    Ok(Allocation {
        pool,
        address: address.parse().map_err(|error| format!("spec.address: {error}"))?,
        node: Node { name, uid, machine_id },
        pod: Pod { namespace: pod.namespace, name: pod.name, uid: pod.uid },
        owner: owner.map(|crd::OwnerRef { api_version, kind, name, uid }| Owner { api_version, kind, name, uid }),
        container_id,
        interface,
        network,
        netns: netns.map(|crd::Netns { path, dev, inode }| Netns {
            path,
            dev: dev.cast_unsigned(),
            inode: inode.cast_unsigned(),
        }),
        boot_id,
        flow_id,
        state: state_of(state, releasing)?,
        provider: provider.map(binding).transpose()?,
        detached,
        release_request: release_request.map(|crd::ReleaseRequest { by, at, abandon }| ReleaseRequest {
            by,
            at,
            abandon,
        }),
    })
}

fn state_of(state: crd::State, releasing: Option<crd::Releasing>) -> Result<State, String> {
    match (state, releasing) {
        (crd::State::Held, None) => Ok(State::Held),
        (crd::State::Releasing, Some(crd::Releasing { releaser, then })) => {
            let then = match then {
                crd::Then::Delete => Then::Delete,
                crd::Then::Keep => Then::Keep,
            };
            Ok(State::Releasing(Releasing { releaser, then }))
        }
        (crd::State::Held, Some(_)) => Err("spec.releasing belongs to state Releasing alone".to_owned()),
        (crd::State::Releasing, None) => Err("state Releasing needs spec.releasing".to_owned()),
    }
}

fn binding(provider: crd::ProviderRef) -> Result<Binding, String> {
    let crd::ProviderRef { server, subnet, parent_nic_mac, bind_id, settle_milliseconds } = provider;
    let settle = u64::try_from(settle_milliseconds).map_err(|_| "spec.provider.settleMilliseconds is negative")?;
    Ok(Binding { server, subnet, parent_nic_mac, bind_id, settle: Duration::from_millis(settle) })
}

#[cfg(test)]
mod tests;
