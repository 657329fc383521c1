//! Addresses that pods have and that a pool is about to lose.

use super::JOINTLY;
use crate::objects::Findings;
use ipam_core::{Address, Ranges};
use k8s_api::Quoted;
use k8s_api::crd::ip_pool::has_records;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// An address, and the pod (`namespace/name`) that has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Holder {
    pub(crate) address: Address,
    pub(crate) pod: String,
}

/// The records of an earlier system cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotKnown {
    #[error("status.allocatedIPs is not text")]
    NoText,
    #[error("status.allocatedIPs is not a JSON map of addresses: {0}")]
    Json(serde_json::Error),
    #[error("status.allocatedIPs has {}, which is not an address", Quoted(.0))]
    Address(String),
}

#[derive(Deserialize)]
struct Record {
    #[serde(default)]
    pod: String,
}

/// What an earlier system recorded in the status.
pub(crate) fn recorded(status: &Value) -> Result<Vec<Holder>, NotKnown> {
    let text = match status.get("allocatedIPs") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::String(text)) if !has_records(text) => return Ok(Vec::new()),
        Some(Value::String(text)) => text,
        Some(_) => return Err(NotKnown::NoText),
    };
    let records: Option<BTreeMap<String, Record>> = serde_json::from_str(text).map_err(NotKnown::Json)?;
    let read = |(address, Record { pod }): (String, Record)| match address.parse() {
        Ok(address) => Ok(Holder { address, pod }),
        Err(_) => Err(NotKnown::Address(address)),
    };
    records.unwrap_or_default().into_iter().map(read).collect()
}

/// A fault for each address that is taken away from a pod; the lowest come first.
pub(crate) fn held(taken: &Ranges, mut holders: Vec<Holder>) -> Findings {
    let mut findings = Findings::default();
    holders.retain(|holder| taken.contains(holder.address));
    holders.sort_unstable();
    // A pool that is being taken over is known twice over.
    holders.dedup_by_key(|holder| holder.address);
    for Holder { address, pod } in holders {
        let pod = if pod.is_empty() { "(not recorded)" } else { &pod };
        findings.forbidden(
            "spec.ips",
            format!("remove an IP address {address} that is being used by Pod {pod}, {JOINTLY}"),
        );
    }
    findings
}
