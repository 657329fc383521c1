//! What the network's configuration says to the plugin `vlan`.

use crate::args::Verb;
use crate::config::{self, Config};
use crate::error::{Code, Fault};
use crate::version::Version;
use serde::Deserialize;
use serde_json::Value;

/// A configuration that can be worked with.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Network {
    /// What it has in common with the plugin `spiderpool`.
    pub(super) common: Config,
    pub(super) master: String,
    pub(super) source: Source,
    /// 0: the master's.
    pub(super) mtu: u32,
    /// The master is in the pod's namespace.
    pub(super) is_in_pod: bool,
    pub(super) dns: Option<Value>,
    pub(super) previous: Option<Previous>,
}

/// Who says VLAN and addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The agent, which asks the provider.
    Provider,
    /// The configuration the one, the IPAM plugin of this name the other.
    Manual { vlan: u16, ipam: String },
}

/// The result of an ADD.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Previous {
    #[serde(default)]
    pub(super) interfaces: Vec<PreviousInterface>,
    #[serde(default)]
    pub(super) ips: Vec<PreviousAddress>,
    #[serde(default)]
    pub(super) routes: Vec<PreviousRoute>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct PreviousInterface {
    pub(super) name: String,
    #[serde(default)]
    pub(super) mac: String,
    #[serde(default)]
    pub(super) mtu: u32,
    #[serde(default)]
    pub(super) sandbox: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct PreviousAddress {
    pub(super) address: String,
    pub(super) interface: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct PreviousRoute {
    pub(super) dst: String,
}

/// As it is written.
#[derive(Deserialize)]
struct Written {
    mtu: Option<i64>,
    #[serde(rename = "linkInContainer")]
    is_in_pod: Option<bool>,
    dns: Option<Value>,
    ipam: Option<WrittenIpam>,
}

#[derive(Deserialize)]
struct WrittenIpam {
    #[serde(rename = "type")]
    kind: Option<String>,
}

#[derive(Deserialize)]
struct Before {
    #[serde(rename = "prevResult")]
    previous: Option<Previous>,
}

/// The IPAM plugin that knows of providers.
const OURS: &str = "spiderpool";

impl Network {
    pub(super) fn parse(verb: Verb, version: Version, value: &Value) -> Result<Self, Fault> {
        let mut value = value.clone();
        // Whatever this program is called on a node, it makes VLAN links.
        if let Some(object) = value.as_object_mut() {
            object.insert("type".to_owned(), "vlan".into());
        }
        let common = Config::parse(verb, version, &value)?;
        match Self::strict(verb, common.clone(), &value) {
            // What was set up under a better configuration has to go nevertheless.
            Err(_) if verb == Verb::Del => Ok(Self::rest(common, &value)),
            other => other,
        }
    }

    fn strict(verb: Verb, common: Config, value: &Value) -> Result<Self, Fault> {
        let Written { mtu, is_in_pod, dns, ipam } = config::part(value)?;
        if common.link.master.is_empty() {
            return Err(wrong("\"master\" field is required: the interface of the node that carries the VLANs"));
        }
        let ipam = ipam.and_then(|ipam| ipam.kind).filter(|kind| !kind.is_empty());
        let ipam = ipam.ok_or_else(|| wrong("\"ipam.type\" is required: the plugin that gives addresses"))?;
        if is_no_plugin(&ipam) {
            return Err(wrong(format!(
                "\"ipam.type\" is {ipam:?}: the name of a plugin that gives addresses is expected"
            )));
        }
        let source = source(common.link.vlan_id, &common.link.vlan_mode, ipam)?;
        let mtu = mtu.unwrap_or_default();
        let mtu = u32::try_from(mtu).map_err(|_| wrong(format!("invalid mtu {mtu}: 0, or at most the master's")))?;
        let previous = match verb {
            Verb::Check => {
                let previous = config::part::<Before>(value)?.previous;
                Some(previous.ok_or_else(|| wrong("\"prevResult\" is required for CHECK: what the ADD answered"))?)
            }
            _ => None,
        };
        let dns = dns.filter(|dns| dns.as_object().is_some_and(|dns| !dns.is_empty()));
        let master = common.link.master.clone();
        Ok(Self { common, master, source, mtu, is_in_pod: is_in_pod.unwrap_or_default(), dns, previous })
    }

    fn rest(common: Config, value: &Value) -> Self {
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (master, ipam) = (text("/master"), text("/ipam/type"));
        // No ADD was done with such a one.
        let ipam = if is_no_plugin(&ipam) { String::new() } else { ipam };
        let vlan = value.get("vlanId").filter(|id| !id.is_null());
        let source = match vlan {
            None if ipam == OURS || ipam.is_empty() => Source::Provider,
            vlan => {
                let vlan = vlan.and_then(Value::as_u64).and_then(|id| u16::try_from(id).ok());
                Source::Manual { vlan: vlan.unwrap_or_default(), ipam }
            }
        };
        let is_in_pod = value.get("linkInContainer").and_then(Value::as_bool).unwrap_or_default();
        Self { common, master, source, mtu: 0, is_in_pod, dns: None, previous: None }
    }
}

/// Nothing of another folder is run, and this program not by itself.
fn is_no_plugin(name: &str) -> bool {
    name.contains('/') || name.starts_with('.') || name == "vlan"
}

fn source(vlan: Option<u16>, mode: &str, ipam: String) -> Result<Source, Fault> {
    match (vlan, mode) {
        (None, "manual") => Err(wrong("vlanId must not be nil when vlanMode is manual")),
        (Some(_), "auto") => Err(wrong("vlanId must not be specified when vlanMode is auto")),
        (Some(vlan), _) => Ok(Source::Manual { vlan, ipam }),
        (None, _) if ipam == OURS => Ok(Source::Provider),
        (None, _) => {
            Err(wrong(format!("\"vlanId\" is required with ipam {ipam}: {OURS} alone gives a VLAN with the addresses")))
        }
    }
}

fn wrong(msg: impl Into<String>) -> Fault {
    Fault::new(Code::Config, msg)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn good() -> Value {
        json!({
            "cniVersion": "1.0.0", "name": "n", "type": "vlan", "master": "eth1", "vlanId": 7, "mtu": 1400,
            "linkInContainer": true, "dns": {"nameservers": ["10.0.0.1"]}, "ipam": {"type": "host-local", "subnet": "x"},
        })
    }

    fn parse(verb: Verb, value: &Value) -> Result<Network, Fault> {
        Network::parse(verb, Version::V1_0_0, value)
    }

    fn with(key: &str, value: Value) -> Value {
        let mut text = good();
        text[key] = value;
        text
    }

    #[test]
    fn every_key_is_read() {
        let network = parse(Verb::Add, &good()).expect("good");
        assert_eq!(network.source, Source::Manual { vlan: 7, ipam: "host-local".into() });
        assert_eq!((network.master.as_str(), network.mtu, network.is_in_pod), ("eth1", 1400, true));
        assert_eq!(network.dns, Some(json!({"nameservers": ["10.0.0.1"]})));
    }

    #[test]
    fn a_vlan_that_is_written_is_manual_be_it_0() {
        let ours = |vlan: Value, mode: Value| {
            let mut text = with("ipam", json!({"type": "spiderpool"}));
            (text["vlanId"], text["vlanMode"]) = (vlan, mode);
            parse(Verb::Add, &text).map(|network| network.source).map_err(|fault| fault.msg)
        };
        let manual = |vlan| Ok(Source::Manual { vlan, ipam: "spiderpool".into() });
        assert_eq!(ours(json!(0), json!(null)), manual(0));
        assert_eq!(ours(json!(4094), json!("manual")), manual(4094));
        assert_eq!(ours(json!(null), json!(null)), Ok(Source::Provider));
        assert_eq!(ours(json!(null), json!("auto")), Ok(Source::Provider));
        assert_eq!(ours(json!(4095), json!(null)), Err("invalid vlanId 4095 (must be 0-4094)".into()));
        assert!(ours(json!(null), json!("manual")).expect_err("half").contains("vlanId must not be nil"));
        assert!(ours(json!(5), json!("auto")).expect_err("both").contains("vlanId must not be specified"));
    }

    #[test]
    fn what_is_wrong_has_code_7_and_a_del_goes_on() {
        for (key, value, text) in [
            ("master", json!(null), "\"master\" field is required"),
            ("master", json!(""), "\"master\" field is required"),
            ("vlanId", json!(-1), "invalid vlanId -1 (must be 0-4094)"),
            ("vlanId", json!(70_000), "invalid vlanId 70000"),
            ("vlanId", json!(null), "\"vlanId\" is required with ipam host-local"),
            ("mtu", json!(-1), "invalid mtu -1"),
            ("mtu", json!("x"), "configuration"),
            ("ipam", json!(null), "\"ipam.type\" is required"),
            ("ipam", json!({"type": "../sh"}), "ipam.type"),
            ("ipam", json!({"type": "vlan"}), "ipam.type"),
            ("linkInContainer", json!("no"), "configuration"),
        ] {
            let text_of = with(key, value);
            let fault = parse(Verb::Add, &text_of).expect_err(text);
            assert!(fault.code == 7 && fault.msg.contains(text), "{fault:?}");
            assert!(parse(Verb::Del, &text_of).is_ok(), "{text}");
        }
        let source = |value| parse(Verb::Del, &value).expect("goes on").source;
        assert_eq!(source(with("vlanId", json!("x"))), Source::Manual { vlan: 0, ipam: "host-local".into() });
        let nothing = Source::Manual { vlan: 7, ipam: String::new() };
        for ipam in [json!({"type": "../sh"}), json!({"type": "vlan"}), json!({}), json!(null)] {
            assert_eq!(source(with("ipam", ipam)), nothing, "no ADD was done with it, so nothing is run");
        }
    }

    #[test]
    fn a_check_needs_a_result() {
        assert!(parse(Verb::Check, &good()).expect_err("none").msg.contains("prevResult"));
        let previous = json!({
            "interfaces": [{"name": "net1", "mac": "m", "sandbox": "/s"}], "ips": [{"address": "10.0.0.1/8", "interface": 0}],
            "routes": [{"dst": "0.0.0.0/0"}],
        });
        let network = parse(Verb::Check, &with("prevResult", previous)).expect("good");
        assert_eq!(network.previous.expect("there").interfaces[0].sandbox, "/s");
    }
}
