//! One namespace.

use crate::pointer;
use k8s_api::names::{INJECT, INJECT_FROM, INJECT_LABEL, INJECT_LABEL_VALUE};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// More than anybody lists by hand; `*` is for more.
const SHARED_WITH_MAX: usize = 1000;

/// What is known of a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Its values of [`INJECT`].
    pub(crate) inject: [Option<Arc<str>>; 2],
    shares: Shares,
    label: Label,
    /// `metadata.resourceVersion`.
    version: String,
    /// On its way out: nothing more is written.
    leaving: bool,
}

/// Whose pods may get its attachments by annotation, besides its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Shares {
    #[default]
    Nobody,
    With(BTreeSet<String>),
    Everybody,
}

/// What its label [`INJECT_LABEL`] is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Label {
    /// It has no labels at all.
    #[default]
    None,
    Absent,
    /// [`INJECT_LABEL_VALUE`].
    Ours,
    /// A user's.
    Other,
}

/// What is to be done about the label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Write,
    Remove,
}

impl Facts {
    /// Reads the metadata of a namespace.
    pub(crate) fn of(metadata: &ObjectMeta) -> Self {
        let annotation = |key: &str| metadata.annotations.as_ref()?.get(key).map(String::as_str);
        Self {
            inject: INJECT.map(|key| annotation(key).map(Into::into)),
            shares: annotation(INJECT_FROM).map(Shares::of).unwrap_or_default(),
            label: match &metadata.labels {
                None => Label::None,
                Some(labels) if labels.is_empty() => Label::None,
                Some(labels) => match labels.get(INJECT_LABEL).map(String::as_str) {
                    None => Label::Absent,
                    Some(INJECT_LABEL_VALUE) => Label::Ours,
                    Some(_) => Label::Other,
                },
            },
            version: metadata.resource_version.clone().unwrap_or_default(),
            leaving: metadata.deletion_timestamp.is_some(),
        }
    }

    /// Whether pods of `namespace`, another one, may get its attachments by annotation.
    pub(crate) fn shares_with(&self, namespace: &str) -> bool {
        match &self.shares {
            Shares::Nobody => false,
            Shares::With(names) => names.contains(namespace),
            Shares::Everybody => true,
        }
    }

    /// What its label lacks. One that a user wrote is left alone, whatever it says.
    pub(super) fn step(&self) -> Option<Step> {
        let wanted = self.inject.iter().any(Option::is_some);
        match (wanted, self.label) {
            _ if self.leaving => None,
            (true, Label::None | Label::Absent) => Some(Step::Write),
            (false, Label::Ours) => Some(Step::Remove),
            (true, Label::Ours | Label::Other) | (false, Label::None | Label::Absent | Label::Other) => None,
        }
    }

    /// Changes with everything that is written to it.
    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// The step as a JSON patch; it fails if the namespace is not what it was when this was decided.
    pub(super) fn patch(&self, step: Step) -> Value {
        let path = format!("/metadata/labels/{}", pointer::part(INJECT_LABEL));
        let same = json!({"op": "test", "path": "/metadata/resourceVersion", "value": self.version});
        match (step, self.label) {
            (Step::Write, Label::None) => {
                let labels = json!({INJECT_LABEL: INJECT_LABEL_VALUE});
                json!([same, {"op": "add", "path": "/metadata/labels", "value": labels}])
            }
            (Step::Write, _) => json!([same, {"op": "add", "path": path, "value": INJECT_LABEL_VALUE}]),
            (Step::Remove, _) => json!([
                same,
                {"op": "test", "path": path, "value": INJECT_LABEL_VALUE},
                {"op": "remove", "path": path},
            ]),
        }
    }
}

impl Shares {
    fn of(text: &str) -> Self {
        let names: BTreeSet<&str> = text.split(',').map(str::trim).take(SHARED_WITH_MAX).collect();
        if names.contains("*") {
            return Self::Everybody;
        }
        Self::With(names.into_iter().filter(|name| !name.is_empty()).map(ToOwned::to_owned).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(annotations: &Value, labels: &Value) -> Facts {
        let metadata = json!({"name": "a", "resourceVersion": "7", "annotations": annotations, "labels": labels});
        Facts::of(&serde_json::from_value(metadata).expect("metadata"))
    }

    #[test]
    fn who_may_get_its_attachments() {
        let shares = |text: &str| {
            ["a", "b", "*", ""].map(|name| facts(&json!({INJECT_FROM: text}), &json!({})).shares_with(name))
        };
        assert_eq!(shares("a"), [true, false, false, false]);
        assert_eq!(shares(" a ,\tb,"), [true, true, false, false]);
        assert_eq!(shares("*"), [true; 4]);
        assert_eq!(shares("a, *"), [true; 4]);
        assert_eq!(shares("a*"), [false; 4], "no patterns");
        assert_eq!(shares(""), [false; 4]);
        let many = vec!["x"; SHARED_WITH_MAX].join(",");
        assert_eq!(shares(&format!("{many},a")), [false; 4]);
        assert!(!facts(&Value::Null, &Value::Null).shares_with("a"));
    }

    #[test]
    fn the_label_follows_the_annotations_and_a_users_stays() {
        let [rdma, network] = INJECT;
        for (annotations, labels, step) in [
            (json!({rdma: "red"}), json!({"a": "b"}), Some(Step::Write)),
            (json!({network: ""}), json!({}), Some(Step::Write)),
            (json!({network: "red"}), json!({INJECT_LABEL: "by-annotation"}), None),
            (json!({network: "red"}), json!({INJECT_LABEL: "false"}), None),
            (json!({network: "red"}), json!({INJECT_LABEL: "mine"}), None),
            (json!({INJECT_FROM: "*"}), json!({INJECT_LABEL: "by-annotation"}), Some(Step::Remove)),
            (json!({}), json!({INJECT_LABEL: "false"}), None),
            (json!({}), json!({INJECT_LABEL: "mine"}), None),
            (json!({}), json!({}), None),
        ] {
            let facts = facts(&annotations, &labels);
            assert_eq!(facts.step(), step, "{annotations} {labels}");
            let Some(step) = step else { continue };
            let mut whole = json!({"metadata": {"resourceVersion": "7", "annotations": annotations, "labels": labels}});
            let mut wanted = whole.clone();
            match step {
                Step::Write => wanted["metadata"]["labels"][INJECT_LABEL] = json!("by-annotation"),
                Step::Remove => {
                    drop(wanted["metadata"]["labels"].as_object_mut().expect("labels").remove(INJECT_LABEL));
                }
            }
            let patch: json_patch::Patch = serde_json::from_value(facts.patch(step)).expect("a patch");
            let mut later = whole.clone();
            json_patch::patch(&mut whole, &patch).expect("it applies");
            assert_eq!(whole, wanted);
            later["metadata"]["resourceVersion"] = json!("8");
            assert!(json_patch::patch(&mut later, &patch).is_err(), "it is another by now");
        }
        let leaving = json!({"annotations": {rdma: "red"}, "deletionTimestamp": "2026-01-01T00:00:00Z"});
        assert_eq!(Facts::of(&serde_json::from_value(leaving).expect("metadata")).step(), None);
    }
}
