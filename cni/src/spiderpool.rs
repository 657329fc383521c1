//! The plugin `spiderpool`: one call of the agent.

use crate::agent::{self, Agent, attachment};
use crate::args::{Attachment, Verb};
use crate::config::Config;
use crate::detect::Detection;
use crate::error::Fault;
use crate::log::{Level, Log};
use crate::run::Request;
use crate::{netns, result};
use std::time::Instant;

pub(crate) fn serve(request: Request<'_>) -> Result<Option<String>, Fault> {
    let Request { verb, version, conf, stdin: _, environment, log } = request;
    let config = Config::parse(verb, version, conf)?;
    let asked = match verb {
        Verb::Add | Verb::Del | Verb::Check => environment.attachment(verb)?,
        Verb::Status | Verb::Gc | Verb::Version => Attachment::default(),
    };
    log.write(Level::Debug, &format!("{verb} {}: {asked:?}, {config:?}", config.name));
    agent::runtime()?.block_on(ask(verb, &config, asked, log))
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
                agent::give_back(attachment, config, until, log).await;
                return Err(fault);
            }
            return Ok(Some(text));
        }
        Verb::Del => {
            let attachment = attachment(asked, &config.name, None);
            agent::release(attachment, config, log).await;
        }
        Verb::Check => {
            let netns = netns::look(&asked.netns)?;
            let attachment = attachment(asked, &config.name, Some(netns));
            Agent::dial(config).await?.check(attachment, config).await?;
        }
        Verb::Status => agent::ready(config).await?,
        Verb::Gc => Agent::dial(config).await?.gc(config).await?,
        Verb::Version => {}
    }
    Ok(None)
}
