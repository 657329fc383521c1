//! An error and its causes on one line. Errors do not print their sources themselves; this is the one place that does.

use std::error::Error;
use std::fmt;

/// Shows `error: cause: cause of the cause`.
pub struct Chain<'a>(pub &'a dyn Error);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut shown = self.0.to_string();
        let mut source = self.0.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            // Some libraries repeat their cause in their own text.
            if !shown.ends_with(&text) {
                write!(f, ": {text}")?;
            }
            shown = text;
            source = cause.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Step {
        text: &'static str,
        source: Option<Box<Step>>,
    }

    fn step(text: &'static str, source: Option<Step>) -> Step {
        Step { text, source: source.map(Box::new) }
    }

    #[test]
    fn prints_each_cause_once() {
        let error = step("cannot start", Some(step("cannot listen: in use", Some(step("in use", None)))));
        assert_eq!(Chain(&error).to_string(), "cannot start: cannot listen: in use");
    }
}
