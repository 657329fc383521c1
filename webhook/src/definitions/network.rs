//! The CNI configuration of an attachment.

use crate::cni::{self, COORDINATOR, IFACER, NotCni};
use k8s_api::crd::multus_config::{Bond, CniType, MultusConfigSpec, Pools, SubInterface, Vlan, VlanMode};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// An attachment that no configuration can be made of.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unusable {
    #[error("no spec.{0} specified")]
    NoBlock(&'static str),
    #[error("master can't be empty")]
    NoMaster,
    #[error("bond name can't be empty: {0} masters are the members of a bond")]
    NoBond(usize),
    #[error("vlanId must not be nil when vlanMode is manual")]
    NoVlanId,
    #[error("vlanId must not be specified when vlanMode is auto")]
    TwoVlanIds,
    #[error("customCniConfig isn't a CNI configuration")]
    Custom(#[source] NotCni),
    #[error("spec.chainCNIJsonData[{0}] isn't a CNI configuration")]
    Chained(usize, #[source] NotCni),
}

/// The plugins of a network, and those that are left out since no node has them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Chain {
    pub(super) plugins: Vec<Value>,
    pub(super) omitted: Vec<&'static str>,
    /// Resource of the device that Multus hands to the plugin.
    pub(super) device: Option<String>,
}

/// The chain of an attachment. `present` are the plugins that nodes have besides ours.
///
/// The bond of several masters, and a VLAN between the master and a macvlan or ipvlan interface, must exist on the node
/// unless `ifacer` is there to make them.
pub(crate) fn chain(spec: &MultusConfigSpec, present: &BTreeSet<String>) -> Result<Chain, Unusable> {
    let Main { host, plugins: main, device } = main(spec)?;
    let mut plugins: Vec<Value> = host.filter(|_| present.contains(IFACER)).into_iter().chain(main).collect();
    for (n, text) in spec.chain.iter().enumerate() {
        plugins.push(cni::plugin(text).map_err(|fault| Unusable::Chained(n, fault))?);
    }
    let mut omitted = Vec::new();
    if spec.enable_coordinator {
        if present.contains(COORDINATOR) {
            let mut entry = spec.coordinator.clone().unwrap_or_default();
            entry.insert("type".to_owned(), COORDINATOR.into());
            plugins.push(entry.into());
        } else {
            omitted.push(COORDINATOR);
        }
    }
    Ok(Chain { plugins, omitted, device })
}

/// What makes the interface.
#[derive(Default)]
struct Main {
    /// The entry of `ifacer` that makes what lies below it.
    host: Option<Value>,
    plugins: Vec<Value>,
    device: Option<String>,
}

/// Source of the keys: the documentation of each plugin; `vlanMode`, and `vlanId` in manual mode alone, are those of our
/// `vlan`.
fn main(spec: &MultusConfigSpec) -> Result<Main, Unusable> {
    let with = |mut keys: Map<String, Value>, pools: Option<&Pools>| {
        if !spec.disable_ipam {
            keys.insert("ipam".to_owned(), ipam(pools));
        }
        vec![Value::from(keys)]
    };
    match spec.cni_type {
        CniType::Vlan => {
            let vlan = spec.vlan.as_ref().ok_or(Unusable::NoBlock("vlan"))?;
            let (below, host) = parent(&vlan.master, vlan.bond.as_ref(), None)?;
            let mut keys = interface("vlan", &below, vlan.mtu);
            keys.extend(vlan_keys(vlan)?);
            Ok(Main { host, plugins: with(keys, vlan.ippools.as_ref()), device: None })
        }
        CniType::Macvlan => {
            let block = spec.macvlan.as_ref().ok_or(Unusable::NoBlock("macvlan"))?;
            let (keys, host) = sub_interface("macvlan", "bridge", block)?;
            Ok(Main { host, plugins: with(keys, block.ippools.as_ref()), device: None })
        }
        CniType::Ipvlan => {
            let block = spec.ipvlan.as_ref().ok_or(Unusable::NoBlock("ipvlan"))?;
            let (keys, host) = sub_interface("ipvlan", "l2", block)?;
            Ok(Main { host, plugins: with(keys, block.ippools.as_ref()), device: None })
        }
        CniType::Ipoib => {
            let block = spec.ipoib.as_ref().ok_or(Unusable::NoBlock("ipoib"))?;
            if block.master.is_empty() {
                return Err(Unusable::NoMaster);
            }
            let keys = interface("ipoib", &block.master, None);
            Ok(Main { plugins: with(keys, block.ippools.as_ref()), ..Main::default() })
        }
        CniType::Sriov => {
            let block = spec.sriov.as_ref().ok_or(Unusable::NoBlock("sriov"))?;
            let mut plugins = with(renamed("sriov", block, &SRIOV), pools(block).as_ref());
            plugins.extend((block.get("enableRdma") == Some(&true.into())).then(|| json!({"type": "rdma"})));
            Ok(Main { host: None, plugins, device: text(block, "resourceName") })
        }
        CniType::IbSriov => {
            let block = spec.ibsriov.as_ref().ok_or(Unusable::NoBlock("ibsriov"))?;
            let plugins = with(renamed("ib-sriov", block, &IB_SRIOV), pools(block).as_ref());
            Ok(Main { host: None, plugins, device: text(block, "resourceName") })
        }
        CniType::Ovs => {
            let block = spec.ovs.as_ref().ok_or(Unusable::NoBlock("ovs"))?;
            Ok(Main { plugins: with(renamed("ovs", block, &OVS), pools(block).as_ref()), ..Main::default() })
        }
        CniType::Custom => {
            let plugins = cni::plugins(spec.custom_cni.as_deref().unwrap_or_default()).map_err(Unusable::Custom)?;
            Ok(Main { plugins, ..Main::default() })
        }
    }
}

/// Keys of a block, and what the plugin calls them.
type Keys<const N: usize> = [(&'static str, &'static str); N];

const SRIOV: Keys<4> =
    [("vlanID", "vlan"), ("minTxRateMbps", "min_tx_rate"), ("maxTxRateMbps", "max_tx_rate"), ("mtu", "mtu")];
const IB_SRIOV: Keys<4> = [
    ("pkey", "pkey"),
    ("linkState", "link_state"),
    ("rdmaIsolation", "rdmaIsolation"),
    ("ibKubernetesEnabled", "ibKubernetesEnabled"),
];
const OVS: Keys<5> =
    [("bridge", "bridge"), ("vlan", "vlan"), ("trunk", "trunk"), ("deviceID", "deviceID"), ("mtu", "mtu")];

fn interface(kind: &str, master: &str, mtu: Option<i32>) -> Map<String, Value> {
    let mut keys = Map::new();
    keys.insert("type".to_owned(), kind.into());
    keys.insert("master".to_owned(), master.into());
    if let Some(mtu) = mtu.filter(|mtu| *mtu != 0) {
        keys.insert("mtu".to_owned(), mtu.into());
    }
    keys
}

fn sub_interface(
    kind: &str,
    mode: &str,
    block: &SubInterface,
) -> Result<(Map<String, Value>, Option<Value>), Unusable> {
    let (below, ifacer) = parent(&block.master, block.bond.as_ref(), block.vlan_id)?;
    let mut keys = interface(kind, &below, block.mtu);
    keys.insert("mode".to_owned(), mode.into());
    Ok((keys, ifacer))
}

/// The interface of the node below the pod's, and the `ifacer` entry that would make it where it is no plain NIC.
fn parent(masters: &[String], bond: Option<&Bond>, vlan_id: Option<i32>) -> Result<(String, Option<Value>), Unusable> {
    let masters: Vec<&String> = masters.iter().filter(|master| !master.is_empty()).collect();
    let bond = bond.filter(|bond| !bond.name.is_empty());
    let base = match (masters.as_slice(), bond) {
        ([], _) => return Err(Unusable::NoMaster),
        ([master], _) => master.as_str(),
        (_, Some(bond)) => &bond.name,
        (several, None) => return Err(Unusable::NoBond(several.len())),
    };
    let vlan_id = vlan_id.filter(|id| *id != 0);
    let name = vlan_id.map_or_else(|| base.to_owned(), |id| format!("{base}.{id}"));
    if masters.len() < 2 && vlan_id.is_none() {
        return Ok((name, None));
    }
    let mut entry = json!({"type": IFACER, "interfaces": masters});
    if let (Some(bond), true, Some(entry)) = (bond, masters.len() > 1, entry.as_object_mut()) {
        entry.insert("bond".to_owned(), json!(bond));
    }
    if let (Some(id), Some(entry)) = (vlan_id, entry.as_object_mut()) {
        entry.insert("vlanID".to_owned(), id.into());
    }
    Ok((name, Some(entry)))
}

/// `vlanId` in manual mode alone: in the other the provider answers it.
fn vlan_keys(vlan: &Vlan) -> Result<Map<String, Value>, Unusable> {
    let (mode, id) = match (vlan.vlan_mode, vlan.vlan_id) {
        (None | Some(VlanMode::Manual), Some(id)) => ("manual", Some(id)),
        (Some(VlanMode::Manual), None) => return Err(Unusable::NoVlanId),
        (Some(VlanMode::Auto), Some(_)) => return Err(Unusable::TwoVlanIds),
        (None | Some(VlanMode::Auto), None) => ("auto", None),
    };
    let mut keys = Map::new();
    keys.insert("vlanMode".to_owned(), mode.into());
    keys.extend(id.map(|id| ("vlanId".to_owned(), id.into())));
    Ok(keys)
}

fn ipam(pools: Option<&Pools>) -> Value {
    let mut keys = Map::new();
    keys.insert("type".to_owned(), "spiderpool".into());
    if let Some(pools) = pools {
        for (key, names) in [("default_ipv4_ippool", &pools.ipv4), ("default_ipv6_ippool", &pools.ipv6)] {
            if !names.is_empty() {
                keys.insert(key.to_owned(), json!(names));
            }
        }
        if pools.match_master_subnet == Some(true) {
            keys.insert("match_master_subnet".to_owned(), true.into());
        }
    }
    keys.into()
}

/// A block whose keys go into the plugin's configuration under the plugin's own names.
fn renamed(kind: &str, block: &Map<String, Value>, keys: &[(&str, &str)]) -> Map<String, Value> {
    let mut main = Map::new();
    main.insert("type".to_owned(), kind.into());
    for (ours, theirs) in keys {
        if let Some(value) = block.get(*ours).filter(|value| !value.is_null()) {
            main.insert((*theirs).to_owned(), value.clone());
        }
    }
    main
}

fn text(block: &Map<String, Value>, key: &str) -> Option<String> {
    block.get(key)?.as_str().filter(|text| !text.is_empty()).map(ToOwned::to_owned)
}

fn pools(block: &Map<String, Value>) -> Option<Pools> {
    serde_json::from_value(block.get("ippools")?.clone()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chained(spec: Value, present: &[&str]) -> Result<Chain, Unusable> {
        let spec: MultusConfigSpec = serde_json::from_value(spec).expect("a spec");
        chain(&spec, &present.iter().map(ToString::to_string).collect())
    }

    fn plugins(spec: Value, present: &[&str]) -> Value {
        chained(spec, present).expect("a chain").plugins.into()
    }

    #[test]
    fn a_vlan_id_is_written_in_manual_mode_alone() {
        let ipam = json!({"type": "spiderpool"});
        for (block, mode, id) in [
            (json!({"master": ["eth1"]}), "auto", None),
            (json!({"master": ["eth1"], "vlanMode": "auto"}), "auto", None),
            (json!({"master": ["eth1"], "vlanID": 0}), "manual", Some(0)),
            (json!({"master": ["eth1"], "vlanMode": "manual", "vlanID": 7}), "manual", Some(7)),
        ] {
            let mut wanted = json!({"type": "vlan", "master": "eth1", "vlanMode": mode, "ipam": ipam});
            if let Some(id) = id {
                wanted["vlanId"] = id.into();
            }
            assert_eq!(plugins(json!({"cniType": "vlan", "vlan": block}), &[]), json!([wanted]), "{block}");
        }
    }

    #[test]
    fn a_bond_and_a_vlan_below_are_of_the_host() {
        let bond = json!({"name": "bond0", "mode": 1});
        let spec = json!({"cniType": "vlan", "vlan": {"master": ["eth1", "eth2"], "bond": bond, "mtu": 1400}});
        let main =
            json!({"type": "vlan", "master": "bond0", "mtu": 1400, "vlanMode": "auto", "ipam": {"type": "spiderpool"}});
        assert_eq!(plugins(spec.clone(), &[]), json!([main]));
        let ifacer = json!({"type": "ifacer", "interfaces": ["eth1", "eth2"], "bond": bond});
        assert_eq!(plugins(spec, &["ifacer"]), json!([ifacer, main]), "whoever has it keeps it");
        let spec = json!({"cniType": "macvlan", "disableIPAM": true, "macvlan": {"master": ["eth1"], "vlanID": 9}});
        let main = json!({"type": "macvlan", "master": "eth1.9", "mode": "bridge"});
        assert_eq!(plugins(spec.clone(), &[]), json!([main]));
        let ifacer = json!({"type": "ifacer", "interfaces": ["eth1"], "vlanID": 9});
        assert_eq!(plugins(spec, &["ifacer"]), json!([ifacer, main]));
    }

    #[test]
    fn every_type_has_its_plugin() {
        let pools = json!({"ipv4": ["a", "b"], "ipv6": ["c"]});
        let ipam = json!({"type": "spiderpool", "default_ipv4_ippool": ["a", "b"], "default_ipv6_ippool": ["c"]});
        for (spec, main) in [
            (
                json!({"cniType": "ipvlan", "ipvlan": {"master": ["eth1"], "ippools": pools}}),
                json!({"type": "ipvlan", "master": "eth1", "mode": "l2"}),
            ),
            (
                json!({"cniType": "ipoib", "ipoib": {"master": "ib0", "ippools": pools}}),
                json!({"type": "ipoib", "master": "ib0"}),
            ),
            (
                json!({"cniType": "sriov", "sriov": {"resourceName": "a/b", "vlanID": 5, "maxTxRateMbps": 9, "ippools": pools}}),
                json!({"type": "sriov", "vlan": 5, "max_tx_rate": 9}),
            ),
            (
                json!({"cniType": "ib-sriov", "ibsriov": {"resourceName": "a/b", "pkey": "0x1", "ippools": pools}}),
                json!({"type": "ib-sriov", "pkey": "0x1"}),
            ),
            (
                json!({"cniType": "ovs", "ovs": {"bridge": "br1", "vlan": 5, "ippools": pools}}),
                json!({"type": "ovs", "bridge": "br1", "vlan": 5}),
            ),
        ] {
            let mut main = main;
            main["ipam"] = ipam.clone();
            assert_eq!(plugins(spec.clone(), &[]), json!([main]), "{spec}");
        }
        let sriov = json!({"cniType": "sriov", "sriov": {"resourceName": "a/b", "enableRdma": true}});
        let chain = chained(sriov, &[]).expect("a chain");
        assert_eq!((chain.device.as_deref(), &chain.plugins[1]), (Some("a/b"), &json!({"type": "rdma"})));
    }

    #[test]
    fn a_custom_network_is_as_written() {
        let text = r#"{"type":"macvlan","master":"eth1","ipam":{"type":"host-local"}}"#;
        let wanted = json!([{"type": "macvlan", "master": "eth1", "ipam": {"type": "host-local"}}]);
        assert_eq!(plugins(json!({"cniType": "custom", "customCNI": text}), &[]), wanted);
        assert!(matches!(chained(json!({"cniType": "custom"}), &[]), Err(Unusable::Custom(_))));
    }

    #[test]
    fn what_follows_in_the_chain() {
        let spec = json!({
            "cniType": "macvlan", "macvlan": {"master": ["eth1"]}, "disableIPAM": true, "enableCoordinator": true,
            "coordinator": {"mode": "auto", "type": "forged"}, "chainCNIJsonData": [r#"{"type":"tuning"}"#],
        });
        let kinds = |present: &[&str]| {
            let chain = chained(spec.clone(), present).expect("a chain");
            let kinds: Vec<_> =
                chain.plugins.iter().filter_map(|entry| cni::kind(entry).ok().map(ToOwned::to_owned)).collect();
            (kinds.join(","), chain.omitted)
        };
        assert_eq!(kinds(&[]), ("macvlan,tuning".to_owned(), vec![COORDINATOR]));
        assert_eq!(kinds(&["coordinator"]), ("macvlan,tuning,coordinator".to_owned(), vec![]));
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let fault = |spec: Value| chained(spec, &[]).expect_err("unusable").to_string();
        for (spec, text) in [
            (json!({"cniType": "vlan"}), "no spec.vlan specified"),
            (json!({"cniType": "vlan", "vlan": {"master": []}}), "master can't be empty"),
            (json!({"cniType": "vlan", "vlan": {"master": [""]}}), "master can't be empty"),
            (
                json!({"cniType": "vlan", "vlan": {"master": ["a", "b"]}}),
                "bond name can't be empty: 2 masters are the members of a bond",
            ),
            (
                json!({"cniType": "vlan", "vlan": {"master": ["a"], "vlanMode": "manual"}}),
                "vlanId must not be nil when vlanMode is manual",
            ),
            (
                json!({"cniType": "vlan", "vlan": {"master": ["a"], "vlanMode": "auto", "vlanID": 0}}),
                "vlanId must not be specified when vlanMode is auto",
            ),
            (
                json!({"cniType": "macvlan", "macvlan": {"master": ["a"]}, "chainCNIJsonData": ["{}"]}),
                "spec.chainCNIJsonData[0] isn't a CNI configuration",
            ),
        ] {
            assert_eq!(fault(spec), text);
        }
    }
}
