//! One run.

use crate::args::{Environment, Verb};
use crate::config;
use crate::error::{Code, Fault};
use crate::log::{Level, Log};
use crate::version::Version;
use crate::{result, stdin};
use serde_json::Value;
use std::ffi::OsString;
use std::time::Instant;

/// What to print, if anything; or why not, in the version in which that is to be said.
pub(crate) type Ended = Result<Option<String>, (Version, Fault)>;

/// What a plugin is asked, of any verb but VERSION.
pub(crate) struct Request<'a> {
    pub(crate) verb: Verb,
    pub(crate) version: Version,
    pub(crate) conf: &'a Value,
    /// The same as it came.
    pub(crate) stdin: &'a [u8],
    pub(crate) environment: Environment<fn(&str) -> Option<OsString>>,
    pub(crate) log: &'a Log,
}

pub(crate) fn run(serve: fn(Request<'_>) -> Result<Option<String>, Fault>) -> Ended {
    let environment = Environment::<fn(&str) -> Option<OsString>>(|name| std::env::var_os(name));
    let latest = |fault| (Version::LATEST, fault);
    let verb = environment.verb().map_err(latest)?;
    let stdin = stdin::read(std::io::stdin().lock()).map_err(latest)?;
    if verb == Verb::Version {
        return Ok(Some(versions(&stdin)));
    }
    let conf = config::decode(&stdin).map_err(latest)?;
    let log = Log::of(&conf);
    let started = Instant::now();
    let (version, ended) = match config::version(&conf) {
        Ok(version) if version.has(verb) => {
            let request = Request { verb, version, conf: &conf, stdin: &stdin, environment, log: &log };
            (version, serve(request))
        }
        Ok(version) => {
            let msg = format!("config version {version} does not allow {verb}");
            (version, Err(Fault::new(Code::IncompatibleVersion, msg)))
        }
        Err(fault) => (Version::LATEST, Err(fault)),
    };
    let name = conf.get("name").and_then(Value::as_str).unwrap_or_default();
    let took = started.elapsed().as_millis();
    match &ended {
        Ok(output) => {
            log.write(Level::Info, &format!("{verb} {name} took {took}ms: {}", output.as_deref().unwrap_or("done")));
        }
        Err(Fault { code, msg, details }) => {
            log.write(Level::Error, &format!("{verb} {name} took {took}ms: code {code}: {msg}: {details}"));
        }
    }
    ended.map_err(|fault| (version, fault))
}

fn versions(stdin: &[u8]) -> String {
    let conf = serde_json::from_slice::<Value>(stdin).unwrap_or_default();
    result::versions(conf.get("cniVersion").and_then(Value::as_str).filter(|version| !version.is_empty()))
}
