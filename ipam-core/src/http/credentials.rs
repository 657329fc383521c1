//! Files that show a provider who calls, and us who answers.

use super::error::CallError;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use tokio::io::AsyncReadExt;

/// What the folder holds; nothing of what is missing.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Credentials {
    pub(super) authorities: Option<Vec<u8>>,
    /// Certificate and key.
    pub(super) identity: Option<(Vec<u8>, Vec<u8>)>,
    pub(super) token: Option<Vec<u8>>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

/// Bundles of authorities are some hundred KiB.
const MOST: u64 = 1 << 20;

/// A kubelet replaces all files of the folder at once, and may do so at any time.
pub(super) async fn read(folder: Option<&Path>) -> Result<Credentials, CallError> {
    let Some(folder) = folder else { return Ok(Credentials::default()) };
    // Without it nothing is known of what is in it, and a call without credentials is not what was asked for.
    tokio::fs::metadata(folder).await.map_err(|error| unusable(folder, error))?;
    let authorities = file(&folder.join("ca.crt")).await?;
    let identity = match (file(&folder.join("tls.crt")).await?, file(&folder.join("tls.key")).await?) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        _ => return Err(unusable(folder, "one of tls.crt and tls.key is missing")),
    };
    let token = file(&folder.join("token")).await?.map(|token| token.trim_ascii().to_vec());
    Ok(Credentials { authorities, identity, token: token.filter(|token| !token.is_empty()) })
}

async fn file(path: &Path) -> Result<Option<Vec<u8>>, CallError> {
    let file = match tokio::fs::File::open(path).await {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unusable(path, error)),
    };
    let mut bytes = Vec::new();
    file.take(MOST + 1).read_to_end(&mut bytes).await.map_err(|error| unusable(path, error))?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length <= MOST) {
        Ok(Some(bytes))
    } else {
        Err(unusable(path, "it is longer than 1 MiB"))
    }
}

pub(super) fn unusable(path: &Path, why: impl fmt::Display) -> CallError {
    CallError::Credentials { path: PathBuf::from(path), why: why.to_string() }
}
