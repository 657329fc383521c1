//! `conf.yml`, the key of the ConfigMap `spiderpool-conf` that every binary reads.

use crate::follow::{Reading, follow};
use crate::inotify::NoInotify;
use std::convert::Infallible;
use std::error::Error;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use tokio::sync::watch;

/// A ConfigMap holds at most 1 MiB, and so does a Secret.
const BYTES_MAX: u64 = 1024 * 1024;

/// The configuration cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum Unusable<F: Error + 'static> {
    /// There is no such file, or no right to read it.
    #[error("cannot read {0}; it is the key conf.yml of the ConfigMap spiderpool-conf")]
    Read(PathBuf, #[source] io::Error),
    /// It has faults.
    #[error("Failed to load Configmap spiderpool-conf: {0}")]
    Faulty(PathBuf, #[source] F),
}

/// Reads the file once.
pub fn load<T, F: Error + 'static>(path: &Path, parse: impl Fn(&str) -> Result<T, F>) -> Result<T, Unusable<F>> {
    let text = read_text(path).map_err(|source| Unusable::Read(path.to_owned(), source))?;
    parse(&text).map_err(|faults| Unusable::Faulty(path.to_owned(), faults))
}

/// A mounted file of at most 1 MiB.
pub fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(BYTES_MAX + 1).read_to_string(&mut text)?;
    if u64::try_from(text.len()).unwrap_or(u64::MAX) > BYTES_MAX {
        return Err(io::Error::other("larger than 1 MiB"));
    }
    Ok(text)
}

/// The configuration in force, beginning with `first`, and the task that keeps it.
pub fn watch<T: Clone + PartialEq, F: Error + 'static>(
    path: PathBuf,
    first: T,
    parse: impl Fn(&str) -> Result<T, F>,
    mut tell: impl FnMut(Reading<'_, T>),
) -> Result<(watch::Receiver<T>, impl Future<Output = Result<(), Infallible>>), NoInotify> {
    let folder = path.parent().unwrap_or(Path::new(".")).to_owned();
    let file = path.clone();
    follow(
        &folder,
        first,
        move || load(&path, &parse),
        move |reading| {
            match &reading {
                Reading::Applied { before, now } => {
                    tracing::info!(file = %file.display(), changed = before != now, "configuration reloaded");
                }
                Reading::Refused(error) => {
                    tracing::error!(error, "the changed configuration is not used; the last good one stays in force");
                }
            }
            tell(reading);
        },
    )
}
