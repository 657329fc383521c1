//! Files of the host: read, written whole or not at all, removed.

use std::collections::HashMap;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long another writer's content is left alone. While an upgrade replaces this pod, the new one writes its own token, and
/// this one is told to go once the new one is ready; if it is not told, the new one went instead.
const GIVE_WAY: Duration = Duration::from_secs(15);

/// A file as it should be.
pub(crate) struct Wanted {
    pub(crate) path: PathBuf,
    pub(crate) mode: u32,
    pub(crate) content: Vec<u8>,
    /// Others add to it, as service meshes do to the first network configuration; what they made of it stays.
    pub(crate) others_may_change: bool,
}

/// Without the content: it may be a token.
impl fmt::Debug for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wanted").field("path", &self.path).finish_non_exhaustive()
    }
}

/// What one look at a file leads to.
#[derive(Debug, PartialEq, Eq)]
enum Act {
    Nothing,
    Write,
    GiveWay,
}

/// `written` is what this process wrote last, `foreign` how long the file has been another's.
fn act(found: Option<&[u8]>, wanted: &Wanted, written: Option<&[u8]>, foreign: Duration) -> Act {
    match (found, written) {
        (Some(found), _) if found == wanted.content => Act::Nothing,
        (None, _) | (_, None) => Act::Write,
        // It is as we left it, so what we want has changed.
        (Some(found), Some(written)) if found == written => Act::Write,
        // Another's; and what we want has changed as well.
        (_, Some(written)) if wanted.others_may_change && written != wanted.content => Act::Write,
        _ if wanted.others_may_change => Act::Nothing,
        _ if foreign >= GIVE_WAY => Act::Write,
        _ => Act::GiveWay,
    }
}

/// What this process wrote, and since when a file has been another's.
#[derive(Default)]
pub(crate) struct Upkeep {
    written: HashMap<PathBuf, Vec<u8>>,
    foreign: HashMap<PathBuf, Instant>,
}

impl Upkeep {
    /// Looks at one file and does what that leads to.
    pub(crate) fn keep(&mut self, wanted: &Wanted) -> io::Result<()> {
        let found = read(&wanted.path)?;
        let foreign = self.foreign.get(&wanted.path).map(Instant::elapsed).unwrap_or_default();
        match act(found.as_deref(), wanted, self.written.get(&wanted.path).map(Vec::as_slice), foreign) {
            Act::GiveWay => {
                self.foreign.entry(wanted.path.clone()).or_insert_with(Instant::now);
                return Ok(());
            }
            Act::Nothing => {}
            Act::Write => {
                write(&wanted.path, wanted.mode, &mut wanted.content.as_slice())?;
                tracing::info!(path = %wanted.path.display(), "written");
            }
        }
        self.foreign.remove(&wanted.path);
        if self.written.get(&wanted.path) != Some(&wanted.content) {
            self.written.insert(wanted.path.clone(), wanted.content.clone());
        }
        Ok(())
    }
}

/// A folder of network configurations.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Names of the configurations, in the order in which runtimes take them.
    pub(crate) fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            let Ok(name) = entry?.file_name().into_string() else { continue };
            let extension = Path::new(&name).extension().and_then(|extension| extension.to_str());
            if matches!(extension, Some("conf" | "conflist" | "json")) {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    pub(crate) fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        fs::read(self.0.join(name))
    }
}

/// Copies a program to where others execute it. The same program again is left alone: the host's folder may lie in memory,
/// where a second copy would count as ours.
pub(crate) fn install(from: &Path, to: &Path) -> io::Result<()> {
    if length(from) == length(to) && same(from, to)? {
        return Ok(());
    }
    write(to, 0o755, &mut File::open(from)?)?;
    tracing::info!(path = %to.display(), "installed");
    Ok(())
}

/// Whether two files of one length have the same content; read in parts, they are large.
fn same(one: &Path, other: &Path) -> io::Result<bool> {
    let (mut one, mut other) = (BufReader::new(File::open(one)?), BufReader::new(File::open(other)?));
    loop {
        let (left, right) = (one.fill_buf()?, other.fill_buf()?);
        let length = left.len().min(right.len());
        if left.get(..length) != right.get(..length) {
            return Ok(false);
        }
        if length == 0 {
            return Ok(left.len() == right.len());
        }
        one.consume(length);
        other.consume(length);
    }
}

/// Length of a file; none if it is not there.
pub(crate) fn length(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|metadata| metadata.len())
}

/// Removes a file, or a folder with what is in it; fine if it is gone.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Readers see the old content or the new one, never a part. Runtimes do not look at files with such an ending.
fn write(path: &Path, mode: u32, content: &mut impl io::Read) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".spiderpool-new");
    let new = path.with_file_name(name);
    // What a killed writer left may have other rights.
    remove(&new)?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let written = OpenOptions::new().write(true).create_new(true).mode(mode).open(&new).and_then(|mut file| {
        io::copy(content, &mut file)?;
        file.flush()?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        // The name outlives a loss of power only with its folder.
        path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    });
    if written.is_err() {
        let _ = remove(&new);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn wanted(folder: &Path, content: &str) -> Wanted {
        Wanted { path: folder.join("file"), mode: 0o600, content: content.into(), others_may_change: false }
    }

    #[test]
    fn another_writer_is_given_way_for_a_while() {
        let mine = wanted(Path::new("/"), "mine");
        let now = Duration::ZERO;
        assert_eq!(act(Some(b"mine"), &mine, None, now), Act::Nothing);
        assert_eq!(act(Some(b"old"), &mine, None, now), Act::Write, "at the start it is ours");
        assert_eq!(act(Some(b"old"), &mine, Some(b"old"), now), Act::Write, "a renewed token");
        assert_eq!(act(Some(b"new"), &mine, Some(b"mine"), now), Act::GiveWay, "an upgrade's new pod");
        assert_eq!(act(Some(b"new"), &mine, Some(b"mine"), GIVE_WAY), Act::Write, "which went again");
        assert_eq!(act(None, &mine, Some(b"mine"), now), Act::Write, "somebody removed it");
    }

    #[test]
    fn what_others_add_to_a_configuration_stays() {
        let mine = Wanted { others_may_change: true, ..wanted(Path::new("/"), "mine") };
        assert_eq!(act(Some(b"mine, and a mesh"), &mine, Some(b"mine"), GIVE_WAY), Act::Nothing);
        assert_eq!(act(Some(b"before, and a mesh"), &mine, Some(b"before"), GIVE_WAY), Act::Write);
        assert_eq!(act(None, &mine, Some(b"mine"), Duration::ZERO), Act::Write);
    }

    #[test]
    fn files_are_replaced_whole_with_their_rights() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut upkeep = Upkeep::default();
        for content in ["first", "second"] {
            let wanted = wanted(folder.path(), content);
            // What a killed writer left.
            fs::write(folder.path().join("file.spiderpool-new"), "half").expect("writable");
            upkeep.keep(&wanted).expect("writable");
            assert_eq!(fs::read(&wanted.path).expect("there"), content.as_bytes());
            assert_eq!(fs::metadata(&wanted.path).expect("there").permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 1, "nothing else is left");
        remove(&folder.path().join("file")).expect("there");
        remove(&folder.path().join("file")).expect("gone is fine");
    }

    #[test]
    fn a_program_is_installed_once_and_replaced_when_it_differs() {
        let folder = tempfile::tempdir().expect("a folder");
        let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
        let inode = || std::os::unix::fs::MetadataExt::ino(&fs::metadata(&to).expect("there"));
        fs::write(&from, vec![7; 100_000]).expect("writable");
        install(&from, &to).expect("writable");
        assert_eq!(fs::metadata(&to).expect("there").permissions().mode() & 0o777, 0o755);
        let first = inode();
        install(&from, &to).expect("writable");
        assert_eq!(inode(), first, "not written anew");
        // Of the same length.
        fs::write(&from, [vec![7; 99_999], vec![8]].concat()).expect("writable");
        install(&from, &to).expect("writable");
        assert_eq!(fs::read(&from).expect("there"), fs::read(&to).expect("there"));
    }

    #[test]
    fn configurations_are_read_in_the_order_of_runtimes() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["10-b.conflist", "05-a.conf", "00-x.conf.bak", ".00-multus.conflist.spiderpool-new", "99.json"] {
            fs::write(folder.path().join(name), "{}").expect("writable");
        }
        fs::create_dir(folder.path().join("multus.d")).expect("writable");
        let names = Folder::new(folder.path().to_owned()).names().expect("readable");
        assert_eq!(names, ["05-a.conf", "10-b.conflist", "99.json"]);
    }
}
