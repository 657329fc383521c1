//! Paths of requests. Names come from requests and from objects that a node wrote; none leads to another path.

use ipam_core::StoreError;
use kube::core::Request;

/// Of `/apis/apps/v1/namespaces/NS/statefulsets` and the like: the collection of a kind in a namespace.
pub(crate) fn within(group_version: &str, namespace: &str, plural: &str) -> Result<Request, StoreError> {
    let root = if group_version.contains('/') { "apis" } else { "api" };
    Ok(Request::new(format!("/{root}/{group_version}/namespaces/{}/{plural}", name(namespace)?)))
}

/// `text`, if it can be the name of an object.
pub(crate) fn name(text: &str) -> Result<&str, StoreError> {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.';
    let legal = text.bytes().all(plain) && !text.is_empty() && text.len() <= 253 && !text.starts_with('.');
    if legal { Ok(text) } else { Err(StoreError::Refused(format!("{text:?} is no name of an object"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leads_elsewhere() {
        for text in ["", ".", "..", "a/b", "A", "a?b", "a%2fb", "a b", &"a".repeat(254)] {
            assert!(name(text).is_err(), "{text:?}");
            assert!(within("v1", text, "pods").is_err(), "{text:?}");
        }
        let path = within("apps/v1", "default", "statefulsets").expect("a path").url_path;
        assert_eq!(path, "/apis/apps/v1/namespaces/default/statefulsets");
        assert_eq!(within("v1", "default", "pods").expect("a path").url_path, "/api/v1/namespaces/default/pods");
    }
}
