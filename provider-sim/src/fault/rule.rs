//! A rule: which calls a fault hits.

use super::kind::Spec;
use super::plan::Fault;
use crate::ask::Asked;
use crate::wire::Operation;
use ipam_core::Address;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Which of the two calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum On {
    /// Binding.
    Allocate,
    /// Releasing.
    Release,
    /// Both.
    #[default]
    Any,
}

/// What a call must be about. What is not said matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Match {
    /// Name of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_name: Option<String>,
    /// Its namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_namespace: Option<String>,
    /// An address of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_address: Option<String>,
    /// The node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
}

/// A rule as it is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RuleSpec {
    /// Which of the two calls.
    #[serde(default)]
    pub operation: On,
    /// What they must be about.
    #[serde(rename = "match", default)]
    pub about: Match,
    /// How often; for ever if it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// In which share of the calls that match, 0 to 1; in all if it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// What goes wrong.
    pub fault: Spec,
}

/// A rule that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {why}")]
pub struct InvalidRule {
    field: String,
    why: String,
}

/// A rule that can be used.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(super) spec: RuleSpec,
    address: Option<Address>,
    pub(super) fault: Fault,
}

impl Rule {
    /// Reads a JSON list of rules: all of them, or the first fault.
    pub(crate) fn list(body: &[u8]) -> Result<Vec<Self>, InvalidRule> {
        let mut reader = serde_json::Deserializer::from_slice(body);
        let specs: Vec<Value> = serde_path_to_error::deserialize(&mut reader)
            .map_err(|error| InvalidRule { field: "body".to_owned(), why: error.into_inner().to_string() })?;
        let rules = specs.into_iter().enumerate().map(|(at, value)| {
            let spec: RuleSpec = serde_path_to_error::deserialize(value).map_err(|error| {
                let path = error.path().to_string();
                let field = if path == "." { format!("[{at}]") } else { format!("[{at}].{path}") };
                InvalidRule { field, why: error.into_inner().to_string() }
            })?;
            let inside = |InvalidRule { field, why }| InvalidRule { field: format!("[{at}].{field}"), why };
            Self::new(spec).map_err(inside)
        });
        rules.collect()
    }

    /// Checks a rule.
    pub(crate) fn new(spec: RuleSpec) -> Result<Self, InvalidRule> {
        let wrong = |field: &str, why: String| InvalidRule { field: field.to_owned(), why };
        let address = spec.about.ip_address.as_deref().map(str::parse).transpose();
        let address = address.map_err(|why: ipam_core::InvalidAddress| wrong("match.ipAddress", why.to_string()))?;
        if spec.probability.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
            return Err(wrong("probability", "it must be from 0 to 1".to_owned()));
        }
        let fault = spec.fault.check().map_err(|(field, why)| wrong(&format!("fault.{field}"), why))?;
        Ok(Self { spec, address, fault })
    }

    /// Whether it is about this call.
    pub(super) fn is_about(&self, operation: Operation, asked: &Asked) -> bool {
        let Match { pod_name, pod_namespace, ip_address: _, node_name } = &self.spec.about;
        let same = |wanted: &Option<String>, given: &str| wanted.as_ref().is_none_or(|wanted| wanted == given);
        let on = match self.spec.operation {
            On::Any => true,
            On::Allocate => operation == Operation::Allocate,
            On::Release => operation == Operation::Release,
        };
        on && same(pod_name, &asked.pod().name)
            && same(pod_namespace, &asked.pod().namespace)
            && same(node_name, asked.node())
            && self.address.is_none_or(|address| asked.names(address))
    }
}
