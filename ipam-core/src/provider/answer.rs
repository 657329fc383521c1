//! What a provider's 2xx to a call that binds says, and whether it can be believed.

use super::contract::{AllocateAnswer, BoundItem};
use super::{Bound, Call, mac};
use crate::Address;

/// Ids of VLANs that carry tagged frames of a network of their own (IEEE 802.1Q: 0 is none, 4095 is reserved).
const VLANS: std::ops::RangeInclusive<i64> = 1..=4094;

/// A 2xx whose content cannot be used. What it bound is released at once.
#[derive(Debug, thiserror::Error)]
pub enum BadAnswer {
    /// No JSON, or not that of the contract.
    #[error("failed to unmarshal allocate response: {0}")]
    Json(String),
    /// An address that is none.
    #[error("iaas response has {0:?} as ipAddress, which is no address")]
    NoAddress(String),
    /// Something else was bound.
    #[error("iaas response contains unknown IP {0}")]
    UnknownIp(Address),
    /// Twice the same.
    #[error("iaas response contains IP {0} more than once")]
    Twice(Address),
    /// Not what was asked for.
    #[error("iaas response does not contain IP {0}, which was asked for")]
    Missing(Address),
    /// Bound somewhere else.
    #[error("iaas response has {field} {got:?} for IP {address}: {asked} was asked for")]
    Other {
        /// Key of the answer.
        field: &'static str,
        /// Of what.
        address: Address,
        /// The answer.
        got: String,
        /// The question.
        asked: String,
    },
    /// No interface can have it.
    #[error(
        "iaas response has the macAddress {mac:?} for IP {address}: a MAC address of one device, as 02:00:5e:10:00:01, is needed"
    )]
    Mac {
        /// Of what.
        address: Address,
        /// The answer.
        mac: String,
    },
    /// No interface can have it.
    #[error("iaas response has the vlanId {vlan} for IP {address}: 1 to 4094 are VLANs")]
    Vlan {
        /// Of what.
        address: Address,
        /// The answer.
        vlan: i64,
    },
}

/// Reads the body of a 2xx: the address that was asked for, that alone and once.
pub fn bound(body: &[u8], call: &Call) -> Result<Bound, BadAnswer> {
    let answer: AllocateAnswer = serde_json::from_slice(body).map_err(|error| BadAnswer::Json(error.to_string()))?;
    let mut found = None;
    for item in answer.items {
        let address: Address =
            item.ip_address.parse().map_err(|_| BadAnswer::NoAddress(super::text::printable(&item.ip_address)))?;
        if address != call.address {
            return Err(BadAnswer::UnknownIp(address));
        }
        if found.replace(item).is_some() {
            return Err(BadAnswer::Twice(address));
        }
    }
    read(&found.ok_or(BadAnswer::Missing(call.address))?, call)
}

fn read(item: &BoundItem, call: &Call) -> Result<Bound, BadAnswer> {
    let address = call.address;
    let other = |field, got: &str, asked: &str| BadAnswer::Other {
        field,
        address,
        got: super::text::printable(got),
        asked: asked.to_owned(),
    };
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    if let Some(subnet) = given(&item.subnet).filter(|subnet| *subnet != call.subnet) {
        return Err(other("subnet", &subnet, &call.subnet));
    }
    if let Some(parent) = given(&item.parent_nic_mac).filter(|mac| !mac.eq_ignore_ascii_case(&call.parent_nic_mac)) {
        return Err(other("parentNicMac", &parent, &call.parent_nic_mac));
    }
    let mac = match given(&item.mac_address) {
        None => None,
        Some(text) => {
            let mac = mac::read(&text).ok_or_else(|| BadAnswer::Mac { address, mac: super::text::printable(&text) })?;
            Some(mac)
        }
    };
    let vlan = match item.vlan_id.unwrap_or_default() {
        0 => None,
        vlan => {
            let id = u16::try_from(vlan).ok().filter(|_| VLANS.contains(&vlan));
            Some(id.ok_or(BadAnswer::Vlan { address, vlan })?)
        }
    };
    Ok(Bound { mac, vlan })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Deadline, Pod};
    use serde_json::{Value, json};
    use std::time::Duration;

    fn judged(body: &[u8]) -> Result<Bound, String> {
        let call = Call {
            server: "http://x".to_owned(),
            pod: Pod::default(),
            node: "n".to_owned(),
            parent_nic_mac: "fa:16:3e:11:22:33".to_owned(),
            address: "10.0.0.10".parse().expect("an address"),
            subnet: "10.0.0.0/24".to_owned(),
            deadline: Deadline::new(Duration::ZERO, Duration::from_secs(50), None),
        };
        bound(body, &call).map_err(|bad| bad.to_string())
    }

    fn of(items: &Value) -> Result<Bound, String> {
        judged(json!({"podName": "p", "iaasIPsAllocationResponse": items, "more": 1}).to_string().as_bytes())
    }

    fn item(more: &Value) -> Value {
        let mut item = json!({"parentNicMac": "fa:16:3e:11:22:33", "subnet": "10.0.0.0/24", "ipAddress": "10.0.0.10",
            "macAddress": "fa:16:3e:AA:bb:cc", "vlanId": 100});
        for (key, value) in more.as_object().expect("a map") {
            item[key] = value.clone();
        }
        item
    }

    #[test]
    fn a_good_answer_is_read() {
        let whole = Bound { mac: Some("fa:16:3e:aa:bb:cc".to_owned()), vlan: Some(100) };
        assert_eq!(of(&json!([item(&json!({}))])), Ok(whole.clone()));
        assert_eq!(of(&json!([item(&json!({"parentNicMac": "FA:16:3E:11:22:33", "x": {}}))])), Ok(whole.clone()));
        assert_eq!(of(&json!([item(&json!({"parentNicMac": null, "subnet": ""}))])), Ok(whole));
        for empty in [json!({"macAddress": "", "vlanId": 0}), json!({"macAddress": null, "vlanId": null})] {
            assert_eq!(of(&json!([item(&empty)])), Ok(Bound::default()));
        }
        assert_eq!(of(&json!([{"ipAddress": "10.0.0.10"}])), Ok(Bound::default()));
    }

    #[test]
    fn a_bad_one_is_told_from_it() {
        for (items, says) in [
            (json!([]), "does not contain IP 10.0.0.10"),
            (json!([item(&json!({"ipAddress": "10.0.0.11"}))]), "contains unknown IP 10.0.0.11"),
            (json!([item(&json!({})), item(&json!({"ipAddress": "10.0.0.11"}))]), "contains unknown IP 10.0.0.11"),
            (json!([item(&json!({})), item(&json!({}))]), "10.0.0.10 more than once"),
            (json!([item(&json!({"ipAddress": "10.0.0.010"}))]), "which is no address"),
            (json!([item(&json!({"ipAddress": "10.0.0.10/24"}))]), "which is no address"),
            (json!([item(&json!({"ipAddress": ""}))]), "which is no address"),
            (json!([item(&json!({"subnet": "10.0.1.0/24"}))]), "subnet \"10.0.1.0/24\""),
            (json!([item(&json!({"parentNicMac": "fa:16:3e:11:22:34"}))]), "parentNicMac"),
            (json!([item(&json!({"macAddress": "01:00:5e:00:00:01"}))]), "macAddress"),
            (json!([item(&json!({"macAddress": "eth0\u{7}"}))]), "macAddress"),
            (json!([item(&json!({"vlanId": 4095}))]), "vlanId 4095"),
            (json!([item(&json!({"vlanId": -1}))]), "vlanId -1"),
            (json!([item(&json!({"vlanId": 65636}))]), "vlanId 65636"),
            (json!([item(&json!({"vlanId": "100"}))]), "failed to unmarshal allocate response"),
            (json!([item(&json!({"vlanId": 1.5}))]), "failed to unmarshal allocate response"),
            (json!(null), "failed to unmarshal allocate response"),
        ] {
            let error = of(&items).expect_err("bad");
            assert!(error.contains(says), "{items}: {error}");
        }
        for body in ["", "null", "[]", "{}", "<html>", "{\"iaasIPsAllocationResponse\": [", "\u{0}"] {
            assert!(judged(body.as_bytes()).is_err_and(|error| error.starts_with("failed to unmarshal")), "{body:?}");
        }
    }
}
