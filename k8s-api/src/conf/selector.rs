//! A node selector in each of its three forms: `matchLabels`, `matchExpressions`, or a flat map of labels.

use super::fault::repeated;
use super::section::{Section, nearest};
use super::yaml::{Key, Value};
use crate::selector::{NodeSelector, OPERATORS, Requirement};

const FORMS: [&str; 2] = ["matchLabels", "matchExpressions"];

/// Reads the selector at `key`; absent or empty selects every node.
pub(super) fn read(parent: &mut Section<'_, '_>, key: &'static str) -> NodeSelector {
    let path = parent.path_of(key);
    let Some(mut section) = parent.section(key) else { return NodeSelector::default() };
    let mut requirements = Vec::new();
    if FORMS.iter().any(|form| section.has(form)) {
        if let Some(mut labels) = section.section("matchLabels") {
            pairs(&mut labels, &path, &mut requirements);
        }
        section.sections("matchExpressions", |entry| requirements.extend(expression(entry)));
        refuse_flat_keys(&mut section, &path);
    } else {
        pairs(&mut section, &path, &mut requirements);
    }
    NodeSelector::new(requirements)
}

fn pairs(section: &mut Section<'_, '_>, path: &str, requirements: &mut Vec<Requirement>) {
    for (Key { line, text: key }, node) in section.rest() {
        let shown = repeated(key);
        if let (Value::Map(_) | Value::List(_), Some(form)) = (&node.value, nearest(key, &FORMS)) {
            section.fault(*line, format!("{path}.{shown} is not a known key; did you mean {form}?"));
            continue;
        }
        if node.value == Value::Null {
            section.fault(*line, format!("{path}: label {shown} has no value; write {shown}: \"\" for an empty one"));
            continue;
        }
        let Some(value) = section.as_text(node, format!("{path}: label {shown}")) else { continue };
        match Requirement::equals(key, value.value) {
            Ok(requirement) => requirements.push(requirement),
            Err(error) => section.fault(*line, format!("{path} is invalid: {error}")),
        }
    }
}

/// One entry of `matchExpressions`; nothing after a fault, which is told once.
fn expression(mut entry: Section<'_, '_>) -> Option<Requirement> {
    let faults = entry.faults();
    let key = entry.text("key");
    let operator = entry.text("operator");
    let values = entry.texts("values").iter().map(|found| found.value.to_owned()).collect();
    let (path, line) = (entry.path.clone(), entry.line);
    entry.refuse_rest();
    if entry.faults() > faults {
        return None;
    }
    let (Some(key), Some(operator)) = (key, operator) else {
        let operators = OPERATORS.join(", ");
        entry.fault(line, format!("{path} is invalid: an expression needs a key and an operator ({operators})"));
        return None;
    };
    let requirement = Requirement::new(key.value, operator.value, values);
    requirement.map_err(|error| entry.fault(line, format!("{path} is invalid: {error}"))).ok()
}

fn refuse_flat_keys(section: &mut Section<'_, '_>, path: &str) {
    for (Key { line, text: key }, _) in section.rest() {
        let key = repeated(key);
        let text =
            format!("{path} is invalid: {key} stands beside matchLabels or matchExpressions; move it into matchLabels");
        section.fault(*line, text);
    }
}
