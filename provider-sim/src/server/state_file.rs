//! What is bound, on disk: written whole under another name, then renamed. It survives the end of the process, not of the
//! machine.

use crate::cloud::{Binding, Cloud, Unreadable, View};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// What `GET /bindings` answers and the state file holds.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Listed {
    pub(super) bindings: Vec<View>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Spoilt {
    #[error("it cannot be read")]
    Io(#[from] io::Error),
    #[error("it is no list of bindings")]
    Json(#[from] serde_json::Error),
    #[error("a binding makes no sense")]
    Binding(#[from] Unreadable),
    #[error("{0} is there twice, or shares its VLAN id or MAC address with another one")]
    Twice(ipam_core::Address),
}

pub(super) fn listed(cloud: &Cloud) -> Listed {
    Listed { bindings: cloud.bindings().map(Binding::view).collect() }
}

/// Without the file nothing is bound.
pub(super) fn load(path: &Path, cloud: &mut Cloud) -> Result<(), Spoilt> {
    let text = match std::fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        read => read?,
    };
    let Listed { bindings } = serde_json::from_slice(&text)?;
    let kept = bindings.into_iter().map(Binding::try_from).collect::<Result<_, _>>()?;
    cloud.restore(kept).map_err(Spoilt::Twice)
}

pub(super) fn save(path: &Path, cloud: &Cloud) -> io::Result<()> {
    let text = serde_json::to_vec_pretty(&listed(cloud))?;
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    std::fs::write(&beside, text)?;
    std::fs::rename(beside, path)
}
