//! Two pools with one address.

use super::{JOINTLY, Pool};
use crate::objects::Findings;

/// Compares a pool with another. Pools of one subnet may stand side by side as long as they share no address; subnets
/// that are not equal must have nothing in common, since an address belongs to one subnet.
pub(crate) fn overlap(mine: &Pool, name: &str, other: &Pool) -> Findings {
    let mut findings = Findings::default();
    if mine.subnet != other.subnet {
        if mine.subnet.overlaps(other.subnet) {
            let text = format!(
                "overlap with IPPool {name} which 'spec.subnet' is {}; use that subnet, or one that is apart from it",
                other.subnet
            );
            findings.invalid("spec.subnet", mine.subnet.to_string(), text);
        }
        return findings;
    }
    let common = mine.addresses.intersection(&other.addresses);
    if !common.is_empty() {
        findings.forbidden("spec.ips", format!("overlap with IPPool {name} in IP ranges [{common}], {JOINTLY}"));
    }
    findings
}
