//! Attachments that an annotation of a pod or of its namespace selects ([`crate::names::INJECT`]).

use super::Device;
use crate::crd::multus_config::{Bond, CniType, MultusConfigSpec, Pools};
use crate::names::INJECT;
use serde_json::{Map, Value};

/// Which of the two annotations selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `rdma-resource-inject`: the attachment must have an RDMA device.
    Rdma,
    /// `network-resource-inject`.
    Network,
}

impl Kind {
    /// In the order in which they count.
    pub const ALL: [Self; 2] = [Self::Rdma, Self::Network];

    /// The key of the annotation.
    #[must_use]
    pub fn annotation(self) -> &'static str {
        let [rdma, network] = INJECT;
        match self {
            Self::Rdma => rdma,
            Self::Network => network,
        }
    }
}

/// Why a pod cannot be given an attachment that its annotation selects.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotGiven {
    /// The block that belongs to its cniType.
    #[error("{cni_type} config is nil")]
    NoBlock {
        /// `spec.cniType`.
        cni_type: &'static str,
    },
    /// Nobody can tell what such an attachment takes.
    #[error("{} resource injection does not support cniType: {cni_type}", match kind { Kind::Rdma => "RDMA", Kind::Network => "network" })]
    Unsupported {
        /// Which annotation.
        kind: Kind,
        /// `spec.cniType`.
        cni_type: &'static str,
    },
    /// With `rdma-resource-inject`.
    #[error("rdmaResourceName can not empty for spidermultusconfig {namespace}/{name}")]
    NoResource {
        /// Of the attachment.
        namespace: String,
        /// Of the attachment.
        name: String,
    },
    /// Its interfaces would have no address.
    #[error("no any ippools configured for spidermultusconfig {namespace}/{name}")]
    NoPools {
        /// Of the attachment.
        namespace: String,
        /// Of the attachment.
        name: String,
    },
}

/// Whether a pod can be given the attachment.
pub fn check(spec: &MultusConfigSpec, kind: Kind, namespace: &str, name: &str) -> Result<(), NotGiven> {
    let cni_type = word(spec.cni_type);
    let pools = |pools: Option<&Pools>| pools.is_some_and(|pools| !(pools.ipv4.is_empty() && pools.ipv6.is_empty()));
    let loose = |block: &Map<String, Value>| {
        let pools = block.get("ippools");
        let some = |key| pools.and_then(|pools| pools.get(key)?.as_array()).is_some_and(|names| !names.is_empty());
        let by_master = pools.and_then(|pools| pools.get("matchMasterSubnet")) == Some(&Value::Bool(true));
        some("ipv4") || some("ipv6") || by_master
    };
    let pooled = match spec.cni_type {
        CniType::Vlan => spec.vlan.as_ref().map(|vlan| pools(vlan.ippools.as_ref())),
        CniType::Macvlan => spec.macvlan.as_ref().map(|macvlan| pools(macvlan.ippools.as_ref())),
        CniType::Ipvlan => spec.ipvlan.as_ref().map(|ipvlan| pools(ipvlan.ippools.as_ref())),
        CniType::Ipoib => spec.ipoib.as_ref().map(|ipoib| pools(ipoib.ippools.as_ref())),
        CniType::Sriov => spec.sriov.as_ref().map(loose),
        CniType::IbSriov => spec.ibsriov.as_ref().map(loose),
        CniType::Ovs | CniType::Custom => return Err(NotGiven::Unsupported { kind, cni_type }),
    };
    let pooled = pooled.ok_or(NotGiven::NoBlock { cni_type })?;
    let (namespace, name) = (|| namespace.to_owned(), || name.to_owned());
    match (Device::of(spec), kind) {
        (None, Kind::Rdma) => Err(NotGiven::NoResource { namespace: namespace(), name: name() }),
        (Some(_), _) if !pooled => Err(NotGiven::NoPools { namespace: namespace(), name: name() }),
        (None, Kind::Network) | (Some(_), _) => Ok(()),
    }
}

/// What attachments are ordered by before their names: interfaces of a pod come in the order of their masters.
#[must_use]
pub fn rank(spec: &MultusConfigSpec) -> &str {
    match spec.cni_type {
        CniType::Vlan => spec.vlan.as_ref().map(|vlan| master(&vlan.master, vlan.bond.as_ref())),
        CniType::Macvlan => spec.macvlan.as_ref().map(|macvlan| master(&macvlan.master, macvlan.bond.as_ref())),
        CniType::Ipvlan => spec.ipvlan.as_ref().map(|ipvlan| master(&ipvlan.master, ipvlan.bond.as_ref())),
        CniType::Sriov => spec.sriov.as_ref().and_then(|sriov| sriov.get("resourceName")?.as_str()),
        CniType::IbSriov | CniType::Ipoib | CniType::Ovs | CniType::Custom => None,
    }
    .unwrap_or_default()
}

fn master<'a>(masters: &'a [String], bond: Option<&'a Bond>) -> &'a str {
    match (masters, bond) {
        ([_, _, ..], Some(bond)) => &bond.name,
        (masters, _) => masters.first().map(String::as_str).unwrap_or_default(),
    }
}

/// As it is written in a manifest.
fn word(cni_type: CniType) -> &'static str {
    match cni_type {
        CniType::Macvlan => "macvlan",
        CniType::Ipvlan => "ipvlan",
        CniType::Vlan => "vlan",
        CniType::Sriov => "sriov",
        CniType::Ovs => "ovs",
        CniType::IbSriov => "ib-sriov",
        CniType::Ipoib => "ipoib",
        CniType::Custom => "custom",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> MultusConfigSpec {
        serde_saphyr::from_str(text).expect("a spec")
    }

    #[test]
    fn each_fault_has_its_text() {
        let no_resource = "rdmaResourceName can not empty for spidermultusconfig ns/a";
        let no_pools = "no any ippools configured for spidermultusconfig ns/a";
        for (text, rdma, network) in [
            ("{cniType: vlan}", "vlan config is nil", "vlan config is nil"),
            ("{cniType: ib-sriov}", "ib-sriov config is nil", "ib-sriov config is nil"),
            (
                "{cniType: ovs, ovs: {}}",
                "RDMA resource injection does not support cniType: ovs",
                "network resource injection does not support cniType: ovs",
            ),
            (
                "{customCNI: '{}'}",
                "RDMA resource injection does not support cniType: custom",
                "network resource injection does not support cniType: custom",
            ),
            ("{cniType: vlan, vlan: {master: [eth1]}}", no_resource, ""),
            ("{cniType: ipoib, ipoib: {master: ib0, ippools: {ipv4: [p]}}}", no_resource, ""),
            ("{cniType: macvlan, macvlan: {master: [eth1], rdmaResourceName: a/b}}", no_pools, no_pools),
            ("{cniType: ipvlan, ipvlan: {master: [eth1], rdmaResourceName: a/b, ippools: {}}}", no_pools, no_pools),
            ("{cniType: vlan, vlan: {master: [eth1], rdmaResourceName: a/b, ippools: {ipv6: [p]}}}", "", ""),
            ("{cniType: sriov, sriov: {resourceName: a/b}}", no_pools, no_pools),
            ("{cniType: sriov, sriov: {resourceName: a/b, ippools: {ipv4: [p]}}}", "", ""),
            ("{cniType: ib-sriov, ibsriov: {resourceName: a/b, ippools: {matchMasterSubnet: true}}}", "", ""),
        ] {
            for (kind, wanted) in [(Kind::Rdma, rdma), (Kind::Network, network)] {
                let said = check(&spec(text), kind, "ns", "a").err().map(|error| error.to_string());
                assert_eq!(said.unwrap_or_default(), wanted, "{kind:?} {text}");
            }
        }
    }

    #[test]
    fn the_order_is_that_of_masters() {
        for (text, wanted) in [
            ("{cniType: vlan, vlan: {master: [eth1]}}", "eth1"),
            ("{cniType: vlan, vlan: {master: [eth1, eth2], bond: {name: bond0}}}", "bond0"),
            ("{cniType: macvlan, macvlan: {master: [eth1], bond: {name: bond0}}}", "eth1"),
            ("{cniType: ipvlan, ipvlan: {master: []}}", ""),
            ("{cniType: sriov, sriov: {resourceName: a/b}}", "a/b"),
            ("{cniType: ib-sriov, ibsriov: {resourceName: a/b}}", ""),
            ("{}", ""),
        ] {
            assert_eq!(rank(&spec(text)), wanted, "{text}");
        }
    }
}
