//! Which kubelets can talk to us.

/// Kubelets before this one send the socket's path as `:authority`, which HTTP/2 forbids and our server's library refuses
/// before any handler runs (kubernetes/kubernetes#112597).
const OLDEST: (u32, u32) = (1, 26);

/// What is wrong with a kubelet of this version, if anything is. A version that cannot be read is not complained about.
pub(crate) fn complaint(version: &str) -> Option<String> {
    let (major, minor) = parse(version)?;
    ((major, minor) < OLDEST).then(|| {
        format!(
            "the kubelet is {version}; before v{}.{} it cannot use this device plugin, so no network resource will show. \
             Upgrade the kubelet",
            OLDEST.0, OLDEST.1
        )
    })
}

fn parse(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.strip_prefix('v')?.split('.');
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next()?.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().ok()?;
    Some((major, minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_kubelets_that_are_too_old_are_complained_about() {
        for version in ["v1.26.0", "v1.36.3", "v1.33.1-eks-1234", "v1.30+", "v2.0.0", "", "unknown", "v1"] {
            assert_eq!(complaint(version), None, "{version}");
        }
        for version in ["v1.25.16", "v1.20.0-rc.1", "v0.36.0", "v1.9+"] {
            assert!(complaint(version).is_some_and(|text| text.contains(version)), "{version}");
        }
    }
}
