//! Shell-style patterns for interface names, with the rules of Go's `path.Match`.
//!
//! `*` matches any run of characters but `/`, `?` any one but `/`, `[a-z]` a class, `[^a]` a negated class
//! (`[!a]` is *not* negated: it matches `!` or `a`), and `\` takes the next character literally.
//! A pattern covers the whole name. Unlike Go, which may stop reading a pattern as soon as a name does not match,
//! the whole pattern is checked when it is parsed.

use std::fmt;
use std::str::{Chars, FromStr};

/// A checked pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob {
    text: String,
    tokens: Vec<Token>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Literal(char),
    AnyOne,
    AnyRun,
    Class { negated: bool, ranges: Vec<(char, char)> },
}

/// The pattern breaks the grammar. The text is Go's, which users of existing systems search for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("syntax error in pattern")]
pub struct BadPattern;

impl Glob {
    /// Whether the pattern covers the whole of `name`.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        covers(&self.tokens, name.chars())
    }

    /// Whether the pattern is `name` itself, without any wildcard.
    #[must_use]
    pub fn spells_out(&self, name: &str) -> bool {
        let mut rest = name.chars();
        self.tokens.iter().all(|token| matches!(token, Token::Literal(c) if rest.next() == Some(*c)))
            && rest.next().is_none()
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Glob {
    type Err = BadPattern;

    fn from_str(text: &str) -> Result<Self, BadPattern> {
        let mut rest = text.chars();
        let mut tokens = Vec::new();
        while let Some(c) = rest.next() {
            tokens.push(match c {
                '*' if tokens.last() == Some(&Token::AnyRun) => continue,
                '*' => Token::AnyRun,
                '?' => Token::AnyOne,
                '[' => class(&mut rest)?,
                '\\' => Token::Literal(rest.next().ok_or(BadPattern)?),
                c => Token::Literal(c),
            });
        }
        Ok(Self { text: text.to_owned(), tokens })
    }
}

/// Reads a class after its `[`, up to and with its `]`.
fn class(rest: &mut Chars<'_>) -> Result<Token, BadPattern> {
    let negated = take(rest, '^');
    let mut ranges = Vec::new();
    loop {
        if !ranges.is_empty() && take(rest, ']') {
            return Ok(Token::Class { negated, ranges });
        }
        let low = bound(rest)?;
        let high = if take(rest, '-') { bound(rest)? } else { low };
        ranges.push((low, high));
    }
}

/// Reads one end of a range: neither `-` nor `]` unless escaped.
fn bound(rest: &mut Chars<'_>) -> Result<char, BadPattern> {
    match rest.next() {
        None | Some('-' | ']') => Err(BadPattern),
        Some('\\') => rest.next().ok_or(BadPattern),
        Some(c) => Ok(c),
    }
}

fn take(rest: &mut Chars<'_>, wanted: char) -> bool {
    let taken = rest.as_str().strip_prefix(wanted);
    if let Some(after) = taken {
        *rest = after.chars();
    }
    taken.is_some()
}

/// Matches with one remembered star: when the rest fails, the last `*` swallows one character more. That is enough,
/// since an earlier star never needs to take more than the shortest run that lets the later one be reached; the cost
/// is at most pattern times name.
fn covers(tokens: &[Token], mut name: Chars<'_>) -> bool {
    let mut tokens = tokens.iter();
    let mut star = None;
    loop {
        let before = (tokens.clone(), name.clone());
        let stepped = match (tokens.next(), name.next()) {
            (None, None) => return true,
            (Some(Token::AnyRun), _) => {
                name = before.1;
                star = Some((tokens.clone(), name.clone()));
                true
            }
            (Some(token), Some(c)) => token.takes(c),
            _ => false,
        };
        if stepped {
            continue;
        }
        let Some((after_star, mut from)) = star.take() else { return false };
        match from.next() {
            None | Some('/') => return false,
            Some(_) => {
                tokens = after_star.clone();
                name = from.clone();
                star = Some((after_star, from));
            }
        }
    }
}

impl Token {
    fn takes(&self, c: char) -> bool {
        match self {
            Self::Literal(literal) => *literal == c,
            Self::AnyOne => c != '/',
            Self::AnyRun => false,
            Self::Class { negated, ranges } => ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `testdata/glob.tsv` is printed by `testdata/glob.go`, that is by Go's own matcher.
    #[test]
    fn agrees_with_go() {
        let mut seen = 0;
        for line in include_str!("../testdata/glob.tsv").lines() {
            let [pattern, name, verdict] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line:?}") };
            let ours = match pattern.parse::<Glob>() {
                Err(BadPattern) => "bad",
                Ok(glob) if glob.matches(name) => "yes",
                Ok(_) => "no",
            };
            assert_eq!(ours, verdict, "pattern {pattern:?} on {name:?}");
            seen += 1;
        }
        assert!(seen > 3_000, "the table is there: {seen} rows");
    }

    #[test]
    fn many_stars_take_bounded_time() {
        let glob: Glob = "*a".repeat(200).parse().expect("legal");
        assert!(!glob.matches(&"a".repeat(2_000).replace("aaaaaaaaaa", "aaaaaaaaab")));
    }

    #[test]
    fn a_literal_spells_out_only_itself() {
        let spells = |pattern: &str, name| pattern.parse::<Glob>().expect("legal").spells_out(name);
        assert!(spells("tap0", "tap0"));
        assert!(spells(r"tap\0", "tap0"));
        assert!(!spells("tap0", "tap01"));
        assert!(!spells("tap01", "tap0"));
        assert!(!spells("tap?", "tap0"));
        assert!(!spells("*", "tap0"));
    }
}
