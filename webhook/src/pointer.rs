//! Keys in the paths of JSON patches.

/// A key as one part of a JSON pointer: `~` is `~0` and `/` is `~1` (RFC 6901).
pub(crate) fn part(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
