//! The plugin `vlan`: a pod's interface in a VLAN of a NIC of its node.
//!
//! ```text
//! config: who says VLAN and addresses? ─┬─ no vlanId: the agent (which asks the provider), MAC too ─┐
//!                                       └─ vlanId: an IPAM plugin (delegate)                       ─┴─> given
//! site: both namespaces, the master is there and up ──> given ──> plan: what of it is there? ──> make: the link ──> answer
//!                                                                           holder: who has the VLAN? ┘
//! ```
//!
//! A provider's addresses come before the link, since the VLAN comes with them; by hand the link comes first, since IPAM plugins may
//! look for it (`dhcp`, detection of conflicts). What fails gives addresses and link back. ADD and DEL may be repeated, and
//! what a run that was killed left behind is found by both.

mod answer;
mod check;
mod config;
mod delegate;
mod given;
mod holder;
mod links;
mod make;
mod namespace;
mod netlink;
mod plan;
mod site;

use crate::agent::{self, Agent, attachment};
use crate::args::{Attachment, Verb};
use crate::error::{Code, Fault};
use crate::log::{Level, Log};
use crate::netns;
use crate::run::Request;
use check::Found;
use config::{Network, Source};
use delegate::Delegate;
use given::Given;
use make::Wanted;
use plan::Mark;
use site::Site;
use std::ffi::OsString;
use std::time::{Duration, Instant};

/// Time of an IPAM plugin for what is no ADD.
const DELEGATED: Duration = Duration::from_mins(1);

pub(crate) fn serve(request: Request<'_>) -> Result<Option<String>, Fault> {
    let Request { verb, version, conf, stdin, environment, log } = request;
    if (environment.0)(delegate::WITHIN).is_some() {
        return Err(Fault::new(Code::Config, "\"ipam.type\" names this plugin itself, which gives no addresses"));
    }
    let network = Network::parse(verb, version, conf)?;
    let attached = matches!(verb, Verb::Add | Verb::Del | Verb::Check);
    let asked = match network.source {
        _ if !attached => Attachment::default(),
        Source::Provider => environment.attachment(verb)?,
        Source::Manual { .. } => environment.sandbox(verb)?,
    };
    log.write(Level::Debug, &format!("vlan {verb} {}: {asked:?}, {network:?}", network.common.name));
    let run = Run { network: &network, stdin, folders: (environment.0)("CNI_PATH"), log };
    match verb {
        Verb::Add => return run.add(asked).map(Some),
        Verb::Del => run.del(asked)?,
        Verb::Check => run.check(asked)?,
        Verb::Status => run.status()?,
        Verb::Gc => run.gc()?,
        Verb::Version => {}
    }
    Ok(None)
}

/// What all verbs need.
struct Run<'a> {
    network: &'a Network,
    stdin: &'a [u8],
    folders: Option<OsString>,
    log: &'a Log,
}

impl Run<'_> {
    fn add(&self, asked: Attachment) -> Result<String, Fault> {
        let network = self.network;
        let until = Instant::now() + network.common.ipam.timeout;
        let netns = netns::look(&asked.netns)?;
        let mark = Mark::new(&asked.container_id, &asked.interface, &network.common.name);
        let mut site = Site::open(network, &asked.netns)?;
        // Before a provider binds anything.
        let master = site.link(&network.master)?;
        let (master, mtu) = site::usable(network, master)?;
        // What an ADD before this one gave the pod stays, whatever becomes of this one.
        let before = site.in_pod.find(&asked.interface).ok().flatten().is_some_and(|link| link.alias == mark.text());
        let Attachment { interface, netns: sandbox, .. } = asked.clone();
        let vlan = if let Source::Manual { vlan, .. } = network.source { vlan } else { 0 };
        let bare = Given::without_addresses(vlan);
        let begun = Wanted { network, interface: &interface, mark: &mark, master: &master, mtu, given: &bare };
        if matches!(network.source, Source::Manual { .. }) && !before {
            make::begin(&mut site, &begun, until, self.log)?;
        }
        let given = self.given(&asked, netns.clone());
        let made = given.and_then(|given| {
            let link = make::make(&mut site, &Wanted { given: &given, ..begun }, until, self.log)?;
            Ok(answer::text(network.common.version, &link, &sandbox, &given, network.dns.as_ref()))
        });
        if made.is_err() && !before {
            self.give_back(asked, netns, until);
            make::take_back(&mut site, &begun, self.log);
        }
        made
    }

    /// Of who gives it.
    fn given(&self, asked: &Attachment, netns: proto::agent::Netns) -> Result<Given, Fault> {
        let common = &self.network.common;
        match &self.network.source {
            Source::Provider => {
                let attachment = attachment(asked.clone(), &common.name, Some(netns));
                let (interface, _) = agent::runtime()?
                    .block_on(async { Agent::dial(common).await?.add(attachment, asked.args.clone(), common).await })?;
                Given::by_agent(&interface)
            }
            Source::Manual { vlan, ipam } => Delegate::find(ipam, self.folders.clone())
                .and_then(|delegate| delegate.run(Verb::Add, self.stdin, common.ipam.timeout))
                .and_then(|result| Given::by_plugin(*vlan, &result)),
        }
    }

    fn give_back(&self, asked: Attachment, netns: proto::agent::Netns, until: Instant) {
        let common = &self.network.common;
        match &self.network.source {
            Source::Provider => {
                let attachment = attachment(asked, &common.name, Some(netns));
                if let Ok(runtime) = agent::runtime() {
                    runtime.block_on(agent::give_back(attachment, common, until, self.log));
                }
            }
            Source::Manual { ipam, .. } => {
                let deleted = self.delegate(ipam, Verb::Del);
                if let Err(Fault { msg, details, .. }) = deleted {
                    let text =
                        format!("giving back what {} was given is left to the runtime: {msg}: {details}", common.name);
                    self.log.write(Level::Warn, &text);
                }
            }
        }
    }

    fn delegate(&self, ipam: &str, verb: Verb) -> Result<(), Fault> {
        Delegate::find(ipam, self.folders.clone())?.run(verb, self.stdin, DELEGATED).map(drop)
    }

    /// Link and addresses, each whatever becomes of the other; in the opposite order of an ADD.
    fn del(&self, asked: Attachment) -> Result<(), Fault> {
        let common = &self.network.common;
        match &self.network.source {
            Source::Provider => {
                let link = self.unlink(&asked);
                let attachment = attachment(asked, &common.name, None);
                agent::runtime()?.block_on(agent::release(attachment, common, self.log));
                link
            }
            Source::Manual { ipam, .. } => {
                let freed = if ipam.is_empty() { Ok(()) } else { self.delegate(ipam, Verb::Del) };
                let link = self.unlink(&asked);
                freed.and(link)
            }
        }
    }

    /// A namespace that is gone took its links along.
    fn unlink(&self, asked: &Attachment) -> Result<(), Fault> {
        if asked.netns.is_empty() || netns::look(&asked.netns).is_err() {
            return Ok(());
        }
        let mark = Mark::new(&asked.container_id, &asked.interface, &self.network.common.name);
        let removed = Site::open(self.network, &asked.netns)
            .and_then(|mut site| make::remove(&mut site, self.network, &asked.interface, &mark, self.log));
        match removed {
            // It went just now, or it is the node's own, where no ADD made anything.
            Err(fault) if netns::look(&asked.netns).is_err() || fault.code == Code::Namespace.number() => {
                self.log.write(Level::Info, &format!("no link to remove: {}", fault.msg));
                Ok(())
            }
            Err(fault) => {
                self.log.write(Level::Warn, &format!("the link of {} stays: {}", asked.interface, fault.msg));
                Err(fault)
            }
            Ok(()) => Ok(()),
        }
    }

    fn check(&self, asked: Attachment) -> Result<(), Fault> {
        let (network, common) = (self.network, &self.network.common);
        let netns = netns::look(&asked.netns)?;
        let mut site = Site::open(network, &asked.netns)?;
        let unread = |error| namespace::failed("the pod's interfaces cannot be read")(error);
        let link = site.in_pod.find(&asked.interface).map_err(unread)?;
        let held = link.as_ref().map(|link| site.in_pod.addresses(link.index)).transpose().map_err(unread)?;
        let routes = site.in_pod.routes().map_err(unread)?;
        let master = site.link(&network.master)?.map(|link| site.master(&link, network.is_in_pod)).transpose()?;
        let held = held.unwrap_or_default();
        let found = Found { link: link.as_ref(), held: &held, routes: &routes, master: master.as_ref() };
        check::check(network, &asked.interface, &asked.netns, &found)?;
        match &network.source {
            Source::Provider => {
                let interface = asked.interface.clone();
                let attachment = attachment(asked, &common.name, Some(netns));
                agent::runtime()?.block_on(async {
                    let pod = attachment.pod.clone().unwrap_or_default();
                    let known = Agent::dial(common).await?.get(pod, &interface).await?;
                    if let Some((link, known)) = link.zip(known) {
                        check::bound(&link, &known)?;
                    }
                    Agent::dial(common).await?.check(attachment, common).await
                })
            }
            Source::Manual { ipam, .. } => self.delegate(ipam, Verb::Check),
        }
    }

    /// Of a node's master as well; one in a pod comes with the pod.
    fn status(&self) -> Result<(), Fault> {
        let network = self.network;
        let unavailable = |fault: Fault| Fault { details: fault.details, ..Fault::new(Code::NotAvailable, fault.msg) };
        if !network.is_in_pod {
            let opened = netlink::Netlink::open().and_then(|mut netlink| netlink.find(&network.master));
            let master =
                opened.map_err(namespace::failed("the node's interfaces cannot be read")).map_err(unavailable)?;
            site::usable(network, master).map_err(unavailable)?;
        }
        match &network.source {
            Source::Provider => agent::runtime()?.block_on(agent::ready(&network.common)),
            Source::Manual { ipam, .. } => self.delegate(ipam, Verb::Status).map_err(unavailable),
        }
    }

    /// Links went with their sandboxes.
    fn gc(&self) -> Result<(), Fault> {
        let common = &self.network.common;
        match &self.network.source {
            Source::Provider => agent::runtime()?.block_on(async { Agent::dial(common).await?.gc(common).await }),
            Source::Manual { ipam, .. } => self.delegate(ipam, Verb::Gc),
        }
    }
}
