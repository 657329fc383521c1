//! What is wrong with an annotation.

use std::fmt;

/// Whose annotation it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "kinds of Kubernetes")]
pub enum Owner {
    Pod,
    Namespace,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Path in the annotation (`[0].ipv4[1]`); empty for the whole of it.
    pub field: String,
    /// What is wrong there, and what to do.
    pub text: String,
}

/// Everything that is wrong with one annotation; the first [`SHOWN`] are shown, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidAnnotation {
    /// Whose it is.
    pub owner: Owner,
    /// Its key.
    pub annotation: &'static str,
    /// At least one.
    pub faults: Vec<Fault>,
}

/// More would be cut by those who show it.
const SHOWN: usize = 4;

impl std::error::Error for InvalidAnnotation {}

impl fmt::Display for InvalidAnnotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { owner, annotation, faults } = self;
        write!(f, "wrong input, invalid format of {owner:?} annotation '{annotation}'")?;
        for (n, Fault { field, text }) in faults.iter().take(SHOWN).enumerate() {
            let before = if n == 0 { ": " } else { "; " };
            let colon = if field.is_empty() { "" } else { ": " };
            write!(f, "{before}{field}{colon}{text}")?;
        }
        match faults.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}
