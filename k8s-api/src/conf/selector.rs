//! A node selector in each of its three forms: `matchLabels`, `matchExpressions`, or a flat map of labels.

use super::section::{Section, nearest};
use super::yaml::{Key, Value};
use crate::selector::{NodeSelector, OPERATORS, Requirement};

const FORMS: [&str; 2] = ["matchLabels", "matchExpressions"];

/// Reads the selector at `key`; absent or empty selects every node.
pub(super) fn read(parent: &mut Section<'_, '_>, key: &'static str) -> NodeSelector {
    let path = parent.path_of(key);
    let Some(mut section) = parent.section(key) else { return NodeSelector::default() };
    let mut requirements = Vec::new();
    let labels = section.section("matchLabels").map(|mut labels| pairs(&mut labels, &path, &mut requirements));
    let expressions = expressions(&mut section, &path, &mut requirements);
    if labels.is_some() || expressions {
        refuse_flat_keys(&mut section, &path);
    } else {
        pairs(&mut section, &path, &mut requirements);
    }
    NodeSelector::new(requirements)
}

fn pairs(section: &mut Section<'_, '_>, path: &str, requirements: &mut Vec<Requirement>) {
    for (Key { line, text: key }, node) in section.rest() {
        if let (Value::Map(_) | Value::List(_), Some(form)) = (&node.value, nearest(key, &FORMS)) {
            section.fault(*line, format!("{path}.{key} is not a known key; did you mean {form}?"));
            continue;
        }
        if node.value == Value::Null {
            section.fault(*line, format!("{path}: label {key} has no value; write {key}: \"\" for an empty one"));
            continue;
        }
        let Some(value) = section.as_text(node, format!("{path}: label {key}")) else { continue };
        match Requirement::equals(key, value.value) {
            Ok(requirement) => requirements.push(requirement),
            Err(error) => section.fault(*line, format!("{path} is invalid: {error}")),
        }
    }
}

fn expressions(section: &mut Section<'_, '_>, path: &str, requirements: &mut Vec<Requirement>) -> bool {
    let mut any = false;
    section.sections("matchExpressions", |mut expression| {
        any = true;
        let key = expression.text("key");
        let operator = expression.text("operator");
        let values = expression.texts("values");
        let line = key.as_ref().or(operator.as_ref()).map_or(0, |found| found.line);
        match (key, operator) {
            (Some(key), Some(operator)) => {
                let values = values.iter().map(|found| found.value.to_owned()).collect();
                match Requirement::new(key.value, operator.value, values) {
                    Ok(requirement) => requirements.push(requirement),
                    Err(error) => expression.fault(line, format!("{path} is invalid: {error}")),
                }
            }
            _ => expression.fault(
                line,
                format!("{path} is invalid: an expression needs a key and an operator ({})", OPERATORS.join(", ")),
            ),
        }
        expression.end();
    });
    any
}

fn refuse_flat_keys(section: &mut Section<'_, '_>, path: &str) {
    for (Key { line, text: key }, _) in section.rest() {
        let text =
            format!("{path} is invalid: {key} stands beside matchLabels or matchExpressions; move it into matchLabels");
        section.fault(*line, text);
    }
}
