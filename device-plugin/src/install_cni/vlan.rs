//! A name that others use, too: the community's plugins have a `vlan`.

use crate::multus;
use proto::VLAN_MARK;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

pub(super) const NAME: &str = "vlan";
/// What was there before us.
const BEFORE: &str = "vlan.before-spiderpool";
/// Empty. With it a foreign `vlan` is one that came after ours.
const SEEN: &str = ".vlan.of-spiderpool";
/// Ours has 3 MB.
const MOST: u64 = 64 << 20;

/// Puts `program` there, unless somebody has put another one over ours since.
pub(super) fn install(program: &Path, into: &Path) -> io::Result<()> {
    let (to, before, seen) = (into.join(NAME), into.join(BEFORE), into.join(SEEN));
    if is_foreign(&to)? {
        if seen.exists() {
            tracing::warn!(path = %to.display(), "somebody has replaced the plugin vlan of this chart, and it is left alone: \
                pods on networks of a provider do not start here. Remove it and restart the agent to have this chart's");
            return Ok(());
        }
        // A name more, so that there is a vlan at any time. What a killed run kept is the same.
        multus::remove(&before)?;
        fs::hard_link(&to, &before).or_else(|_| fs::copy(&to, &before).map(drop))?;
        tracing::info!(path = %before.display(), "the vlan that was here is kept");
    }
    multus::install(program, &to)?;
    File::create(&seen)?.sync_all()
}

/// Puts back what was there before, in place of ours alone.
pub(super) fn restore(into: &Path) -> io::Result<()> {
    let (to, before, seen) = (into.join(NAME), into.join(BEFORE), into.join(SEEN));
    if !is_there(&before) {
        tracing::info!("there was no vlan before; this chart's stays, pods that run need it");
    } else if is_foreign(&to)? {
        tracing::info!(path = %to.display(), "somebody has replaced the plugin vlan of this chart; it stays");
        multus::remove(&before)?;
    } else {
        // Cut off behind this, it can be done again.
        multus::remove(&seen)?;
        fs::rename(&before, &to)?;
        tracing::info!(path = %to.display(), "the vlan of before is back");
    }
    multus::remove(&seen)
}

/// A link is, too, wherever it leads.
fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Whether a program is there that does not say that it is ours.
fn is_foreign(path: &Path) -> io::Result<bool> {
    if fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
        // Ours is none, and what it leads to is not to be seen from here.
        return Ok(true);
    }
    let mut content = Vec::new();
    match File::open(path) {
        Ok(file) => file.take(MOST).read_to_end(&mut content)?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    Ok(!content.windows(VLAN_MARK.len()).any(|part| part == VLAN_MARK.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    struct Host {
        folder: tempfile::TempDir,
    }

    impl Host {
        fn new(foreign: Option<&str>) -> Self {
            let host = Self { folder: tempfile::tempdir().expect("a folder") };
            fs::create_dir_all(host.bin()).expect("makes");
            if let Some(foreign) = foreign {
                host.put(foreign);
            }
            host
        }

        fn bin(&self) -> PathBuf {
            self.folder.path().join("bin")
        }

        fn put(&self, content: &str) {
            // As a package does: another file under the name.
            let new = self.folder.path().join("new");
            fs::write(&new, content).expect("writes");
            fs::rename(new, self.bin().join(NAME)).expect("renames");
        }

        /// Of a version.
        fn install(&self, version: &str) {
            let program = self.folder.path().join(NAME);
            fs::write(&program, format!("{version} {VLAN_MARK} ends")).expect("writes");
            install(&program, &self.bin()).expect("installs");
        }

        fn restore(&self) {
            restore(&self.bin()).expect("restores");
        }

        fn vlan(&self) -> String {
            let text = fs::read_to_string(self.bin().join(NAME)).expect("there");
            text.split(' ').next().expect("a word").to_owned()
        }

        fn others(&self) -> Vec<String> {
            let all = fs::read_dir(self.bin()).expect("reads").flatten();
            let mut names: Vec<_> = all.map(|file| file.file_name().into_string().expect("text")).collect();
            names.retain(|name| name != NAME);
            names.sort();
            names
        }
    }

    #[test]
    fn a_foreign_one_is_kept_and_comes_back() {
        let host = Host::new(Some("foreign"));
        for version in ["1", "1", "2"] {
            host.install(version);
            assert_eq!(host.vlan(), version);
            assert_eq!(fs::read_to_string(host.bin().join(BEFORE)).expect("kept"), "foreign");
        }
        host.restore();
        assert_eq!((host.vlan().as_str(), host.others().len()), ("foreign", 0));
        host.restore();
        host.install("3");
        assert_eq!((host.vlan().as_str(), host.others().len()), ("3", 2), "another release");
    }

    #[test]
    fn a_link_to_what_is_not_seen_from_here_is_kept() {
        let host = Host::new(None);
        std::os::unix::fs::symlink("/usr/lib/of-the-host/vlan", host.bin().join(NAME)).expect("links");
        host.install("1");
        host.install("2");
        assert_eq!(host.vlan(), "2");
        host.restore();
        let link = fs::read_link(host.bin().join(NAME)).expect("a link");
        assert_eq!(link, Path::new("/usr/lib/of-the-host/vlan"));
    }

    #[test]
    fn without_one_ours_stays() {
        let host = Host::new(None);
        host.install("1");
        host.restore();
        assert_eq!((host.vlan().as_str(), host.others().len()), ("1", 0));
        host.put("foreign");
        host.install("2");
        assert_eq!(host.vlan(), "2", "it came while we were not there");
    }

    #[test]
    fn one_that_came_later_is_left_alone() {
        for foreign in [None, Some("foreign")] {
            let host = Host::new(foreign);
            host.install("1");
            host.put("later");
            host.install("2");
            assert_eq!(host.vlan(), "later");
            host.restore();
            assert_eq!(host.vlan(), "later");
            assert!(!host.others().contains(&BEFORE.to_owned()), "nobody wants it any more");
        }
    }

    #[test]
    fn an_installation_that_was_cut_off_goes_on() {
        let host = Host::new(Some("foreign"));
        fs::hard_link(host.bin().join(NAME), host.bin().join(BEFORE)).expect("as a killed run left it");
        host.install("1");
        assert_eq!(fs::read_to_string(host.bin().join(BEFORE)).expect("kept"), "foreign");
        multus::remove(&host.bin().join(SEEN)).expect("as one left it that was killed a little later");
        host.install("2");
        assert_eq!(fs::read_to_string(host.bin().join(BEFORE)).expect("kept"), "foreign");
        host.restore();
        assert_eq!(host.vlan(), "foreign");
    }
}
