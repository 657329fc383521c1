//! The log file of all runs. Nothing that goes wrong here changes what a run answers.

use crate::time::stamp;
use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Severity of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Error,
    Warn,
    Info,
    Debug,
}

/// Where lines go, and how many of them are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Log {
    path: PathBuf,
    least: Level,
    max_bytes: u64,
    max_age: Duration,
    max_files: u64,
}

const PATH: &str = "/var/log/spidernet/spiderpool.log";
const MAX_MEGABYTES: u64 = 100;
const MAX_DAYS: u64 = 30;
const MAX_FILES: u64 = 10;
/// Rotation renames each file; a typing error must not make it a thousand.
const MOST_FILES: u64 = 100;

impl Log {
    /// Of the section `ipam`. What is not usable there is taken for absent: a typing error in a size is no reason for a pod
    /// not to start.
    pub(crate) fn of(conf: &Value) -> Self {
        let key = |key: &str| conf.get("ipam").and_then(|ipam| ipam.get(key));
        let number = |name: &str, default: u64| key(name).and_then(Value::as_u64).filter(|n| *n > 0).unwrap_or(default);
        let path = key("log_file_path").and_then(Value::as_str).map(Path::new).filter(|path| path.is_absolute());
        let least = key("log_level").and_then(Value::as_str).map(str::to_ascii_lowercase);
        Self {
            path: path.unwrap_or(Path::new(PATH)).to_owned(),
            least: match least.as_deref() {
                Some("error" | "fatal" | "panic" | "dpanic") => Level::Error,
                Some("warn" | "warning") => Level::Warn,
                Some("debug") => Level::Debug,
                _ => Level::Info,
            },
            max_bytes: number("log_file_max_size", MAX_MEGABYTES).saturating_mul(1 << 20),
            max_age: Duration::from_secs(number("log_file_max_age", MAX_DAYS).saturating_mul(86_400)),
            max_files: number("log_file_max_count", MAX_FILES).min(MOST_FILES),
        }
    }

    /// One line, whole or not at all: lines of runs at the same time do not mix.
    pub(crate) fn write(&self, level: Level, text: &str) {
        if level > self.least {
            return;
        }
        let level = match level {
            Level::Error => "ERROR",
            Level::Warn => "WARN",
            Level::Info => "INFO",
            Level::Debug => "DEBUG",
        };
        let line = format!("{} {level} {} {}\n", stamp(SystemTime::now()), std::process::id(), text.escape_debug());
        // There is nobody to tell: stdout is the answer, and some runtimes take stderr for part of it.
        let _ = self.append(line.as_bytes());
    }

    fn append(&self, line: &[u8]) -> io::Result<()> {
        let mut file = self.open()?;
        if file.metadata()?.len() >= self.max_bytes && file.try_lock().is_ok() && self.is(&file)? {
            self.rotate()?;
            file = self.open()?;
        }
        file.write_all(line)
    }

    /// A pipe would be waited for, and what goes to the answer's place would be taken for part of it.
    fn open(&self) -> io::Result<File> {
        if let Ok(there) = fs::metadata(&self.path) {
            let answer = fs::metadata("/proc/self/fd/1").ok();
            let same = answer.is_some_and(|answer| (answer.dev(), answer.ino()) == (there.dev(), there.ino()));
            if !there.is_file() || same {
                return Err(io::Error::other("no file of its own"));
            }
        }
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)
    }

    /// Another run may have rotated between our open and our lock.
    fn is(&self, file: &File) -> io::Result<bool> {
        let (here, there) = (file.metadata()?, fs::metadata(&self.path)?);
        Ok((here.dev(), here.ino()) == (there.dev(), there.ino()))
    }

    /// `log` becomes `log.1`, `log.1` becomes `log.2`; the last one, and old ones, go.
    fn rotate(&self) -> io::Result<()> {
        for number in (1..=self.max_files).rev() {
            let path = self.numbered(number);
            let Ok(age) = fs::metadata(&path).and_then(|meta| meta.modified()) else { continue };
            let old = age.elapsed().is_ok_and(|age| age > self.max_age);
            if old || number == self.max_files {
                fs::remove_file(&path)?;
            } else {
                fs::rename(&path, self.numbered(number.saturating_add(1)))?;
            }
        }
        fs::rename(&self.path, self.numbered(1))
    }

    fn numbered(&self, number: u64) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn unusable_keys_are_absent_ones() {
        let default = Log::of(&json!({}));
        assert_eq!((default.path.as_path(), default.least), (Path::new(PATH), Level::Info));
        let odd = json!({"ipam": {
            "log_file_path": "relative", "log_level": "loud", "log_file_max_size": -1, "log_file_max_age": "x",
            "log_file_max_count": 0,
        }});
        assert_eq!(Log::of(&odd), default);
        assert_eq!(Log::of(&json!({"ipam": [1]})), default);
        assert_eq!(Log::of(&json!({"ipam": {"log_file_max_count": 1_000_000}})).max_files, MOST_FILES);
    }

    #[test]
    fn is_rotated_by_size() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("sub/log");
        let mut log = Log::of(&json!({"ipam": {"log_file_path": path, "log_file_max_count": 2}}));
        log.max_bytes = 10;
        for number in 0..5 {
            log.write(Level::Info, &format!("line {number}\nno line of its own"));
        }
        log.write(Level::Debug, "not asked for");
        let ends = |name: &str| fs::read_to_string(folder.path().join("sub").join(name)).expect("there");
        assert!(ends("log").ends_with("line 4\\nno line of its own\n"), "{}", ends("log"));
        assert!(ends("log.1").contains("line 3") && ends("log.2").contains("line 2"));
        assert!(!folder.path().join("sub/log.3").exists(), "no more than two old ones");
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_no_fault() {
        Log::of(&json!({"ipam": {"log_file_path": "/proc/none/log"}})).write(Level::Error, "lost");
    }
}
