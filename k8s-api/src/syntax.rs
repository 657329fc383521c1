//! The two grammars of Kubernetes names that everything here is made of (source: apimachinery `util/validation`).

/// Longest name part of a qualified name, and longest label value, in bytes.
pub const NAME_MAX: usize = 63;
/// Longest DNS subdomain in bytes (RFC 1123).
pub const SUBDOMAIN_MAX: usize = 253;

/// The name part of a qualified name, or a label value that is not empty.
#[must_use]
pub fn is_name(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    text.len() <= NAME_MAX && bounded_by(text, |b| b.is_ascii_alphanumeric()) && text.bytes().all(inner)
}

/// RFC 1123 subdomain: labels of lower-case letters, digits and inner dashes, joined by dots.
#[must_use]
pub fn is_subdomain(text: &str) -> bool {
    text.len() <= SUBDOMAIN_MAX && text.split('.').all(is_label)
}

/// Lower-case letters, digits and inner dashes, of any length.
#[must_use]
pub fn is_label(text: &str) -> bool {
    let alphanumeric = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    bounded_by(text, alphanumeric) && text.bytes().all(|b| alphanumeric(b) || b == b'-')
}

/// `name` or `domain/name`: label keys and resource names.
#[must_use]
pub fn is_qualified_name(text: &str) -> bool {
    match text.split_once('/') {
        None => is_name(text),
        Some((domain, name)) => is_subdomain(domain) && is_name(name),
    }
}

/// Name of a namespace.
#[must_use]
pub fn is_namespace(text: &str) -> bool {
    text.len() <= NAME_MAX && is_label(text)
}

/// Value of a label; it may be empty.
#[must_use]
pub fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_name(text)
}

fn bounded_by(text: &str, end: impl Fn(u8) -> bool) -> bool {
    text.bytes().next().is_some_and(&end) && text.bytes().next_back().is_some_and(&end)
}
