//! Texts of others, fit to be shown to people.

/// No more is shown of an answer.
const MOST: usize = 256;

/// On one line, without what a terminal might take for orders, and not longer than people read.
pub(crate) fn printable(text: &str) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() || c == '\u{fffd}' { ' ' } else { c }).collect();
    let clean = clean.split_whitespace().collect::<Vec<_>>().join(" ");
    match clean.char_indices().nth(MOST) {
        None => clean,
        Some((at, _)) => format!("{}…", clean.get(..at).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_lengths_are_taken_out() {
        assert_eq!(printable(" a\r\n\u{1b}[31m b\t\u{0}"), "a [31m b");
        let long = printable(&"é".repeat(5000));
        assert_eq!((long.chars().count(), long.ends_with('…')), (MOST + 1, true));
        assert_eq!(printable(&"x".repeat(MOST)).len(), MOST);
    }
}
