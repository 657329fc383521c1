//! What the checks found, for people and for programs.

use super::cases::{Seen, Short};
use super::id::{Id, Level};
use serde::Serialize;
use std::fmt;

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As the contract says.
    Ok,
    /// Not so.
    Fail,
    /// It could not be seen.
    Skip,
}

/// A check and its end.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// Which check.
    pub check: &'static str,
    /// Whether pods suffer.
    pub level: Level,
    /// How it ended.
    pub verdict: Verdict,
    /// What was asked.
    pub asked: String,
    /// What came.
    pub came: String,
    /// What the contract says.
    pub contract: &'static str,
    /// What to do.
    pub remedy: &'static str,
}

/// All of them.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// In the order in which they ran.
    pub lines: Vec<Line>,
    /// Somebody stopped it before its end.
    pub stopped: bool,
    /// Addresses that may still be bound: their release was not answered 2xx.
    pub left_bound: Vec<String>,
}

impl Report {
    /// All checks ran, none failed, and nothing is left behind.
    #[must_use]
    pub fn is_good(&self) -> bool {
        let failed = self.lines.iter().any(|line| line.verdict == Verdict::Fail);
        !failed && !self.stopped && self.left_bound.is_empty()
    }
}

impl Line {
    pub(super) fn of(id: Id, seen: Seen) -> Self {
        let about = id.about();
        let (verdict, asked, came) = match seen {
            Ok(came) => (Verdict::Ok, String::new(), came),
            Err(Short { verdict, asked, came }) => (verdict, asked, came),
        };
        let super::About { name, level, contract, remedy } = about;
        Self { check: name, level, verdict, asked, came, contract, remedy }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Must => "must",
            Level::Should => "should",
        };
        let Self { check, came, .. } = self;
        match self.verdict {
            Verdict::Ok => write!(f, "ok    {check} ({level}): {came}"),
            Verdict::Skip => write!(f, "skip  {check} ({level}): {came}"),
            Verdict::Fail => {
                writeln!(f, "FAIL  {check} ({level})")?;
                writeln!(f, "      asked:    {}", self.asked)?;
                writeln!(f, "      came:     {came}")?;
                writeln!(f, "      contract: {}", self.contract)?;
                write!(f, "      do:       {}", self.remedy)
            }
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |verdict| self.lines.iter().filter(|line| line.verdict == verdict).count();
        let (ok, fail, skip) = (count(Verdict::Ok), count(Verdict::Fail), count(Verdict::Skip));
        write!(f, "{ok} ok, {fail} failed, {skip} skipped")?;
        if self.stopped {
            write!(f, "; stopped before the end")?;
        }
        if !self.left_bound.is_empty() {
            let left = self.left_bound.join(", ");
            write!(f, "\nmay still be bound, since their release was not answered 2xx; release them by hand: {left}")?;
        }
        Ok(())
    }
}
