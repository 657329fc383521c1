//! The answer to an allocate, read without any type of ours.

use crate::mac::Mac;
use ipam_core::Address;
use serde_json::Value;

/// One address of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Got {
    pub(super) address: Address,
    pub(super) parent: Value,
    pub(super) subnet: Value,
    pub(super) mac: Value,
    pub(super) vlan: Value,
}

/// Reads an answer that must have exactly these addresses, in their order.
pub(super) fn read(text: &str, asked: &[Address]) -> Result<Vec<Got>, String> {
    let answer: Value = serde_json::from_str(text).map_err(|why| format!("it is no JSON ({why})"))?;
    let list = answer.get("iaasIPsAllocationResponse").ok_or("it has no iaasIPsAllocationResponse")?;
    let list = list.as_array().ok_or("iaasIPsAllocationResponse is no list")?;
    let mut got: Vec<Got> = Vec::with_capacity(list.len());
    for entry in list {
        let text = entry.get("ipAddress").and_then(Value::as_str).ok_or("an entry has no text ipAddress")?;
        let address = asked.iter().find(|address| address.to_string() == text);
        let Some(address) = address.copied() else {
            return Err(format!("{text} is in the answer, but was not asked for in these characters"));
        };
        if got.iter().any(|got| got.address == address) {
            return Err(format!("{text} is there twice"));
        }
        let field = |name: &str| entry.get(name).cloned().unwrap_or_default();
        let (parent, subnet) = (field("parentNicMac"), field("subnet"));
        got.push(Got { address, parent, subnet, mac: field("macAddress"), vlan: field("vlanId") });
    }
    let in_order = asked.iter().map(|address| got.iter().find(|got| got.address == *address).cloned().ok_or(address));
    let complete: Result<_, _> = in_order.collect();
    complete.map_err(|missing| format!("{missing} is not in it"))
}

impl Got {
    /// What the pod's interface is to have.
    pub(super) fn attributes(&self) -> Result<(Mac, u16), String> {
        let mac = match self.mac.as_str() {
            None | Some("") => return Err("macAddress is missing".to_owned()),
            Some(text) => text.parse::<Mac>().map_err(|why| format!("macAddress {text:?}: {why}"))?,
        };
        if !mac.is_of_one() {
            return Err(format!("macAddress {mac} is of a group or zero"));
        }
        if self.vlan.is_null() {
            return Err("vlanId is missing".to_owned());
        }
        let vlan = self.vlan.as_u64().and_then(|vlan| u16::try_from(vlan).ok());
        let vlan = vlan.filter(|vlan| (1..=crate::cloud::LAST_VLAN).contains(vlan));
        Ok((mac, vlan.ok_or_else(|| format!("vlanId {} is no number from 1 to 4094", self.vlan))?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn addresses(texts: &[&str]) -> Vec<Address> {
        texts.iter().map(|text| text.parse().expect("an address")).collect()
    }

    #[test]
    fn exactly_what_was_asked() {
        let entry = |address: &str| json!({"ipAddress": address, "vlanId": 7});
        let read = |entries: Vec<Value>| {
            let text = json!({ "iaasIPsAllocationResponse": entries }).to_string();
            read(&text, &addresses(&["10.0.0.1", "10.0.0.2"]))
        };
        let got = read(vec![entry("10.0.0.2"), entry("10.0.0.1")]).expect("both");
        assert_eq!(got[0].address.to_string(), "10.0.0.1");
        for (entries, why) in [
            (vec![entry("10.0.0.1")], "10.0.0.2 is not in it"),
            (vec![entry("10.0.0.1"), entry("10.0.0.3")], "10.0.0.3 is in the answer"),
            (vec![entry("10.0.0.1"), entry("10.0.0.02")], "10.0.0.02 is in the answer"),
            (vec![entry("10.0.0.1"), entry("10.0.0.1")], "10.0.0.1 is there twice"),
            (vec![json!({})], "an entry has no text"),
        ] {
            let error = read(entries).expect_err(why);
            assert!(error.starts_with(why), "{error}");
        }
        for text in ["", "{}", r#"{"iaasIPsAllocationResponse":{}}"#] {
            assert!(super::read(text, &[]).is_err(), "{text}");
        }
    }

    #[test]
    fn what_an_interface_can_have() {
        let judge = |mac: Value, vlan: Value| {
            let address = addresses(&["10.0.0.1"])[0];
            Got { address, parent: Value::Null, subnet: Value::Null, mac, vlan }.attributes()
        };
        assert!(judge(json!("02:00:00:00:00:01"), json!(4094)).is_ok());
        for (mac, vlan) in [
            (Value::Null, json!(1)),
            (json!(""), json!(1)),
            (json!("02:00:00:00:00"), json!(1)),
            (json!("ff:ff:ff:ff:ff:ff"), json!(1)),
            (json!("02:00:00:00:00:01"), Value::Null),
            (json!("02:00:00:00:00:01"), json!(0)),
            (json!("02:00:00:00:00:01"), json!(4095)),
            (json!("02:00:00:00:00:01"), json!(-1)),
            (json!("02:00:00:00:00:01"), json!("1")),
            (json!("02:00:00:00:00:01"), json!(1.5)),
        ] {
            assert!(judge(mac.clone(), vlan.clone()).is_err(), "{mac} {vlan}");
        }
    }
}
