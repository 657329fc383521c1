//! Whether a sandbox is there, by its network namespace.

use ipam_core::Netns;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What stat(2) says of a path; zeros if it says nothing.
pub(super) fn netns(path: &Path) -> Netns {
    let meta = fs::metadata(path).ok();
    let (dev, inode) = meta.map(|meta| (meta.dev(), meta.ino())).unwrap_or_default();
    Netns { path: path.display().to_string(), dev, inode }
}

/// Whether it is certainly gone: there is another at its path, or none. A folder that is not there either is one that was
/// not mounted, and an error is no proof.
pub(super) fn gone(recorded: &Netns) -> bool {
    let path = Path::new(&recorded.path);
    match fs::metadata(path) {
        Ok(meta) => (meta.dev(), meta.ino()) != (recorded.dev, recorded.inode),
        Err(error) if error.kind() == ErrorKind::NotFound => path.parent().is_some_and(Path::is_dir),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gone_is_what_is_certainly_gone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("netns");
        fs::write(&path, "").expect("writes");
        let recorded = netns(&path);
        assert!(!gone(&recorded));
        // Both exist at once, so that the inodes differ.
        fs::write(folder.path().join("other"), "").expect("writes");
        fs::rename(folder.path().join("other"), &path).expect("renames");
        assert!(gone(&recorded), "another one");
        fs::remove_file(&path).expect("removes");
        assert!(gone(&recorded), "none");
        drop(folder);
        assert!(!gone(&recorded), "without its folder nobody knows");
    }
}
