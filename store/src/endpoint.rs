//! SpiderEndpoint as an object, and as the value of `ipam_core`.
//!
//! The object keeps kind and name of the pod's controller, no more: that is what is read back of it.

use crate::object::Numbered;
use ipam_core::{Address, Assigned, Endpoint, Family, Interface, Owner, Pod, Route, StoreError, Version};
use k8s_api::crd::endpoint as crd;
use k8s_api::crd::endpoint::{EndpointStatus, SpiderEndpoint};
use k8s_api::crd::ip_pool;
use k8s_api::names::{REPLACES, REPLACES_NOTHING};
use kube::Resource;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use std::net::IpAddr;

/// Kind that stands for "no controller".
const NO_OWNER: &str = "Pod";
const VLAN_MAX: u16 = 4094;

/// Reads an object. What it has beside a status is not ours to know.
pub(crate) fn read(object: &DynamicObject) -> Result<(Endpoint, Version), StoreError> {
    let version = Numbered::of(&object.metadata)?.version();
    let status = object.data.get("status").filter(|status| !status.is_null());
    let status = match status.map(|status| serde_json::from_value::<EndpointStatus>(status.clone())) {
        None => Ok(EndpointStatus::default()),
        Some(read) => read.map_err(|error| error.to_string()),
    };
    let endpoint = status.and_then(|status| value(object, status));
    let name = object.metadata.name.as_deref().unwrap_or_default();
    let endpoint =
        endpoint.map_err(|why| StoreError::Refused(format!("SpiderEndpoint {name} cannot be read: {why}")))?;
    Ok((endpoint, version))
}

fn value(object: &DynamicObject, status: EndpointStatus) -> Result<Endpoint, String> {
    let EndpointStatus { current: crd::Current { uid, node, ips }, owner_controller_type, owner_controller_name } =
        status;
    let metadata = &object.metadata;
    let pod = Pod {
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone().unwrap_or_default(),
        uid,
    };
    let owner = match owner_controller_type.as_str() {
        "" | NO_OWNER => None,
        _ => Some(Owner { kind: owner_controller_type, name: owner_controller_name, ..Owner::default() }),
    };
    let mut references = metadata.owner_references.iter().flatten();
    let goes_with = references.find(|reference| reference.kind == "Pod" && reference.name == pod.name);
    let goes_with = goes_with.map(|reference| reference.uid.clone());
    let interfaces = ips.into_iter().map(interface).collect::<Result<_, _>>()?;
    Ok(Endpoint { pod, node, owner, goes_with, interfaces })
}

fn interface(entry: crd::Interface) -> Result<Interface, String> {
    let crd::Interface {
        interface,
        ipv4,
        ipv6,
        ipv4_pool,
        ipv6_pool,
        vlan,
        mac,
        ipv4_gateway,
        ipv6_gateway,
        clean_gateway,
        routes,
        bind_id,
    } = entry;
    let addresses =
        [assigned(Family::V4, ipv4, ipv4_pool, ipv4_gateway)?, assigned(Family::V6, ipv6, ipv6_pool, ipv6_gateway)?];
    let vlan = match vlan.filter(|vlan| *vlan != 0) {
        None => None,
        Some(vlan) => {
            let legal = u16::try_from(vlan).ok().filter(|vlan| *vlan <= VLAN_MAX);
            Some(legal.ok_or_else(|| format!("{interface}: {vlan} is no VLAN id"))?)
        }
    };
    Ok(Interface {
        name: interface,
        addresses: addresses.into_iter().flatten().collect(),
        vlan,
        mac,
        clean_gateway: clean_gateway.unwrap_or_default(),
        routes: routes.into_iter().map(|ip_pool::Route { dst, gw }| Route { dst, gw }).collect(),
        bind_id,
    })
}

fn assigned(
    family: Family,
    text: Option<String>,
    pool: Option<String>,
    gateway: Option<String>,
) -> Result<Option<Assigned>, String> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    let wrong = || format!("{text} is no {family} address with a prefix");
    let (address, prefix) = text.split_once('/').ok_or_else(wrong)?;
    let address = address.parse::<Address>().ok().filter(|address| address.family() == family).ok_or_else(wrong)?;
    let prefix = prefix.parse::<u8>().ok().filter(|prefix| *prefix <= family.bits()).ok_or_else(wrong)?;
    let gateway = match gateway.filter(|gateway| !gateway.is_empty()) {
        None => None,
        Some(gateway) => Some(gateway.parse().map_err(|error| format!("gateway {gateway}: {error}"))?),
    };
    Ok(Some(Assigned { address, prefix, pool: pool.unwrap_or_default(), gateway }))
}

/// A merge patch that makes an endpoint this one, if it still has `replaces`; without, a new object. Labels, annotations,
/// finalizers and fields of others stay.
pub(crate) fn written(endpoint: &Endpoint, replaces: Option<&Version>) -> Result<Value, String> {
    let Endpoint { pod, node, owner, goes_with, interfaces } = endpoint;
    let references: Vec<Value> = goes_with.iter().map(|uid| reference(&pod.name, uid)).collect();
    let (kind, name) = match owner {
        None => (NO_OWNER, pod.name.as_str()),
        Some(owner) => (owner.kind.as_str(), owner.name.as_str()),
    };
    let status = EndpointStatus {
        current: crd::Current {
            uid: pod.uid.clone(),
            node: node.clone(),
            ips: interfaces.iter().map(entry).collect::<Result<_, _>>()?,
        },
        owner_controller_type: kind.to_owned(),
        owner_controller_name: name.to_owned(),
    };
    let metadata = match replaces {
        None => json!({
            "namespace": pod.namespace, "name": pod.name, "annotations": {REPLACES: REPLACES_NOTHING}, "ownerReferences": references,
        }),
        Some(Version { uid, resource }) => json!({
            "uid": uid, "resourceVersion": resource, "annotations": {REPLACES: resource}, "ownerReferences": references,
        }),
    };
    Ok(json!({
        "apiVersion": SpiderEndpoint::api_version(&()),
        "kind": SpiderEndpoint::kind(&()),
        "metadata": metadata,
        "status": status,
    }))
}

fn reference(name: &str, uid: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid})
}

fn entry(interface: &Interface) -> Result<crd::Interface, String> {
    let Interface { name, addresses, vlan, mac, clean_gateway, routes, bind_id } = interface;
    let mut entry = crd::Interface {
        interface: name.clone(),
        vlan: vlan.map(i64::from),
        mac: mac.clone(),
        clean_gateway: Some(*clean_gateway),
        routes: routes.iter().map(|Route { dst, gw }| ip_pool::Route { dst: dst.clone(), gw: gw.clone() }).collect(),
        bind_id: bind_id.clone(),
        ..crd::Interface::default()
    };
    for Assigned { address, prefix, pool, gateway } in addresses {
        let (own, from, via) = match IpAddr::from(*address) {
            IpAddr::V4(_) => (&mut entry.ipv4, &mut entry.ipv4_pool, &mut entry.ipv4_gateway),
            IpAddr::V6(_) => (&mut entry.ipv6, &mut entry.ipv6_pool, &mut entry.ipv6_gateway),
        };
        if let Some(first) = own {
            return Err(format!("{name} cannot have both {first} and {address}"));
        }
        *own = Some(format!("{address}/{prefix}"));
        *from = Some(pool.clone());
        *via = gateway.map(|gateway| gateway.to_string());
    }
    Ok(entry)
}

#[cfg(test)]
mod tests;
