//! Values to what plugins read.

use super::request::Invalid;
use ipam_core::{AddError, Address, Assigned, Family, Interface};
use k8s_api::conf::Detection;
use proto::agent::{Detect, Fault};

/// Routes are complete: a default one through each gateway unless the interface shall have none.
pub(super) fn interface(interface: Interface) -> proto::agent::Interface {
    let Interface { name, addresses, vlan, mac, clean_gateway, routes, bind_id: _ } = interface;
    let defaults = addresses.iter().filter(|_| !clean_gateway).filter_map(default_route);
    let further = routes.into_iter().map(|route| proto::agent::Route { dst: route.dst, gw: route.gw });
    proto::agent::Interface {
        routes: defaults.chain(further).collect(),
        name,
        addresses: addresses.into_iter().map(address).collect(),
        mac: mac.unwrap_or_default(),
        vlan: vlan.map(u32::from).unwrap_or_default(),
    }
}

fn default_route(assigned: &Assigned) -> Option<proto::agent::Route> {
    let dst = match assigned.address.family() {
        Family::V4 => "0.0.0.0/0",
        Family::V6 => "::/0",
    };
    Some(proto::agent::Route { dst: dst.to_owned(), gw: assigned.gateway?.to_string() })
}

fn address(assigned: Assigned) -> proto::agent::Address {
    let Assigned { address, prefix, pool, gateway } = assigned;
    let gateway = gateway.as_ref().map(Address::to_string).unwrap_or_default();
    proto::agent::Address { cidr: format!("{address}/{prefix}"), gateway, pool }
}

pub(super) fn detect(detection: Detection) -> Detect {
    let Detection { ip_conflict, gateway } = detection;
    Detect { ip_conflict, gateway }
}

/// Numbers are those of `agent.proto`.
pub(super) fn fault(error: &AddError) -> Fault {
    let code = match error {
        AddError::NotYet(_) => AGAIN,
        AddError::Store { .. } | AddError::NoPool(_) if error.again() => AGAIN,
        // The rest stays as it is until somebody changes pods, pools, cloud or rights.
        AddError::AgentTimeout { .. } => 7,
        AddError::PodNotLive { .. } => 101,
        AddError::NoPool(_) | AddError::PoolGone { .. } | AddError::NotIpv4 { .. } => 102,
        AddError::Full { .. } => 103,
        AddError::Budget { .. } => 104,
        AddError::Provider { .. } => 105,
        AddError::Store { .. } => 106,
        AddError::NoParent { .. } => 109,
    };
    let details = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    Fault { code, msg: error.to_string(), details }
}

const AGAIN: u32 = 11;

pub(super) fn again(why: &str) -> Fault {
    Fault { code: AGAIN, msg: why.to_owned(), details: String::new() }
}

pub(super) fn invalid(why: &Invalid) -> Fault {
    Fault { code: 4, msg: why.to_string(), details: String::new() }
}

pub(super) fn not_available(why: String) -> Fault {
    Fault { code: 50, msg: why, details: String::new() }
}

pub(super) fn failed(why: String) -> Fault {
    Fault { code: 100, msg: why, details: String::new() }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use ipam_core::{NotYet, Route, Step, StoreError};

    pub(in super::super) fn both_families() -> Interface {
        let assigned = |address: &str, prefix, gateway: &str| Assigned {
            address: address.parse().expect("an address"),
            prefix,
            pool: "p".to_owned(),
            gateway: Some(gateway.parse().expect("an address")),
        };
        Interface {
            name: "net1".to_owned(),
            addresses: vec![assigned("172.91.0.7", 24, "172.91.0.1"), assigned("fd00::7", 64, "fd00::1")],
            vlan: Some(7),
            mac: Some("02:00:00:00:00:01".to_owned()),
            clean_gateway: false,
            routes: vec![Route { dst: "10.0.0.0/8".to_owned(), gw: "172.91.0.2".to_owned() }],
            bind_id: Some("bind".to_owned()),
        }
    }

    #[test]
    fn routes_are_complete() {
        let dsts = |interface: Interface| {
            let routes = super::interface(interface).routes.into_iter();
            routes.map(|route| route.dst).collect::<Vec<_>>()
        };
        assert_eq!(dsts(both_families()), ["0.0.0.0/0", "::/0", "10.0.0.0/8"]);
        assert_eq!(dsts(Interface { clean_gateway: true, ..both_families() }), ["10.0.0.0/8"]);
        let answer = interface(both_families());
        assert_eq!((answer.addresses[1].cidr.as_str(), answer.vlan), ("fd00::7/64", 7));
    }

    #[test]
    fn what_may_pass_is_code_11() {
        let store = |source| AddError::Store { step: Step::Reserve, source };
        assert_eq!(fault(&AddError::NotYet(NotYet::Busy)).code, 11);
        assert_eq!(fault(&store(StoreError::Unknown("x".to_owned()))).code, 11);
        let refused = fault(&store(StoreError::Refused("policy".to_owned())));
        assert_eq!((refused.code, refused.details.as_str()), (106, "the API server refuses: policy"));
    }
}
