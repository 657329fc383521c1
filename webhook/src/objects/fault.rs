//! What is wrong with an object, in the form in which Kubernetes says it.

use serde::Serialize;
use serde_json::{Value, json};
use std::fmt;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// `spec.ips[3]`
    pub(crate) field: String,
    pub(crate) kind: Kind,
    /// What is wrong, and what to do.
    pub(crate) text: String,
}

/// Which way it is wrong. Values are JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Invalid(String),
    Duplicate(String),
    Required,
    Forbidden,
}

impl Kind {
    /// `reason` of a cause.
    fn reason(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "FieldValueInvalid",
            Self::Duplicate(_) => "FieldValueDuplicate",
            Self::Required => "FieldValueRequired",
            Self::Forbidden => "FieldValueForbidden",
        }
    }
}

/// As apimachinery `field.Error` puts it, without the field.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(value) => write!(f, "Invalid value: {value}"),
            Self::Duplicate(value) => write!(f, "Duplicate value: {value}"),
            Self::Required => f.write_str("Required value"),
            Self::Forbidden => f.write_str("Forbidden"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, kind, text } = self;
        write!(f, "{field}: {kind}: {text}")
    }
}

/// Everything that was found in one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Findings {
    pub(crate) faults: Vec<Fault>,
    /// Faults that are not listed, since there are too many.
    pub(crate) more: usize,
    pub(crate) warnings: Vec<String>,
}

/// Enough for a person, who repairs one and sees the rest go.
const FAULTS: usize = 20;
/// A value that is longer is cut.
const VALUE_CHARS: usize = 120;

impl Findings {
    pub(crate) fn invalid(&mut self, field: impl Into<String>, value: impl Serialize, text: impl Into<String>) {
        self.push(field.into(), Kind::Invalid(quoted(value)), text.into());
    }

    pub(crate) fn duplicate(&mut self, field: impl Into<String>, value: impl Serialize, text: impl Into<String>) {
        self.push(field.into(), Kind::Duplicate(quoted(value)), text.into());
    }

    pub(crate) fn required(&mut self, field: impl Into<String>, text: impl Into<String>) {
        self.push(field.into(), Kind::Required, text.into());
    }

    pub(crate) fn forbidden(&mut self, field: impl Into<String>, text: impl Into<String>) {
        self.push(field.into(), Kind::Forbidden, text.into());
    }

    pub(crate) fn warn(&mut self, text: impl Into<String>) {
        self.warnings.push(text.into());
    }

    fn push(&mut self, field: String, kind: Kind, text: String) {
        if self.faults.len() < FAULTS {
            self.faults.push(Fault { field, kind, text });
        } else {
            self.more += 1;
        }
    }

    /// With what somebody else found.
    pub(crate) fn and(mut self, other: Self) -> Self {
        let Self { faults, more, warnings } = other;
        self.more += more;
        for Fault { field, kind, text } in faults {
            self.push(field, kind, text);
        }
        self.warnings.extend(warnings);
        self
    }

    /// For an object that was there already: its faults are told and stop nothing.
    pub(crate) fn only_warnings(self) -> Vec<String> {
        let Self { faults, more, warnings } = self;
        let rest = (more > 0).then(|| format!("and {more} more faults"));
        faults.iter().map(ToString::to_string).chain(rest).chain(warnings).collect()
    }
}

/// A value as it stands in a message: JSON, and not much of it.
pub(crate) fn quoted(value: impl Serialize) -> String {
    let text = serde_json::to_string(&value).unwrap_or_default();
    match text.char_indices().nth(VALUE_CHARS) {
        None => text,
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

/// The refusal, as an API server itself would write it (apimachinery `errors.NewInvalid`).
pub(crate) fn status(kind: &str, name: &str, findings: &Findings) -> Value {
    const GROUP: &str = "spiderpool.spidernet.io";
    let Findings { faults, more, .. } = findings;
    let mut causes: Vec<Value> = faults
        .iter()
        .map(|Fault { field, kind, text }| {
            json!({"reason": kind.reason(), "message": format!("{kind}: {text}"), "field": field})
        })
        .collect();
    let mut said: Vec<String> = faults.iter().map(ToString::to_string).collect();
    if *more > 0 {
        said.push(format!("and {more} more faults"));
        causes.push(json!({"reason": "FieldValueInvalid", "message": format!("and {more} more faults"), "field": ""}));
    }
    let said = match said.as_slice() {
        [only] => only.clone(),
        all => format!("[{}]", all.join(", ")),
    };
    json!({
        "status": "Failure", "code": 422, "reason": "Invalid",
        "message": format!("{kind}.{GROUP} {name:?} is invalid: {said}"),
        "details": {"group": GROUP, "kind": kind, "name": name, "causes": causes},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_as_kubernetes_writes_it() {
        let mut findings = Findings::default();
        findings.invalid("spec.ips[0]", "x", "it is not an IP address");
        let only = status("SpiderIPPool", "p", &findings);
        assert_eq!(
            only["message"],
            r#"SpiderIPPool.spiderpool.spidernet.io "p" is invalid: spec.ips[0]: Invalid value: "x": it is not an IP address"#
        );
        assert_eq!((&only["code"], &only["reason"]), (&json!(422), &json!("Invalid")));
        findings.required("spec.vlan", "no spec.vlan specified");
        findings.forbidden("spec.subnet", "is not changeable");
        findings.duplicate("spec.routes[1].dst", "10.0.0.0/8", "once");
        let all = status("SpiderIPPool", "p", &findings);
        let message = all["message"].as_str().expect("a text");
        assert!(message.contains(r#"is invalid: [spec.ips[0]: Invalid value: "x": it is not"#), "{message}");
        assert!(message.contains("spec.vlan: Required value: no spec.vlan specified, spec.subnet: Forbidden: is not"));
        assert!(message.ends_with(r#"spec.routes[1].dst: Duplicate value: "10.0.0.0/8": once]"#), "{message}");
        assert_eq!(
            all["details"]["causes"][1],
            json!({"reason": "FieldValueRequired", "field": "spec.vlan", "message": "Required value: no spec.vlan specified"})
        );
    }

    #[test]
    fn many_are_counted() {
        let mut many = Findings::default();
        for n in 0..1000 {
            many.invalid(format!("spec.ips[{n}]"), "x".repeat(10_000), "no");
        }
        assert_eq!((many.faults.len(), many.more), (20, 980));
        let text = status("SpiderIPPool", "p", &many).to_string();
        assert!(text.contains("and 980 more faults") && text.len() < 20_000, "{}", text.len());
        assert_eq!(many.clone().and(many).more, 1980);
    }
}
