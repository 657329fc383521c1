//! A folder of small files that are written whole or not at all.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::SystemTime;

/// The folder, with at most so many files. When there are more, the oldest go.
#[derive(Debug)]
pub(super) struct Records {
    folder: PathBuf,
    max: usize,
    /// So that two writers of one name do not meet in the temporary file.
    writes: AtomicU64,
    /// About as many as there are: a name that is written again counts until they are counted.
    count: AtomicUsize,
}

/// The name of a file here: it leads nowhere else and is not taken for a temporary one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name(String);

/// What reading a file came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    Content(Vec<u8>),
    Nothing,
    Unreadable,
}

/// What one interface has fits in a tenth of it.
const FILE_MAX: u64 = 64 << 10;
const NAME_MAX: usize = 200;

impl Name {
    pub(super) fn new(text: &str) -> Option<Self> {
        let odd = |c: char| c == '/' || c.is_control();
        let fine = !text.is_empty() && text.len() <= NAME_MAX && !text.starts_with('.') && !text.contains(odd);
        fine.then(|| Self(text.to_owned()))
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }
}

impl Records {
    pub(super) fn open(folder: PathBuf, max: usize) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let mut count = 0;
        for entry in fs::read_dir(&folder)?.flatten() {
            // Of a writer that was killed.
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                fs::remove_file(entry.path())?;
            } else {
                count += 1;
            }
        }
        Ok(Self { folder, max, writes: AtomicU64::new(0), count: AtomicUsize::new(count) })
    }

    pub(super) fn read(&self, name: &Name) -> Found {
        let mut content = Vec::new();
        let read = File::open(self.folder.join(&name.0)).and_then(|file| file.take(FILE_MAX).read_to_end(&mut content));
        match read {
            Ok(_) => Found::Content(content),
            // Without the folder there is no disk.
            Err(error) if error.kind() == ErrorKind::NotFound && self.folder.is_dir() => Found::Nothing,
            Err(error) => {
                tracing::warn!(folder = %self.folder.display(), name = name.0, %error, "cannot read");
                Found::Unreadable
            }
        }
    }

    /// When it returns, the file is whole, and outlives the process.
    pub(super) fn write(&self, name: &Name, content: &[u8]) -> io::Result<()> {
        let turn = self.writes.fetch_add(1, Ordering::Relaxed);
        let temporary = self.folder.join(format!(".{turn}"));
        let written =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary).and_then(|mut file| {
                file.write_all(content)?;
                fs::rename(&temporary, self.folder.join(&name.0))
            });
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        if self.count.fetch_add(1, Ordering::Relaxed) >= self.max {
            self.prune();
        }
        written
    }

    /// A tenth at once, so that the folder is not read through for each file.
    fn prune(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        let paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        if paths.len() <= self.max {
            self.count.store(paths.len(), Ordering::Relaxed);
            return;
        }
        let age =
            |path: &PathBuf| fs::metadata(path).and_then(|meta| meta.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        let mut dated: Vec<(SystemTime, PathBuf)> = paths.into_iter().map(|path| (age(&path), path)).collect();
        dated.sort_unstable();
        let surplus = dated.len().saturating_sub(self.max.saturating_sub(self.max / 10));
        self.count.store(dated.len().saturating_sub(surplus), Ordering::Relaxed);
        for (_, path) in dated.into_iter().take(surplus) {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).expect("a name")
    }

    #[test]
    fn names_stay_in_the_folder() {
        for odd in ["", ".", "..", "../x", "a/b", ".hidden", "a\0b", &"x".repeat(201)] {
            assert_eq!(Name::new(odd), None, "{odd:?}");
        }
    }

    #[test]
    fn absent_is_not_unreadable() {
        let folder = tempfile::tempdir().expect("a folder");
        let records = Records::open(folder.path().join("a/b"), 10).expect("opens");
        assert_eq!(records.read(&name("x")), Found::Nothing);
        records.write(&name("x"), b"1").expect("writes");
        records.write(&name("x"), b"2").expect("replaces");
        assert_eq!(records.read(&name("x")), Found::Content(b"2".to_vec()));
        fs::create_dir(folder.path().join("a/b/folder")).expect("makes");
        assert_eq!(records.read(&name("folder")), Found::Unreadable);
        drop(folder);
        assert_eq!(records.read(&name("x")), Found::Unreadable, "the disk is gone");
        assert!(records.write(&name("x"), b"3").is_err());
    }

    #[test]
    fn what_a_killed_writer_left_goes_and_the_oldest_go_when_there_are_many() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join(".7"), "half").expect("writes");
        let records = Records::open(folder.path().to_owned(), 20).expect("opens");
        for number in 0..25_u32 {
            records.write(&name(&format!("n{number}")), b"").expect("writes");
        }
        let left = fs::read_dir(folder.path()).expect("reads").count();
        assert!((18..=20).contains(&left), "{left}");
        let has = |text: &str| records.read(&name(text)) != Found::Nothing;
        assert!(has("n24") && !has("n0"));
    }
}
