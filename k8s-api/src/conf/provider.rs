//! `iaasNetworkProvider`: the cloud provider that binds addresses, and those that did.

mod address;

use super::section::{Found, Section};
use crate::{Quoted, duration};
use address::{Address, shown};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// A provider and how it is called.
#[derive(Clone, PartialEq, Eq)]
pub struct Server {
    /// Identity, as `SpiderIPAllocation`s record it: the URL without user-info and fragment, normalised (scheme and host in
    /// lower case, default port gone, no trailing slash).
    pub id: String,
    /// Where calls go: the URL as written, with user-info if there is any.
    pub url: url::Url,
    /// `credentials`: folder with `ca.crt`, `tls.crt` and `tls.key`, `token`; each may be missing.
    pub credentials: Option<PathBuf>,
    /// `insecureSkipVerify`: the server's certificate is not verified.
    pub insecure_skip_verify: bool,
}

/// A provider that is still asked to release what it bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Former {
    /// Identity that allocations record (`url`).
    pub id: String,
    /// Where calls for it go: `useUrl`, else `url`; with credentials and `insecureSkipVerify` of its own alone.
    pub server: Server,
}

/// How long a provider may take over one call: 30 s until it has a slot, 16 s of the cloud, 2 s on the way.
pub const PROVIDER_WORST: Duration = Duration::from_secs(48);

/// One call's limit where `httpRequestTimeout` is empty.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(50);

/// No call is allowed that many seconds, whatever else changes.
const STATIC_LIMIT: Duration = Duration::from_mins(2);

/// So long CNI plugins wait for the agent, by default; a call that outlasts them binds for nobody.
const CNI_LIMIT: Duration = Duration::from_secs(100);

/// What people look for in the log of a process that does not start.
const FAILED: &str = "IaaS provider configuration validation failed: ";

// By hand: user-info of the URL is a secret.
impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, url: _, credentials, insecure_skip_verify } = self;
        f.debug_struct("Server")
            .field("id", id)
            .field("credentials", credentials)
            .field("insecure_skip_verify", insecure_skip_verify)
            .finish_non_exhaustive()
    }
}

/// The whole section.
pub(super) struct Provider {
    /// Whether `serverUrl` is there, faulty or not: what must not stand beside it is said in the same pass.
    pub named: bool,
    pub server: Option<Server>,
    pub call_timeout: Duration,
    pub former_servers: Vec<Former>,
}

impl Default for Provider {
    fn default() -> Self {
        Self { named: false, server: None, call_timeout: CALL_TIMEOUT, former_servers: Vec::new() }
    }
}

impl Provider {
    /// The key of the document.
    pub(super) fn of(root: &mut Section<'_, '_>) -> Self {
        let before = root.faults();
        let provider = root.section("iaasNetworkProvider").map(Self::read).unwrap_or_default();
        root.preface(before, FAILED);
        provider
    }

    fn read(mut section: Section<'_, '_>) -> Self {
        let url = section.text("serverUrl").filter(|url| !url.value.is_empty());
        let timeout = section.text("httpRequestTimeout").filter(|timeout| !timeout.value.is_empty());
        let named = url.is_some();
        let server = server(&mut section, url);
        let former_servers = former_servers(&mut section, server.as_ref());
        // Where nobody is called it is no matter, as it always was.
        let call_timeout = timeout
            .filter(|_| named || section.has_entries("formerServers"))
            .and_then(|timeout| match call_timeout(timeout.value) {
                Ok(read) => Some(read),
                Err(why) => {
                    let Found { value, path, line } = timeout;
                    section.fault(line, format!("invalid {path} {}: {why}", Quoted(value)));
                    None
                }
            })
            .unwrap_or(CALL_TIMEOUT);
        section.end();
        Self { named, server, call_timeout, former_servers }
    }
}

/// The provider at `url`, with the credentials that stand beside it.
fn server(section: &mut Section<'_, '_>, url: Option<Found<&str>>) -> Option<Server> {
    let credentials = folder(section);
    let insecure_skip_verify = section.flag("insecureSkipVerify").unwrap_or_default();
    let Address { id, url } = address(section, &url?)?;
    Some(Server { id, url, credentials, insecure_skip_verify })
}

fn address(section: &mut Section<'_, '_>, found: &Found<&str>) -> Option<Address> {
    let Found { value, path, line } = found;
    value
        .parse()
        .map_err(|wrong: address::Wrong| {
            let shown = shown(value).map(|shown| format!(" {}", Quoted(&shown))).unwrap_or_default();
            section.fault(*line, format!("invalid {path}{shown}: {wrong}"));
        })
        .ok()
}

fn folder(section: &mut Section<'_, '_>) -> Option<PathBuf> {
    let Found { value, path, line } = section.text("credentials").filter(|found| !found.value.is_empty())?;
    if !value.starts_with('/') {
        section.fault(line, format!("{path} {} must be the absolute path of a folder", Quoted(value)));
        return None;
    }
    Some(value.into())
}

fn former_servers(section: &mut Section<'_, '_>, current: Option<&Server>) -> Vec<Former> {
    let mut former: Vec<Former> = Vec::new();
    section.sections("formerServers", |mut entry| {
        if let Some(read) = former_server(&mut entry) {
            let (line, path) = (entry.line, entry.path_of("url"));
            if current.is_some_and(|current| current.id == read.id) {
                let text = format!("{path} {} is iaasNetworkProvider.serverUrl; remove the entry", Quoted(&read.id));
                entry.fault(line, text);
            } else if former.iter().any(|other| other.id == read.id) {
                entry.fault(line, format!("{path} {} is there already; remove the entry", Quoted(&read.id)));
            }
            former.push(read);
        }
        entry.end();
    });
    former
}

fn former_server(entry: &mut Section<'_, '_>) -> Option<Former> {
    let url = entry.text("url").filter(|url| !url.value.is_empty());
    let use_url = entry.text("useUrl").filter(|url| !url.value.is_empty());
    if url.is_none() {
        let text = format!("{} is missing: the serverUrl that bound the addresses", entry.path_of("url"));
        entry.fault(entry.line, text);
    }
    let bound = url.as_ref().and_then(|url| address(entry, url));
    let server = match use_url {
        Some(use_url) => server(entry, Some(use_url)),
        // Its faults are said already.
        None => server(entry, url.filter(|_| bound.is_some())),
    };
    Some(Former { id: bound?.id, server: server? })
}

/// Why a text is no limit of a call.
#[derive(Debug, thiserror::Error)]
enum NoTimeout<'t> {
    #[error("{0}")]
    NoDuration(duration::NoDuration<'t>),
    #[error("timeout must be positive")]
    NotPositive,
    #[error("timeout {} must be less than {} {}", duration::go(*.written), .limit.0, duration::go(.limit.1))]
    Long { written: Duration, limit: (&'static str, Duration) },
}

fn call_timeout(text: &str) -> Result<Duration, NoTimeout<'_>> {
    let duration::Signed { negative, size } = duration::parse(text).map_err(NoTimeout::NoDuration)?;
    if negative || size.is_zero() {
        return Err(NoTimeout::NotPositive);
    }
    let over = [("static limit", STATIC_LIMIT), ("CNI client timeout", CNI_LIMIT)];
    match over.into_iter().find(|(_, limit)| size >= *limit) {
        Some(limit) => Err(NoTimeout::Long { written: size, limit }),
        None => Ok(size),
    }
}

#[cfg(test)]
mod tests;
