//! What a user wrote, as it stands in a message.

use std::fmt;

/// More says nothing that the beginning does not.
const SHOWN: usize = 60;

/// A text in quotes, with what would break a line escaped, and cut where it is long. (`{:.80?}` cuts no text.)
#[derive(Clone, Copy, Debug)]
pub struct Quoted<'a>(pub &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(SHOWN) {
            None => write!(f, "{:?}", self.0),
            Some((end, _)) => write!(f, "{:?}…", self.0.get(..end).unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_and_all_are_one_line() {
        assert_eq!(Quoted("a\nb").to_string(), "\"a\\nb\"");
        assert_eq!(Quoted(&"ü".repeat(60)).to_string(), format!("\"{}\"", "ü".repeat(60)));
        assert_eq!(Quoted(&"ü".repeat(61)).to_string(), format!("\"{}\"…", "ü".repeat(60)));
    }
}
