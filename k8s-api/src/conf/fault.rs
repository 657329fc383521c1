//! What is wrong with a configuration.

use std::fmt;

/// One thing that is wrong, with its line and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Line in the file, from 1; 0 where the parser knows none.
    pub line: u64,
    /// Names the value by the path that it has in the chart's values, and says what to do.
    pub text: String,
}

/// Everything that is wrong. Shown as one line, faults joined by `; `, the first [`SHOWN`] of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults(Vec<Fault>);

impl Faults {
    /// The faults, in the order of the text.
    #[must_use]
    pub fn all(&self) -> &[Fault] {
        &self.0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn push(&mut self, line: u64, text: String) {
        self.0.push(Fault { line, text });
    }

    /// Begins the text of each fault from the `from`th on with `words`.
    pub(super) fn preface(&mut self, from: usize, words: &str) {
        for fault in self.0.iter_mut().skip(from) {
            fault.text.insert_str(0, words);
        }
    }

    pub(super) fn in_order(mut self) -> Self {
        self.0.sort_by_key(|fault| fault.line);
        self
    }
}

impl std::error::Error for Faults {}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.text),
            line => write!(f, "line {line}: {}", self.text),
        }
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, fault) in self.0.iter().take(SHOWN).enumerate() {
            write!(f, "{}{fault}", if n == 0 { "" } else { "; " })?;
        }
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

/// A kubelet keeps the last 2 KiB of what a failed container said; the first faults must be in there.
const SHOWN: usize = 8;
/// What people wrote is repeated up to this many characters.
const REPEATED: usize = 60;

/// A text of the user's in a message: on one line, without control characters, and not too long.
pub(super) fn repeated(text: &str) -> String {
    let cut: String = text.chars().take(REPEATED).collect();
    let more = if cut.len() < text.len() { "…" } else { "" };
    if !cut.is_empty() && cut.chars().all(|c| c.is_ascii_graphic()) {
        format!("{cut}{more}")
    } else {
        format!("{cut:?}{more}")
    }
}
