//! The sandbox's network namespace, as its path shows it.

use crate::error::{Code, Fault};
use proto::agent::Netns;
use std::fs;
use std::os::unix::fs::MetadataExt;

/// All namespaces are on one file system, so any of them shows whether a path leads to one.
const OWN: &str = "/proc/self/ns/net";

/// Looks at `path`, which an ADD needs.
pub(crate) fn look(path: &str) -> Result<Netns, Fault> {
    let wrong = |why: String| Fault::new(Code::Environment, format!("CNI_NETNS is {path:?}: {why}"));
    let found = fs::metadata(path).map_err(|error| wrong(error.to_string()))?;
    if fs::metadata(OWN).is_ok_and(|own| own.dev() != found.dev()) {
        return Err(wrong("no network namespace is mounted there".to_owned()));
    }
    Ok(Netns { path: path.to_owned(), dev: found.dev(), inode: found.ino() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_namespace_is_one() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        for path in ["", "/nowhere", "/tmp", file.path().to_str().expect("text")] {
            let fault = look(path).expect_err(path);
            assert!(fault.code == 4 && fault.msg.starts_with("CNI_NETNS"), "{fault:?}");
        }
        assert_ne!(look(OWN).expect("a namespace").inode, 0);
    }
}
