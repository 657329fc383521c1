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

/// Everything that is wrong. Shown as one line, faults joined by `; `.
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
        for (n, fault) in self.0.iter().enumerate() {
            write!(f, "{}{fault}", if n == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}
