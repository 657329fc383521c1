//! The two grammars of Kubernetes names that everything here is made of (source: apimachinery `util/validation`).

/// Longest name part of a qualified name, and longest label value, in bytes.
pub(crate) const NAME_MAX: usize = 63;
/// Longest DNS subdomain in bytes (RFC 1123).
pub(crate) const SUBDOMAIN_MAX: usize = 253;

/// The name part of a qualified name, or a label value that is not empty.
pub(crate) fn is_name(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    text.len() <= NAME_MAX && bounded_by(text, |b| b.is_ascii_alphanumeric()) && text.bytes().all(inner)
}

/// RFC 1123 subdomain: labels of lower-case letters, digits and inner dashes, joined by dots.
pub(crate) fn is_subdomain(text: &str) -> bool {
    text.len() <= SUBDOMAIN_MAX && text.split('.').all(is_label)
}

/// Lower-case letters, digits and inner dashes, of any length.
pub(crate) fn is_label(text: &str) -> bool {
    let alphanumeric = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    bounded_by(text, alphanumeric) && text.bytes().all(|b| alphanumeric(b) || b == b'-')
}

/// `name` or `domain/name`: label keys and resource names.
pub(crate) fn is_qualified_name(text: &str) -> bool {
    match text.split_once('/') {
        None => is_name(text),
        Some((domain, name)) => is_subdomain(domain) && is_name(name),
    }
}

fn bounded_by(text: &str, end: impl Fn(u8) -> bool) -> bool {
    text.bytes().next().is_some_and(&end) && text.bytes().next_back().is_some_and(&end)
}
