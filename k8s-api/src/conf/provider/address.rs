//! A provider's URL: where calls go, and the identity that allocations record.

use std::fmt::Write;
use url::{ParseError, Url};

/// A URL that passed every check.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Address {
    /// Without user-info and fragment, normalised.
    pub id: String,
    /// As it was written, without its fragment: that is never sent.
    pub url: Url,
}

/// Why a text is no URL of a provider. Never with the text: it may carry a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Wrong {
    #[error("must start with http:// or https://")]
    Scheme,
    #[error("must not contain blanks, control characters or backslashes")]
    Characters,
    #[error("is longer than {BYTES_MAX} characters")]
    Long,
    #[error("host is empty")]
    Host,
    /// Behind the host, where a password went that has one of `/?#` in it.
    #[error("has an @ behind its host; write it as %40, and in a password / as %2F, ? as %3F, # as %23")]
    At,
    #[error(transparent)]
    Unparsable(#[from] ParseError),
}

/// Every allocation repeats it.
const BYTES_MAX: usize = 2048;

impl std::str::FromStr for Address {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        let (scheme, rest) = text.split_once("://").ok_or(Wrong::Scheme)?;
        if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
            return Err(Wrong::Scheme);
        }
        // The parser drops some of these and reads others as slashes.
        if text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '\\') {
            return Err(Wrong::Characters);
        }
        if text.len() > BYTES_MAX {
            return Err(Wrong::Long);
        }
        let (authority, behind) = split(rest);
        // The parser would take the first part of the path for the host.
        if host(authority).is_empty() || host(authority).starts_with(':') {
            return Err(Wrong::Host);
        }
        if behind.contains('@') {
            return Err(Wrong::At);
        }
        let mut url = Url::parse(text)?;
        url.set_fragment(None);
        Ok(Self { id: id(&url), url })
    }
}

/// The text for a message: without user-info, query and fragment. None where it is no URL at all, or one of which nobody
/// knows what is a password.
pub(super) fn shown(text: &str) -> Option<String> {
    if !matches!(Url::parse(text), Ok(_) | Err(ParseError::EmptyHost)) {
        return None;
    }
    let (scheme, rest) = text.split_once("://")?;
    let (authority, behind) = split(rest);
    if scheme.contains('@') || behind.contains('@') {
        return None;
    }
    let path = behind.split(['?', '#']).next().unwrap_or_default();
    Some(format!("{scheme}://{}{path}", host(authority)))
}

/// At the end of the authority.
fn split(rest: &str) -> (&str, &str) {
    rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()))
}

/// What stands behind the user-info: host and port.
fn host(authority: &str) -> &str {
    authority.rsplit('@').next().unwrap_or_default()
}

/// The parser has written scheme and host in lower case already, and left out the default port.
fn id(url: &Url) -> String {
    let mut id = format!("{}://{}", url.scheme(), url.host_str().unwrap_or_default());
    if let Some(port) = url.port() {
        // Writing to a String does not fail.
        let _ = write!(id, ":{port}");
    }
    id.push_str(url.path().trim_end_matches('/'));
    if let Some(query) = url.query().filter(|query| !query.is_empty()) {
        id.push('?');
        id.push_str(query);
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_provider_has_one_identity() {
        for (text, id) in [
            ("http://h", "http://h"),
            ("HTTP://H:80/", "http://h"),
            ("http://user:S3cret@h/#here", "http://h"),
            ("https://h:443", "https://h"),
            ("https://h:80/base/", "https://h:80/base"),
            ("http://h/Base//", "http://h/Base"),
            ("http://[FD00::0:1]:8080", "http://[fd00::1]:8080"),
            ("http://h/?zone=A", "http://h?zone=A"),
            ("http://h/?", "http://h"),
        ] {
            assert_eq!(text.parse::<Address>().map(|address| address.id), Ok(id.to_owned()), "{text}");
        }
    }

    #[test]
    fn calls_go_where_it_was_written() {
        let address: Address = "http://user:S3cret@h:80/base/?zone=a#x".parse().expect("valid");
        assert_eq!(address.url.as_str(), "http://user:S3cret@h/base/?zone=a");
    }

    #[test]
    fn what_is_no_url_of_a_provider() {
        for (text, wrong) in [
            ("", Wrong::Scheme),
            ("ftp://x", Wrong::Scheme),
            ("localhost:8080", Wrong::Scheme),
            ("//x", Wrong::Scheme),
            ("http:/x", Wrong::Scheme),
            ("http://", Wrong::Host),
            ("http:///path", Wrong::Host),
            ("http://:80", Wrong::Host),
            ("http://user@:80", Wrong::Host),
            ("http://user:pw@", Wrong::Host),
            ("http://?x", Wrong::Host),
            ("http:// x", Wrong::Characters),
            ("http://x ", Wrong::Characters),
            ("http://x\n", Wrong::Characters),
            ("http://x\u{7}", Wrong::Characters),
            ("http://x\\y", Wrong::Characters),
            ("http://user:a/b@h", Wrong::At),
            ("http://user:1?b@h", Wrong::At),
            ("http://user:1#b@h", Wrong::At),
            ("http://h:port", Wrong::Unparsable(ParseError::InvalidPort)),
            ("http://h:65536", Wrong::Unparsable(ParseError::InvalidPort)),
            ("http://[fd00::x]", Wrong::Unparsable(ParseError::InvalidIpv6Address)),
        ] {
            assert_eq!(text.parse::<Address>().err(), Some(wrong), "{text:?}");
        }
        assert_eq!(format!("http://{}", "x/".repeat(BYTES_MAX)).parse::<Address>().err(), Some(Wrong::Long));
    }

    #[test]
    fn a_message_has_no_password() {
        for (text, said) in [
            ("ftp://x", Some("ftp://x")),
            ("http://", Some("http://")),
            ("http://user:S3cret@/x", Some("http:///x")),
            ("ftp://user:S3cret@h/x?S3cret#S3cret", Some("ftp://h/x")),
            ("ftp://user:S3@cret@h", Some("ftp://h")),
            ("ftp://user:12/S3cret@h", None),
            ("ftp://user:12?S3cret@h", None),
            ("user:S3cret@h", None),
            ("user:S3cret@h://x", None),
            ("x:/user:S3cret@h", None),
            ("10.0.0.1:80", None),
            ("http://user:S3cret@h:port", None),
        ] {
            assert_eq!(shown(text).as_deref(), said, "{text}");
        }
    }

    proptest! {
        #[test]
        fn an_identity_is_its_own(text in "(http|https)://([a-z]{1,3}(:[a-z]{0,3})?@)?[a-zA-Z0-9.]{1,8}(:[0-9]{1,4})?(/[a-zA-Z./%@]{0,8})?([?#][a-z]{0,3})?") {
            if let Ok(address) = text.parse::<Address>() {
                let again: Address = address.id.parse().expect("an identity is a URL");
                prop_assert_eq!(again.id, address.id);
            }
        }

        #[test]
        fn nothing_panics(text in "\\PC{0,40}") {
            let _ = (text.parse::<Address>().is_ok(), shown(&text));
        }
    }
}
