//! What is found on the way from a pod to its address.

use crate::fault::NotSeen;
use crate::plain::plain;
use serde::Serialize;
use std::fmt::Write;

/// How it stands with one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Level {
    /// As it should be.
    Ok,
    /// Worth knowing, and no fault.
    Note,
    /// A right or a kind is missing, so nobody knows.
    NotSeen,
    /// Somebody has to do something.
    Wrong,
}

/// One fact, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Finding {
    pub(crate) step: &'static str,
    pub(crate) level: Level,
    pub(crate) text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) todo: Option<String>,
}

impl Finding {
    pub(crate) fn ok(step: &'static str, text: impl Into<String>) -> Self {
        Self { step, level: Level::Ok, text: text.into(), todo: None }
    }

    pub(crate) fn note(step: &'static str, text: impl Into<String>) -> Self {
        Self { step, level: Level::Note, text: text.into(), todo: None }
    }

    pub(crate) fn wrong(step: &'static str, text: impl Into<String>, todo: impl Into<String>) -> Self {
        Self { step, level: Level::Wrong, text: text.into(), todo: Some(todo.into()) }
    }

    pub(crate) fn not_seen(step: &'static str, NotSeen(why): &NotSeen) -> Self {
        Self { step, level: Level::NotSeen, text: format!("not looked at: {why}"), todo: None }
    }

    pub(crate) fn is_wrong(&self) -> bool {
        self.level == Level::Wrong
    }
}

/// What all of it comes to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Verdict {
    pub(crate) ok: bool,
    pub(crate) text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) todo: Option<String>,
}

impl Verdict {
    /// What is wrong first on the way is what the rest follows from.
    pub(crate) fn of(findings: &[Finding]) -> Self {
        if let Some(first) = findings.iter().find(|finding| finding.is_wrong()) {
            let more = findings.iter().filter(|finding| finding.is_wrong()).count() - 1;
            let more = if more == 0 { String::new() } else { format!(" (and {more} more above)") };
            return Self { ok: false, text: format!("{}{more}", first.text), todo: first.todo.clone() };
        }
        let blind = findings.iter().any(|finding| finding.level == Level::NotSeen);
        let text = if blind { "nothing is wrong in what could be looked at" } else { "nothing is wrong" };
        Self { ok: true, text: text.to_owned(), todo: None }
    }
}

/// Findings as people read them, and the verdict last.
pub(crate) fn shown(findings: &[Finding], verdict: &Verdict) -> String {
    let wide = findings.iter().map(|finding| finding.step.len()).max().unwrap_or_default();
    let mut text = String::new();
    for Finding { step, level, text: said, todo } in findings {
        let level = match level {
            Level::Ok => "ok",
            Level::Note => "-",
            Level::NotSeen => "?",
            Level::Wrong => "WRONG",
        };
        // A `String` takes everything.
        let _ = writeln!(text, "{level:<5}  {step:<wide$}  {}", plain(said));
        if let Some(todo) = todo {
            let _ = writeln!(text, "{:<5}  {:<wide$}  -> {}", "", "", plain(todo));
        }
    }
    let _ = writeln!(text, "\nverdict: {}", plain(&verdict.text));
    if let Some(todo) = &verdict.todo {
        let _ = writeln!(text, "next:    {}", plain(todo));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_fault_is_the_verdict() {
        let findings = [
            Finding::ok("pod", "is there"),
            Finding::wrong("pools", "full", "add some"),
            Finding::wrong("events", "no address\x1b", "wait"),
        ];
        let verdict = Verdict::of(&findings);
        assert_eq!((verdict.ok, verdict.text.as_str()), (false, "full (and 1 more above)"));
        let shown = shown(&findings, &verdict);
        assert!(shown.contains("WRONG  pools   full\n               -> add some\n"), "{shown}");
        assert!(shown.ends_with("\nverdict: full (and 1 more above)\nnext:    add some\n"), "{shown}");
        assert!(!shown.contains('\x1b'));
        assert!(Verdict::of(&findings[..1]).ok);
        let blind = [Finding::not_seen("events", &NotSeen("no right".to_owned()))];
        assert_eq!(Verdict::of(&blind).text, "nothing is wrong in what could be looked at");
    }
}
