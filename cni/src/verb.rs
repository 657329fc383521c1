//! One run.

use crate::agent::{Agent, attachment};
use crate::args::{Attachment, Environment, Verb};
use crate::config::{self, Config};
use crate::detect::Detection;
use crate::error::{Code, Fault};
use crate::log::{Level, Log};
use crate::version::Version;
use crate::{netns, result, stdin};
use serde_json::Value;
use std::time::{Duration, Instant};

/// What to print, if anything; or why not, in the version in which that is to be said.
type Ended = Result<Option<String>, (Version, Fault)>;

pub(crate) fn run() -> Ended {
    let environment = Environment(|name: &str| std::env::var_os(name));
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
        Ok(version) => (version, serve(verb, version, &conf, &environment, &log)),
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

fn serve<F: Fn(&str) -> Option<std::ffi::OsString>>(
    verb: Verb,
    version: Version,
    conf: &Value,
    environment: &Environment<F>,
    log: &Log,
) -> Result<Option<String>, Fault> {
    if !version.has(verb) {
        let msg = format!("config version {version} does not allow {verb}");
        return Err(Fault::new(Code::IncompatibleVersion, msg));
    }
    let config = Config::parse(verb, version, conf)?;
    let asked = match verb {
        Verb::Add | Verb::Del | Verb::Check => environment.attachment(verb)?,
        Verb::Status | Verb::Gc | Verb::Version => Attachment::default(),
    };
    log.write(Level::Debug, &format!("{verb} {}: {asked:?}, {config:?}", config.name));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Fault::new(Code::Io, format!("cannot wait for the agent: {error}")))?;
    runtime.block_on(ask(verb, &config, asked, log))
}

/// Tells the agent that this sandbox will not be. What it frees of a pod that lives on are no addresses: it comes again for them.
async fn give_back(attachment: proto::agent::Attachment, config: &Config, until: Instant, log: &Log) {
    const LEAST: Duration = Duration::from_secs(1);
    let left = until.saturating_duration_since(Instant::now()).max(LEAST);
    let given = async { Agent::dial(config).await?.del(attachment).await };
    let why = match tokio::time::timeout(left, given).await {
        Ok(Ok(())) => return,
        Ok(Err(Fault { msg, details, .. })) => format!("{msg}: {details}"),
        Err(_) => "the time is up".to_owned(),
    };
    // The runtime ends what failed with a DEL of its own.
    log.write(Level::Warn, &format!("giving back what {} was given is left to the runtime: {why}", config.name));
}

async fn ask(verb: Verb, config: &Config, asked: Attachment, log: &Log) -> Result<Option<String>, Fault> {
    match verb {
        Verb::Add => {
            let netns = netns::look(&asked.netns)?;
            let args = asked.args.clone();
            let attachment = attachment(asked, &config.name, Some(netns));
            let until = Instant::now() + config.ipam.timeout;
            let (interface, detect) = Agent::dial(config).await?.add(attachment.clone(), args, config).await?;
            let text = result::text(config.version, &interface)?;
            let detection = Detection::of(detect, &interface, &config.link, &attachment, until);
            // Nothing else is in hand while it runs.
            if let Some(Err(fault)) = detection.map(|detection| detection.run(log)) {
                give_back(attachment, config, until, log).await;
                return Err(fault);
            }
            return Ok(Some(text));
        }
        Verb::Del => {
            let attachment = attachment(asked, &config.name, None);
            let deleted = match Agent::dial(config).await {
                Ok(agent) => agent.del(attachment).await,
                Err(fault) => Err(fault),
            };
            // What is left is the agent's to find when it is back; an error would keep the pod terminating.
            if let Err(Fault { msg, details, .. }) = deleted {
                log.write(Level::Warn, &format!("DEL {} is left to the agent: {msg}: {details}", config.name));
            }
        }
        Verb::Check => {
            let netns = netns::look(&asked.netns)?;
            let attachment = attachment(asked, &config.name, Some(netns));
            Agent::dial(config).await?.check(attachment, config).await?;
        }
        Verb::Status => {
            let ready = match Agent::dial(config).await {
                Ok(agent) => agent.ready().await,
                Err(fault) => Err(fault),
            };
            // The one code by which a runtime knows that ADDs would fail.
            ready.map_err(|fault| Fault { details: fault.details, ..Fault::new(Code::NotAvailable, fault.msg) })?;
        }
        Verb::Gc => Agent::dial(config).await?.gc(config).await?,
        Verb::Version => {}
    }
    Ok(None)
}
