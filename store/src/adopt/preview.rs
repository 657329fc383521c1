//! What would be done, for people.

use super::Adopter;
use super::plan::{Plan, plans};
use ipam_core::{Allocation, StoreError};
use kube::Client;
use serde::Serialize;
use std::time::Duration;

/// What an adoption would do now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Preview {
    /// Pools that have records of an earlier system.
    pub pools: Vec<PoolPreview>,
}

/// What it would do for one pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolPreview {
    /// Its name.
    pub pool: String,
    /// How many records it has.
    pub records: usize,
    /// How many of them have been taken over already.
    pub there: usize,
    /// Those that would be.
    pub imports: Vec<Import>,
    /// Those that cannot be, with what to do.
    pub faults: Vec<String>,
}

/// One address that would be taken over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Import {
    /// The address.
    pub address: String,
    /// `namespace/name`.
    pub pod: String,
    /// Empty if nobody knows it.
    pub node: String,
    /// Empty if nobody knows it.
    pub interface: String,
    /// Who has, or may have, bound it; empty if nobody.
    pub provider: String,
}

/// Reads what is there and plans; writes nothing. `provider`: identity of the provider that binds addresses here, if one
/// does.
pub async fn preview(client: Client, provider: Option<String>, deadline: Duration) -> Result<Preview, StoreError> {
    let gathered = Adopter::new(client, deadline).gather(provider).await?;
    Ok(Preview { pools: plans(&gathered).into_iter().map(PoolPreview::from).collect() })
}

impl From<Plan> for PoolPreview {
    fn from(plan: Plan) -> Self {
        let Plan { pool, records, there, imports, faults } = plan;
        let imports = imports.into_iter().map(|Allocation { address, pod, node, interface, provider, .. }| Import {
            address: address.to_string(),
            pod: format!("{}/{}", pod.namespace, pod.name),
            node: node.name,
            interface,
            provider: provider.map(|binding| binding.server).unwrap_or_default(),
        });
        let imports = imports.collect();
        Self { pool, records, there, imports, faults: faults.iter().map(ToString::to_string).collect() }
    }
}
