//! The rules that are in force, and how often each has hit.

use super::plan::Fault;
use super::rule::{Rule, RuleSpec};
use crate::ask::Asked;
use crate::wire::Operation;
use serde::{Deserialize, Serialize};

/// So many there can be; those that are used up count until they are taken away.
pub(crate) const MOST_RULES: usize = 256;

/// Rules in the order in which they are looked at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults(Vec<(Rule, u64)>);

/// A rule, and how often it has hit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hit {
    /// The rule.
    pub rule: RuleSpec,
    /// How often.
    pub hits: u64,
}

/// There would be more rules than [`MOST_RULES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there would be more than {MOST_RULES} rules; DELETE /faults takes all away")]
pub struct TooMany;

impl Faults {
    /// Adds rules behind those that are there.
    pub(crate) fn add(&mut self, rules: Vec<Rule>) -> Result<(), TooMany> {
        if self.0.len().saturating_add(rules.len()) > MOST_RULES {
            return Err(TooMany);
        }
        self.0.extend(rules.into_iter().map(|rule| (rule, 0)));
        Ok(())
    }

    /// Takes all away.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// What there is.
    #[must_use]
    pub(crate) fn list(&self) -> Vec<Hit> {
        self.0.iter().map(|(rule, hits)| Hit { rule: rule.spec.clone(), hits: *hits }).collect()
    }

    /// The fault of the first rule that is about this call. `share` draws a number from 0 to 1, for each rule that asks for it.
    pub(crate) fn choose(
        &mut self,
        operation: Operation,
        asked: &Asked,
        mut share: impl FnMut() -> f64,
    ) -> Option<Fault> {
        let (rule, hits) = self.0.iter_mut().find(|(rule, hits)| {
            rule.spec.times.is_none_or(|times| *hits < times)
                && rule.is_about(operation, asked)
                && rule.spec.probability.is_none_or(|probability| share() < probability)
        })?;
        *hits = hits.saturating_add(1);
        Some(rule.fault.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::*;

    fn asked(pod: &str, address: &str) -> Asked {
        let body = format!(
            r#"{{"podName":"{pod}","podNamespace":"d","nodeName":"n","subnet":"10.0.0.0/8","ipAddress":"{address}"}}"#
        );
        Asked::read(Operation::Release, body.as_bytes()).expect("a release")
    }

    fn faults(text: &str) -> Faults {
        let mut faults = Faults::default();
        faults.add(Rule::list(text.as_bytes()).expect("rules")).expect("a few");
        faults
    }

    #[test]
    fn the_first_rule_that_matches_counts_and_is_used_up() {
        let mut faults = faults(
            r#"[{"operation":"allocate","fault":{"kind":"hang"}},
                {"match":{"podName":"a","ipAddress":"10.0.0.1"},"times":1,"fault":{"kind":"cut-before"}},
                {"match":{"nodeName":"n"},"fault":{"kind":"empty"}},
                {"fault":{"kind":"garbage"}}]"#,
        );
        let mut choose = |pod, address| {
            let fault = faults.choose(Operation::Release, &asked(pod, address), || 0.0);
            fault.map(|fault| fault.kind)
        };
        assert_eq!(choose("b", "10.0.0.1"), Some(Kind::Empty));
        assert_eq!(choose("a", "10.0.0.2"), Some(Kind::Empty));
        assert_eq!(choose("a", "10.0.0.1"), Some(Kind::CutBefore));
        assert_eq!(choose("a", "10.0.0.1"), Some(Kind::Empty), "once is once");
        assert_eq!(faults.list().iter().map(|hit| hit.hits).collect::<Vec<_>>(), [0, 1, 3, 0]);
    }

    #[test]
    fn a_share_of_calls_is_drawn() {
        let mut faults = faults(r#"[{"probability":0.25,"fault":{"kind":"hang"}}]"#);
        let mut hit = |drawn| faults.choose(Operation::Release, &asked("a", "10.0.0.1"), || drawn).is_some();
        assert!(hit(0.0) && hit(0.24) && !hit(0.25) && !hit(1.0));
    }

    #[test]
    fn there_is_a_most_of_them() {
        let rules = |number: usize| {
            let text = vec![r#"{"fault":{"kind":"hang"}}"#; number].join(",");
            Rule::list(format!("[{text}]").as_bytes()).expect("rules")
        };
        let mut faults = Faults::default();
        assert_eq!(faults.add(rules(MOST_RULES)), Ok(()));
        assert_eq!(faults.add(rules(1)), Err(TooMany));
        faults.clear();
        assert_eq!(faults.add(rules(1)), Ok(()));
    }

    #[test]
    fn faults_of_rules_name_their_field() {
        for (text, field) in [
            ("{}", "body: "),
            ("[{}]", "[0]: missing field `fault`"),
            (r#"[{"fault":{"kind":"nothing"}}]"#, "[0].fault.kind: "),
            (r#"[{"fault":{"kind":"hang"},"time":1}]"#, "[0].time: unknown field `time`"),
            (r#"[{"fault":{"kind":"hang","ms":1}}]"#, "[0].fault.ms: this kind does not take it"),
            (r#"[{"fault":{"kind":"late"}}]"#, "[0].fault.ms: this kind needs it"),
            (r#"[{"fault":{"kind":"late","ms":1000000}}]"#, "[0].fault.ms: it is more than"),
            (r#"[{"fault":{"kind":"status","code":100}}]"#, "[0].fault.code: "),
            (r#"[{"fault":{"kind":"redirect","code":200}}]"#, "[0].fault.code: "),
            (r#"[{"fault":{"kind":"vlan-out-of-range","vlan":7}}]"#, "[0].fault.vlan: "),
            (r#"[{"fault":{"kind":"huge-body","bytes":9999999999}}]"#, "[0].fault.bytes: "),
            (r#"[{"fault":{"kind":"hang"},"probability":2}]"#, "[0].probability: "),
            (r#"[{"fault":{"kind":"hang"},"match":{"ipAddress":"x"}}]"#, "[0].match.ipAddress: "),
        ] {
            let error = Rule::list(text.as_bytes()).expect_err(text).to_string();
            assert!(error.starts_with(field), "{text}: {error}");
        }
    }
}
