//! Words of refusals that users of existing systems know and search for, each with what to do. The definitions say them,
//! and so does whoever checks an object that the definitions did not.

/// A block that `cniType` needs: `spec.vlan`.
#[must_use]
pub fn no_block(block: &str) -> String {
    format!("no spec.{block} specified")
}

/// A block that belongs to another `cniType`.
#[must_use]
pub fn other_block(cni_type: &str, block: &str) -> String {
    format!("the cniType {cni_type} only supports spec.{block}, please remove other CNI configs")
}

/// `vlanMode: manual` without a `vlanID`.
pub const MANUAL_WITHOUT_ID: &str =
    "vlanId must not be nil when vlanMode is manual; set vlanID, or remove vlanMode to let the provider answer it";
/// `vlanMode: auto` with a `vlanID`.
pub const AUTO_WITH_ID: &str =
    "vlanId must not be specified when vlanMode is auto; remove vlanID, or set vlanMode to manual";
/// `vlanID` beyond what 802.1Q has. The number itself costs more than an API server grants a rule; it stands before the
/// text, as the value.
pub const VLAN_ID: &str = "invalid vlanId, please make sure vlanId in range [0,4094]";
/// A negative MTU.
pub const MTU: &str = "MTU must be greater than or equal to 0";
/// `matchMasterSubnet` where it does not apply.
pub const MATCH_MASTER_SUBNET: &str =
    "MatchMasterSubnet feature is not supported for vlan; remove matchMasterSubnet and name the pools";
/// No master.
pub const NO_MASTER: &str = "master can't be empty; name the NIC of the node that carries the interface";
/// Several masters without a bond.
pub const NO_BOND: &str = "the bond property is nil with multiple Interfaces; set bond.name, or leave one master";
/// Several masters, and a bond without a name.
pub const NO_BOND_NAME: &str = "bond name can't be empty; set it, or leave one master";
/// What stays as it was created.
pub const NOT_CHANGEABLE: &str = "is not changeable; create another SpiderIPPool";
