//! SpiderReservedIP: addresses that no pod gets.

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// Addresses that no pool gives away. Those that pods have already stay theirs.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "spiderpool.spidernet.io",
    version = "v2beta1",
    kind = "SpiderReservedIP",
    plural = "spiderreservedips",
    shortname = "sr",
    category = "spiderpool",
    derive = "PartialEq",
    doc = "Addresses that no pool gives away.",
    printcolumn(name = "VERSION", type_ = "string", json_path = ".spec.ipVersion")
)]
#[serde(rename_all = "camelCase")]
pub struct ReservedIpSpec {
    /// 4 or 6; follows from the addresses when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self == 4 || self == 6").message("must be 4 or 6"))]
    pub ip_version: Option<i64>,
    /// Addresses and ranges.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ips: Vec<String>,
}
