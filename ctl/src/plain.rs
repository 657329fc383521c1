//! Text for a terminal: what others wrote must not move its cursor, colour it, or turn it around.

use std::borrow::Cow;

/// Controls of both blocks, and what changes the direction of what follows.
fn is_odd(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// `text` on one line, with everything odd written out.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(is_odd) {
        return text.into();
    }
    text.chars().map(|c| if is_odd(c) { c.escape_default().to_string() } else { c.to_string() }).collect()
}

/// JSON whose texts have what JSON lets pass but terminals obey written out as well. Outside of its texts nothing odd but
/// line breaks stands.
pub(crate) fn plain_json(json: &str) -> String {
    let odd = |c: char| is_odd(c) && c != '\n';
    json.chars().map(|c| if odd(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        assert_eq!(plain("ü web-0"), "ü web-0");
        assert_eq!(plain("a\x1b[31m\n\u{9b}b\u{202e}"), "a\\u{1b}[31m\\n\\u{9b}b\\u{202e}");
        let json = serde_json::to_string("a\x1b\u{9b}\u{202e}ü").expect("JSON");
        let shown = plain_json(&json);
        assert_eq!(shown, "\"a\\u001b\\u009b\\u202eü\"");
        assert_eq!(serde_json::from_str::<String>(&shown).expect("JSON still"), "a\u{1b}\u{9b}\u{202e}ü");
    }
}
