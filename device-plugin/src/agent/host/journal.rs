//! Names that outlive the process: a file of lines, each added by one write. A file for each name would cost a file system far
//! more, for a runtime that repeats itself.

use super::records::Name;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// At most so many names. When there are more, the oldest go.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    max: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: File,
    lines: usize,
    names: Names,
}

#[derive(Debug, Default)]
struct Names {
    turns: HashMap<String, u64>,
    by_age: BTreeMap<u64, String>,
    turn: u64,
}

/// Lines that a file may have for each name that may be remembered. Then it is written anew.
const LINES: usize = 4;
/// A name is 200 bytes at the most, and a file is never longer than its lines.
const LINE_MAX: usize = 202;

impl Journal {
    /// With what an earlier process noted there.
    pub(super) fn open(path: PathBuf, max: usize) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let names = match File::open(&path) {
            Ok(file) => {
                let mut text = Vec::new();
                let most = u64::try_from(max * LINES * LINE_MAX).unwrap_or(u64::MAX);
                file.take(most).read_to_end(&mut text)?;
                Names::read(&text, max)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Names::default(),
            Err(error) => return Err(error),
        };
        let state = Mutex::new(State { file: write(&path, &names)?, lines: names.turns.len(), names });
        Ok(Self { path, max, state })
    }

    pub(super) fn has(&self, name: &Name) -> bool {
        self.state().names.turns.contains_key(name.text())
    }

    /// When it returns, the name outlives the process. After an error this process knows it all the same.
    pub(super) fn add(&self, name: &Name) -> io::Result<()> {
        let mut state = self.state();
        if state.names.add(name.text(), self.max) { self.note(&mut state, '+', name) } else { Ok(()) }
    }

    /// Fine if there is none.
    pub(super) fn remove(&self, name: &Name) -> io::Result<()> {
        let mut state = self.state();
        if state.names.remove(name.text()) { self.note(&mut state, '-', name) } else { Ok(()) }
    }

    fn note(&self, state: &mut State, sign: char, name: &Name) -> io::Result<()> {
        if state.lines >= self.max * LINES {
            (state.file, state.lines) = (write(&self.path, &state.names)?, state.names.turns.len());
            return Ok(());
        }
        state.lines += 1;
        let written = state.file.write_all(format!("{sign}{}\n", name.text()).as_bytes());
        if written.is_err() {
            // Half a line may be there; the next one is not to go on from it.
            state.lines = self.max * LINES;
        }
        written
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in it panics half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The whole file anew. Adds what comes later.
fn write(path: &PathBuf, names: &Names) -> io::Result<File> {
    let temporary = path.with_extension("new");
    let mut file = OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&temporary)?;
    let lines: String = names.by_age.values().flat_map(|name| ["+", name, "\n"]).collect();
    file.write_all(lines.as_bytes())?;
    fs::rename(&temporary, path)?;
    Ok(file)
}

impl Names {
    /// What is not a line, such as the beginning of one, says nothing.
    fn read(text: &[u8], max: usize) -> Self {
        let mut names = Self::default();
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\n").and_then(|line| std::str::from_utf8(line).ok());
            let Some((sign, name)) = line.and_then(|line| line.split_at_checked(1)) else { continue };
            let Some(name) = Name::new(name) else { continue };
            match sign {
                "+" => names.add(name.text(), max),
                "-" => names.remove(name.text()),
                _ => false,
            };
        }
        names
    }

    /// Whether it is new.
    fn add(&mut self, name: &str, max: usize) -> bool {
        if self.turns.contains_key(name) {
            return false;
        }
        self.turn += 1;
        self.turns.insert(name.to_owned(), self.turn);
        self.by_age.insert(self.turn, name.to_owned());
        if self.turns.len() > max
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.turns.remove(&oldest);
        }
        true
    }

    /// Whether it was there.
    fn remove(&mut self, name: &str) -> bool {
        self.turns.remove(name).is_some_and(|turn| self.by_age.remove(&turn).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).expect("a name")
    }

    fn has(journal: &Journal, names: &[&str]) -> Vec<bool> {
        names.iter().map(|text| journal.has(&name(text))).collect()
    }

    #[test]
    fn what_is_noted_outlives_the_process() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a/names");
        let journal = Journal::open(path.clone(), 10).expect("opens");
        for text in ["a", "b", "c", "b"] {
            journal.add(&name(text)).expect("notes");
        }
        journal.remove(&name("a")).expect("notes");
        journal.remove(&name("never")).expect("fine");
        assert_eq!(fs::read_to_string(&path).expect("reads"), "+a\n+b\n+c\n-a\n");
        assert_eq!(has(&journal, &["a", "b", "c"]), [false, true, true]);
        let next = Journal::open(path, 10).expect("opens");
        assert_eq!(has(&next, &["a", "b", "c", "never"]), [false, true, true, false]);
    }

    #[test]
    fn a_torn_end_and_odd_lines_say_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("names");
        fs::write(&path, b"+a\n\nb\n+../x\n+\xff\n?c\n-\n+d\n+e-without-an-en").expect("writes");
        let journal = Journal::open(path.clone(), 10).expect("opens");
        assert_eq!(has(&journal, &["a", "b", "c", "d", "e-without-an-en"]), [true, false, false, true, false]);
        journal.add(&name("f")).expect("notes");
        assert_eq!(fs::read_to_string(&path).expect("reads"), "+a\n+d\n+f\n", "what comes next begins a line");
    }

    #[test]
    fn the_oldest_go_and_the_file_stays_short() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("names");
        let journal = Journal::open(path.clone(), 3).expect("opens");
        for round in 0..40 {
            journal.add(&name(&format!("n{round}"))).expect("notes");
            let lines = fs::read_to_string(&path).expect("reads").lines().count();
            assert!(lines <= 3 * LINES, "{lines}");
        }
        let kept = ["n36", "n37", "n38", "n39"];
        assert_eq!(has(&journal, &kept), [false, true, true, true]);
        assert_eq!(has(&Journal::open(path, 3).expect("opens"), &kept), [false, true, true, true]);
    }

    #[test]
    fn without_a_disk_it_is_known_all_the_same() {
        let folder = tempfile::tempdir().expect("a folder");
        let journal = Journal::open(folder.path().join("names"), 1).expect("opens");
        drop(folder);
        let failed = (0..6).filter(|n| journal.add(&name(&format!("n{n}"))).is_err()).count();
        assert!(failed > 0, "the file cannot be written anew");
        assert!(journal.has(&name("n5")));
    }
}
