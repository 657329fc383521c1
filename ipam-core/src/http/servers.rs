//! Whom to call.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use url::Url;

/// Providers that may be called, by the identity that allocations record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Servers {
    /// How long one call may take.
    pub limit: Duration,
    /// The present one and those of before.
    pub named: BTreeMap<String, Target>,
}

/// Where calls for one of them go, and with what. Nothing of it follows to another.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    /// The paths of the contract are put behind its path. User-info is sent as basic authorization.
    pub url: Url,
    /// Folder with `ca.crt` (authorities that sign the server's certificate, instead of the system's), `tls.crt` and `tls.key`
    /// (the client's), `token` (sent as bearer authorization). Each may be missing; they are read at each call.
    pub credentials: Option<PathBuf>,
    /// The server's certificate is not verified.
    pub insecure_skip_verify: bool,
}

/// Without user-info.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("host", &self.url.host_str())
            .field("credentials", &self.credentials)
            .field("insecure_skip_verify", &self.insecure_skip_verify)
            .finish_non_exhaustive()
    }
}
