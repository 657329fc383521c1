//! SpiderMultusConfig: a network attachment as a user describes it.

use super::texts;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Only the block of this `cniType` may be there.
const OTHER_BLOCKS: &str = "(self.cniType == 'vlan' || !has(self.vlan)) && (self.cniType == 'macvlan' || !has(self.macvlan)) \
    && (self.cniType == 'ipvlan' || !has(self.ipvlan)) && (self.cniType == 'sriov' || !has(self.sriov)) \
    && (self.cniType == 'ib-sriov' || !has(self.ibsriov)) && (self.cniType == 'ipoib' || !has(self.ipoib)) \
    && (self.cniType == 'ovs' || !has(self.ovs))";
/// As [`texts::other_block`] says it.
const OTHER_BLOCK_SAID: &str = "'the cniType ' + self.cniType + ' only supports spec.' \
    + (self.cniType == 'custom' ? 'customCNI' : self.cniType.replace('-', '')) \
    + ', please remove other CNI configs'";

/// A network attachment. Pods name it in `k8s.v1.cni.cncf.io/networks` or `v1.multus-cni.io/default-network`.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "spiderpool.spidernet.io",
    version = "v2beta1",
    kind = "SpiderMultusConfig",
    plural = "spidermultusconfigs",
    shortname = "smc",
    category = "spiderpool",
    namespaced,
    status = "MultusConfigStatus",
    derive = "PartialEq",
    doc = "A network attachment. Pods name it in the annotation k8s.v1.cni.cncf.io/networks.",
    printcolumn(name = "TYPE", type_ = "string", json_path = ".spec.cniType"),
    printcolumn(name = "READY", type_ = "string", json_path = ".status.conditions[?(@.type=='Ready')].status"),
    printcolumn(
        name = "REASON",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].reason",
        priority = 10
    ),
    printcolumn(name = "AGE", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.cniType != 'vlan' || has(self.vlan)").message(texts::no_block("vlan").as_str()).reason(Reason::FieldValueRequired).field_path(".vlan"))]
#[x_kube(validation = Rule::new("self.cniType != 'macvlan' || has(self.macvlan)").message(texts::no_block("macvlan").as_str()).reason(Reason::FieldValueRequired).field_path(".macvlan"))]
#[x_kube(validation = Rule::new("self.cniType != 'ipvlan' || has(self.ipvlan)").message(texts::no_block("ipvlan").as_str()).reason(Reason::FieldValueRequired).field_path(".ipvlan"))]
#[x_kube(validation = Rule::new("self.cniType != 'sriov' || has(self.sriov)").message(texts::no_block("sriov").as_str()).reason(Reason::FieldValueRequired).field_path(".sriov"))]
#[x_kube(validation = Rule::new("self.cniType != 'ib-sriov' || has(self.ibsriov)").message(texts::no_block("ibsriov").as_str()).reason(Reason::FieldValueRequired).field_path(".ibsriov"))]
#[x_kube(validation = Rule::new("self.cniType != 'ipoib' || has(self.ipoib)").message(texts::no_block("ipoib").as_str()).reason(Reason::FieldValueRequired).field_path(".ipoib"))]
#[x_kube(validation = Rule::new("self.cniType != 'ovs' || has(self.ovs)").message(texts::no_block("ovs").as_str()).reason(Reason::FieldValueRequired).field_path(".ovs"))]
#[x_kube(validation = Rule::new(OTHER_BLOCKS).message(Message::Expression(OTHER_BLOCK_SAID.to_owned())).reason(Reason::FieldValueForbidden).field_path(".cniType"))]
pub struct MultusConfigSpec {
    /// Which CNI plugin makes the interface.
    #[serde(default)]
    pub cni_type: CniType,
    /// Adds the plugin `coordinator` to the chain. It is not part of this chart.
    #[serde(default)]
    pub enable_coordinator: bool,
    /// Leaves out `ipam`.
    #[serde(default, rename = "disableIPAM")]
    pub disable_ipam: bool,
    /// cniType vlan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<Vlan>,
    /// cniType macvlan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub macvlan: Option<SubInterface>,
    /// cniType ipvlan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipvlan: Option<SubInterface>,
    /// cniType sriov.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::anything")]
    pub sriov: Option<Map<String, Value>>,
    /// cniType ib-sriov.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::anything")]
    pub ibsriov: Option<Map<String, Value>>,
    /// cniType ipoib.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipoib: Option<Ipoib>,
    /// cniType ovs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::anything")]
    pub ovs: Option<Map<String, Value>>,
    /// Settings of the plugin `coordinator`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::anything")]
    pub coordinator: Option<Map<String, Value>>,
    /// cniType custom: a whole CNI configuration as JSON.
    #[serde(default, rename = "customCNI", skip_serializing_if = "Option::is_none")]
    pub custom_cni: Option<String>,
    /// Further plugins of the chain, each as JSON.
    #[serde(default, rename = "chainCNIJsonData", skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<String>,
}

/// What became of the attachment.
#[derive(Serialize, Deserialize, KubeSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct MultusConfigStatus {
    /// `Ready`: Multus knows the attachment as it is written here. `PluginsPresent`: all of what it chains is on the nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// Which CNI plugin makes the interface.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names of plugins")]
pub enum CniType {
    Macvlan,
    Ipvlan,
    Vlan,
    Sriov,
    Ovs,
    #[serde(rename = "ib-sriov")]
    IbSriov,
    Ipoib,
    #[default]
    Custom,
}

impl CniType {
    /// As users write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Macvlan => "macvlan",
            Self::Ipvlan => "ipvlan",
            Self::Vlan => "vlan",
            Self::Sriov => "sriov",
            Self::Ovs => "ovs",
            Self::IbSriov => "ib-sriov",
            Self::Ipoib => "ipoib",
            Self::Custom => "custom",
        }
    }

    /// The field of the spec that belongs to it.
    #[must_use]
    pub fn block(self) -> &'static str {
        match self {
            Self::IbSriov => "ibsriov",
            Self::Custom => "customCNI",
            other => other.name(),
        }
    }
}

/// A VLAN interface on a master NIC of the node.
#[derive(Serialize, Deserialize, KubeSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.vlanMode) || self.vlanMode != 'manual' || has(self.vlanID)").message(texts::MANUAL_WITHOUT_ID).reason(Reason::FieldValueRequired).field_path(".vlanID"))]
#[x_kube(validation = Rule::new("!has(self.vlanMode) || self.vlanMode != 'auto' || !has(self.vlanID)").message(texts::AUTO_WITH_ID).reason(Reason::FieldValueForbidden).field_path(".vlanID"))]
#[x_kube(validation = Rule::new("!has(self.ippools) || !has(self.ippools.matchMasterSubnet) || !self.ippools.matchMasterSubnet").message(texts::MATCH_MASTER_SUBNET).reason(Reason::FieldValueForbidden).field_path(".ippools.matchMasterSubnet"))]
#[x_kube(validation = Rule::new("self.master.size() < 2 || has(self.bond)").message(texts::NO_BOND).reason(Reason::FieldValueRequired).field_path(".bond"))]
#[x_kube(validation = Rule::new("self.master.size() < 2 || !has(self.bond) || self.bond.name != ''").message(texts::NO_BOND_NAME).field_path(".bond.name"))]
pub struct Vlan {
    /// NIC of the node; several are the members of a bond.
    #[x_kube(validation = Rule::new("self.size() > 0").message(texts::NO_MASTER).reason(Reason::FieldValueRequired))]
    pub master: Vec<String>,
    /// `auto`, as when it is left out: the provider answers the VLAN id. `manual`: it is `vlanID`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan_mode: Option<VlanMode>,
    /// A fixed VLAN id. Left out, the provider answers one.
    #[serde(default, rename = "vlanID", skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self >= 0 && self <= 4094").message(texts::VLAN_ID))]
    pub vlan_id: Option<i32>,
    /// MTU in bytes; 0 leaves it to the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self >= 0").message(texts::MTU))]
    pub mtu: Option<i32>,
    /// The bond that several masters make up; it must exist on the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bond: Option<Bond>,
    /// Resource of the RDMA device that belongs to the master.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rdma_resource_name: Option<String>,
    /// Where addresses come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ippools: Option<Pools>,
}

/// Who chooses the VLAN id.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum VlanMode {
    /// The user: `vlanID`.
    Manual,
    /// The cloud provider.
    Auto,
}

/// A macvlan or ipvlan interface on a master NIC of the node.
#[derive(Serialize, Deserialize, KubeSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.master.size() < 2 || has(self.bond)").message(texts::NO_BOND).reason(Reason::FieldValueRequired).field_path(".bond"))]
#[x_kube(validation = Rule::new("self.master.size() < 2 || !has(self.bond) || self.bond.name != ''").message(texts::NO_BOND_NAME).field_path(".bond.name"))]
pub struct SubInterface {
    /// NIC of the node; several are the members of a bond.
    #[x_kube(validation = Rule::new("self.size() > 0").message(texts::NO_MASTER).reason(Reason::FieldValueRequired))]
    pub master: Vec<String>,
    /// VLAN between the master and the interface; 0 is none.
    #[serde(default, rename = "vlanID", skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self >= 0 && self <= 4094").message(texts::VLAN_ID))]
    pub vlan_id: Option<i32>,
    /// MTU in bytes; 0 leaves it to the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self >= 0").message(texts::MTU))]
    pub mtu: Option<i32>,
    /// The bond that several masters make up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bond: Option<Bond>,
    /// Resource of the RDMA device that belongs to the master.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rdma_resource_name: Option<String>,
    /// Where addresses come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ippools: Option<Pools>,
}

/// An IP-over-InfiniBand interface.
#[derive(Serialize, Deserialize, KubeSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Ipoib {
    /// InfiniBand NIC of the node.
    pub master: String,
    /// Where addresses come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ippools: Option<Pools>,
}

/// A bond of several NICs.
#[derive(Serialize, Deserialize, KubeSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Bond {
    /// Name of the bond's interface.
    pub name: String,
    /// Bonding mode, as in the kernel's documentation.
    #[serde(default)]
    #[schemars(range(min = 0, max = 6))]
    pub mode: i32,
    /// Bonding options, `name=value`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<String>,
}

/// Where addresses come from.
#[derive(Serialize, Deserialize, KubeSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Pools {
    /// Names of SpiderIPPools, or patterns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ipv4: Vec<String>,
    /// Names of SpiderIPPools, or patterns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ipv6: Vec<String>,
    /// SR-IOV only: pools whose subnet is that of the master.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub match_master_subnet: Option<bool>,
}
