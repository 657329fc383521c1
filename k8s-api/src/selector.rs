//! Node selectors: the label selector of Kubernetes (`apimachinery` `LabelSelectorAsSelector`).

use crate::syntax;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use std::collections::{BTreeMap, BTreeSet};

/// Labels of an object.
pub type Labels = BTreeMap<String, String>;

/// All requirements must hold; none selects every node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSelector(Vec<Requirement>);

/// One condition on one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    key: String,
    operator: Operator,
}

/// What must be true of the label. A label that is absent satisfies `NotIn` and `DoesNotExist`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operator {
    /// Present, with one of these values.
    In(BTreeSet<String>),
    /// Absent, or with none of these values.
    NotIn(BTreeSet<String>),
    /// Present.
    Exists,
    /// Absent.
    DoesNotExist,
}

/// Operators as users write them.
pub const OPERATORS: [&str; 4] = ["In", "NotIn", "Exists", "DoesNotExist"];

/// Why the API server would refuse a requirement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRequirement {
    /// Label keys are qualified names.
    #[error("{0:?} is not a label key: write name or domain/name, with letters, digits, '-', '_' or '.'")]
    Key(String),
    /// Label values are limited too.
    #[error(
        "{0:?} is not a label value: at most 63 letters, digits, '-', '_' or '.', starting and ending with a letter or digit"
    )]
    Value(String),
    /// A set operator without a set.
    #[error("operator {0} needs at least one value")]
    NoValues(&'static str),
    /// An existence operator with a set.
    #[error("operator {0} takes no values")]
    Values(&'static str),
    /// Not one of the four.
    #[error("{0:?} is not an operator: use In, NotIn, Exists or DoesNotExist")]
    Operator(String),
}

impl Requirement {
    /// The label must be there with exactly this value.
    pub fn equals(key: &str, value: &str) -> Result<Self, InvalidRequirement> {
        Self::new(key, "In", [value.to_owned()].into())
    }

    /// One entry of `matchExpressions`.
    pub fn new(key: &str, operator: &str, values: BTreeSet<String>) -> Result<Self, InvalidRequirement> {
        if !syntax::is_qualified_name(key) {
            return Err(InvalidRequirement::Key(key.to_owned()));
        }
        if let Some(value) = values.iter().find(|v| !v.is_empty() && !syntax::is_name(v)) {
            return Err(InvalidRequirement::Value(value.clone()));
        }
        let operator = match (operator, values.is_empty()) {
            ("In", false) => Operator::In(values),
            ("NotIn", false) => Operator::NotIn(values),
            ("Exists", true) => Operator::Exists,
            ("DoesNotExist", true) => Operator::DoesNotExist,
            ("In", true) => return Err(InvalidRequirement::NoValues("In")),
            ("NotIn", true) => return Err(InvalidRequirement::NoValues("NotIn")),
            ("Exists", false) => return Err(InvalidRequirement::Values("Exists")),
            ("DoesNotExist", false) => return Err(InvalidRequirement::Values("DoesNotExist")),
            (other, _) => return Err(InvalidRequirement::Operator(other.to_owned())),
        };
        Ok(Self { key: key.to_owned(), operator })
    }

    fn holds(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        match &self.operator {
            Operator::In(values) => value.is_some_and(|v| values.contains(v)),
            Operator::NotIn(values) => value.is_none_or(|v| !values.contains(v)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}

/// A selector of labels, as pools have them.
impl TryFrom<&LabelSelector> for NodeSelector {
    type Error = InvalidRequirement;

    fn try_from(LabelSelector { match_labels, match_expressions }: &LabelSelector) -> Result<Self, Self::Error> {
        let labels = match_labels.iter().flatten().map(|(key, value)| Requirement::equals(key, value));
        let expressions = match_expressions.iter().flatten().map(|one| {
            let values = one.values.iter().flatten().cloned().collect();
            Requirement::new(&one.key, &one.operator, values)
        });
        labels.chain(expressions).collect::<Result<_, _>>().map(Self::new)
    }
}

impl NodeSelector {
    /// A selector of all these requirements.
    #[must_use]
    pub fn new(requirements: Vec<Requirement>) -> Self {
        Self(requirements)
    }

    /// Whether every node matches.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a node with these labels is selected. While labels are not known yet (`None`), only a selector that
    /// takes every node selects it: `NotIn` on labels that nobody has read would be a guess.
    #[must_use]
    pub fn matches(&self, labels: Option<&Labels>) -> bool {
        match labels {
            None => self.is_everything(),
            Some(labels) => self.0.iter().all(|requirement| requirement.holds(labels)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(all: &[&str]) -> BTreeSet<String> {
        all.iter().map(ToString::to_string).collect()
    }

    fn labels(all: &[(&str, &str)]) -> Labels {
        all.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn operators_as_in_kubernetes() {
        let with_a = labels(&[("k", "a"), ("x", "")]);
        let without = labels(&[]);
        for (operator, set, on_a, on_absent) in [
            ("In", values(&["a", "b"]), true, false),
            ("In", values(&["b"]), false, false),
            ("NotIn", values(&["b"]), true, true),
            ("NotIn", values(&["a"]), false, true),
            ("Exists", values(&[]), true, false),
            ("DoesNotExist", values(&[]), false, true),
        ] {
            let selector = NodeSelector::new(vec![Requirement::new("k", operator, set.clone()).expect("legal")]);
            assert_eq!(selector.matches(Some(&with_a)), on_a, "{operator} {set:?} on k=a");
            assert_eq!(selector.matches(Some(&without)), on_absent, "{operator} {set:?} without k");
            assert!(!selector.matches(None), "{operator}: nothing is selected by labels that are not known");
        }
    }

    #[test]
    fn all_requirements_must_hold() {
        let selector = NodeSelector::new(vec![
            Requirement::equals("k", "a").expect("legal"),
            Requirement::new("x", "Exists", values(&[])).expect("legal"),
        ]);
        assert!(selector.matches(Some(&labels(&[("k", "a"), ("x", "")]))));
        assert!(!selector.matches(Some(&labels(&[("k", "a")]))));
        assert!(NodeSelector::default().matches(None));
    }

    #[test]
    fn what_the_api_server_refuses_is_refused() {
        use InvalidRequirement::{Key, NoValues, Operator, Value, Values};
        for (key, operator, set, why) in [
            ("", "Exists", values(&[]), Key(String::new())),
            ("a/b/c", "Exists", values(&[]), Key("a/b/c".into())),
            ("A.io/b", "Exists", values(&[]), Key("A.io/b".into())),
            ("k", "In", values(&["a b"]), Value("a b".into())),
            ("k", "In", values(&["-a"]), Value("-a".into())),
            ("k", "In", values(&[]), NoValues("In")),
            ("k", "NotIn", values(&[]), NoValues("NotIn")),
            ("k", "Exists", values(&["a"]), Values("Exists")),
            ("k", "DoesNotExist", values(&["a"]), Values("DoesNotExist")),
            ("k", "in", values(&["a"]), Operator("in".into())),
            ("k", "Gt", values(&["1"]), Operator("Gt".into())),
        ] {
            assert_eq!(Requirement::new(key, operator, set), Err(why));
        }
        assert!(Requirement::equals("k", "").is_ok(), "an empty value is a value");
    }
}
