//! The objects of group `spiderpool.spidernet.io/v2beta1`: types, and the definitions that the chart installs.
//!
//! Objects that were written for earlier systems under these names load unchanged: fields keep their names and their
//! looseness, and what belongs to plugins that are not ours is kept as it is.

#![allow(unreachable_pub, reason = "KubeSchema copies each type into a function")]
#![allow(clippy::duplicated_attributes, reason = "printer columns have types in common")]

pub mod endpoint;
pub mod ip_allocation;
pub mod ip_pool;
pub mod multus_config;
pub mod reserved_ip;
pub mod texts;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

/// Every definition, in the order of their names. They stay when the chart goes: deleting one deletes its objects.
#[must_use]
pub fn definitions() -> Vec<CustomResourceDefinition> {
    let mut endpoint = endpoint::SpiderEndpoint::crd();
    for version in &mut endpoint.spec.versions {
        // Existing writers put the status into the object itself.
        version.subresources = None;
    }
    let mut all = vec![
        endpoint,
        ip_allocation::SpiderIPAllocation::crd(),
        ip_pool::SpiderIPPool::crd(),
        multus_config::SpiderMultusConfig::crd(),
        reserved_ip::SpiderReservedIP::crd(),
    ];
    for definition in &mut all {
        let annotations = definition.metadata.annotations.get_or_insert_default();
        annotations.insert("helm.sh/resource-policy".to_owned(), "keep".to_owned());
    }
    all
}

/// An object whose fields are not ours to know: whatever is in it stays in it.
pub(crate) fn anything(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

#[cfg(test)]
mod tests {
    use super::*;
    use multus_config::{CniType, SpiderMultusConfig, VlanMode};

    const QUICK_START: &str = "
apiVersion: spiderpool.spidernet.io/v2beta1
kind: SpiderMultusConfig
metadata:
  name: iaas-vlan-config
  namespace: spiderpool
spec:
  cniType: vlan
  vlan:
    master:
      - eth1
    ippools:
      ipv4:
        - pool-eth1
";

    #[test]
    fn the_quick_start_loads_and_leaves_the_vlan_open() {
        let config: SpiderMultusConfig = serde_saphyr::from_str(QUICK_START).expect("loads");
        assert_eq!(config.spec.cni_type, CniType::Vlan);
        let vlan = config.spec.vlan.expect("a block");
        assert_eq!((vlan.vlan_mode, vlan.vlan_id), (None::<VlanMode>, None));
        assert_eq!(vlan.master, ["eth1"]);
    }

    #[test]
    fn names_and_columns_are_the_ones_that_users_know() {
        let names: Vec<_> = definitions()
            .into_iter()
            .map(|definition| {
                let short = definition.spec.names.short_names.unwrap_or_default().join(",");
                format!("{} {short} {}", definition.metadata.name.unwrap_or_default(), definition.spec.scope)
            })
            .collect();
        assert_eq!(
            names,
            [
                "spiderendpoints.spiderpool.spidernet.io se Namespaced",
                "spideripallocations.spiderpool.spidernet.io sia Cluster",
                "spiderippools.spiderpool.spidernet.io sp Cluster",
                "spidermultusconfigs.spiderpool.spidernet.io smc Namespaced",
                "spiderreservedips.spiderpool.spidernet.io sr Cluster",
            ]
        );
    }
}
