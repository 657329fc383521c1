//! Asks the pod's network, before a result is printed, whether another device has one of the addresses and whether the gateways
//! answer.
//!
//! ```text
//! a thread in the pod's namespace: link (up for the time: lift) ──> wire: a socket a kind of frames
//!                                                                      ^ ask: rounds with an end
//!   conflict: arp probes, ndp solicitations from nobody ───────────────┤
//!   gateways: the same, from the assigned addresses ───────────────────┘──> claim: who says that it is his
//! ```
//!
//! It works where a main plugin makes the link before it asks for addresses (macvlan, bridge, SR-IOV…). Where it does not, or
//! anything goes wrong that is no answer, the log says so and the pod starts.

mod announce;
mod arp;
mod ask;
mod claim;
mod ethernet;
mod lift;
mod link;
mod ndp;
mod stop;
mod wire;

pub(crate) use announce::announce;
pub(crate) use ethernet::Mac;

use crate::config;
use crate::error::{Code, Fault};
use crate::log::{Level, Log};
use ask::{Question, Round, ask};
use lift::Lifted;
use link::Link;
use nix::sched::{CloneFlags, setns};
use proto::agent::{Detect, Interface};
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};
use stop::Stop;
use wire::Sockets;

/// Half a second in all for a pod whose addresses are free. RFC 5227 has three probes too, but up to 7 s for them: who has an
/// address answers in milliseconds, and two more probes are for what gets lost.
const CONFLICT: Round = Round { times: 3, spacing: Duration::from_millis(100), last: Duration::from_millis(300) };
/// Two seconds for one that does not answer; one that does is done with at once.
const GATEWAY: Round = Round { times: 8, spacing: Duration::from_millis(250), last: Duration::from_millis(250) };
/// Beyond its own limits, for the kernel's locks.
const KERNEL: Duration = Duration::from_secs(5);

/// What to find out.
#[derive(Debug)]
pub(crate) struct Detection {
    conflict: bool,
    gateway: bool,
    /// Of the answer; with their gateways.
    addresses: Vec<(IpAddr, Option<IpAddr>)>,
    link: config::Link,
    interface: String,
    netns: String,
    until: Instant,
}

impl Detection {
    /// None if there is nothing to find out. `until` is the end of `agentTimeout`.
    pub(crate) fn of(
        detect: Detect,
        answer: &Interface,
        link: &config::Link,
        attachment: &proto::agent::Attachment,
        until: Instant,
    ) -> Option<Self> {
        let Detect { ip_conflict: conflict, gateway } = detect;
        let addresses = answer.addresses.iter().filter_map(|address| {
            let (ip, _) = address.cidr.split_once('/')?;
            Some((ip.parse().ok()?, address.gateway.parse().ok()))
        });
        (conflict || gateway).then(|| Self {
            conflict,
            // What the plugin `bridge` makes a gateway it does after it has asked for addresses.
            gateway: gateway && !link.becomes_gateway,
            addresses: addresses.collect(),
            link: link.clone(),
            interface: attachment.interface.clone(),
            netns: attachment.netns.as_ref().map(|netns| netns.path.clone()).unwrap_or_default(),
            until,
        })
    }

    /// Says in the log what came of it; a fault is what the runtime has to hear.
    pub(crate) fn run(self, log: &Log) -> Result<(), Fault> {
        let most = self.until.saturating_duration_since(Instant::now()).saturating_add(KERNEL);
        let (tell, told) = channel();
        let name = self.interface.clone();
        // A thread of its own: which namespace a thread is in nobody else must notice, and it ends in it.
        let started = thread::Builder::new().spawn(move || tell.send(self.detect()));
        let ended = match started {
            Err(error) => Err(Stop::undone("no thread", &error)),
            Ok(_) => told.recv_timeout(most).unwrap_or_else(|error| {
                Err(match error {
                    RecvTimeoutError::Timeout => Stop::Undone("the kernel does not answer".to_owned()),
                    RecvTimeoutError::Disconnected => {
                        let text = "a fault of the plugin spiderpool: detection panicked";
                        Stop::Found(Fault::new(Code::Plugin, text))
                    }
                })
            }),
        };
        match ended {
            Ok(found) => log.write(Level::Info, &format!("{name}: {found}")),
            Err(Stop::Undone(why)) => {
                log.write(Level::Warn, &format!("{name}: conflicts and gateways are not looked for: {why}"));
            }
            Err(Stop::Found(fault)) => return Err(fault),
        }
        Ok(())
    }

    fn detect(&self) -> Result<String, Stop> {
        let Self { interface, netns, until, .. } = self;
        if self.link.kind == "ipvlan" {
            let why = "an ipvlan has its master's MAC, and hears no answers before an address is on it";
            return Err(Stop::Undone(why.to_owned()));
        }
        let entered = File::open(netns).and_then(|file| Ok(setns(file, CloneFlags::CLONE_NEWNET)?));
        entered.map_err(|error| Stop::undone("the pod's network namespace cannot be entered", &error))?;
        let found = Link::find(interface)?;
        let lifted = (!found.up).then(|| Lifted::up(found.address.ifindex())).transpose();
        let _lifted = lifted.map_err(|error| Stop::undone(&format!("{interface} cannot be set up"), &error))?;
        let link = Link::settled(interface, *until)?;
        self.enough()?;
        let gateways = self.gateways();
        if !link.has_carrier {
            let why = format!("{interface} has no carrier");
            let gateways: Vec<_> = gateways.iter().map(|(gateway, _)| *gateway).collect();
            let asked = !gateways.is_empty();
            return Err(if asked { Stop::no_gateway(interface, &gateways, &why) } else { Stop::Undone(why) });
        }
        let opened = Sockets::open(&link, &self.addresses.iter().map(|(address, _)| *address).collect::<Vec<_>>());
        let mut wire = opened.map_err(|error| Stop::undone("no socket", &error))?;
        if self.conflict {
            self.conflict(&mut wire, link.mac)?;
        }
        if !gateways.is_empty() {
            self.gateway(&mut wire, link.mac, &gateways)?;
        }
        Ok(self.good(&gateways))
    }

    /// Each once, with an address to ask from.
    fn gateways(&self) -> Vec<(IpAddr, IpAddr)> {
        let mut gateways: Vec<(IpAddr, IpAddr)> = Vec::new();
        for (address, gateway) in &self.addresses {
            let gateway = gateway.filter(|gateway| self.gateway && gateway.is_ipv4() == address.is_ipv4());
            match gateway {
                Some(gateway) if gateways.iter().all(|(known, _)| *known != gateway) => {
                    gateways.push((gateway, *address));
                }
                _ => {}
            }
        }
        gateways
    }

    fn conflict(&self, wire: &mut Sockets, own: Mac) -> Result<(), Stop> {
        let nobody = |address: IpAddr| match address {
            IpAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let probe = |(address, _): &(IpAddr, _)| question(own, nobody(*address), *address);
        let mut questions = self.addresses.iter().filter_map(probe).collect();
        let heard = ask(wire, &CONFLICT, self.until, &mut questions, |frame, asked| {
            asked.iter().find_map(|asked| Some((asked.about, claim::claimant(frame, asked.about, own)?)))
        });
        match heard.map_err(|error| self.unsent(&error))? {
            Some((address, mac)) => Err(Stop::conflict(&self.interface, address, mac)),
            None => Ok(()),
        }
    }

    /// From the pod's own address: many routers leave questions from nobody unanswered. By now nobody else has it, or nobody
    /// wanted to know.
    fn gateway(&self, wire: &mut Sockets, own: Mac, gateways: &[(IpAddr, IpAddr)]) -> Result<(), Stop> {
        self.enough()?;
        let began = Instant::now();
        let asked = gateways.iter().filter_map(|(gateway, address)| question(own, *address, *gateway));
        let mut questions = asked.collect();
        let ended = ask(wire, &GATEWAY, self.until, &mut questions, |frame, asked| {
            asked.retain(|asked| claim::holder(frame, asked.about, own).is_none());
            None::<()>
        });
        ended.map_err(|error| self.unsent(&error))?;
        if questions.is_empty() {
            return Ok(());
        }
        let silent: Vec<_> = questions.iter().map(|question| question.about).collect();
        Err(Stop::no_gateway(&self.interface, &silent, &format!("no answer in {:.1?}", began.elapsed())))
    }

    fn enough(&self) -> Result<(), Stop> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left < CONFLICT.length() { Err(Stop::late(left)) } else { Ok(()) }
    }

    fn unsent(&self, error: &std::io::Error) -> Stop {
        Stop::undone(&format!("nothing can be sent through {}", self.interface), error)
    }

    fn good(&self, gateways: &[(IpAddr, IpAddr)]) -> String {
        let free = self.addresses.iter().filter(|_| self.conflict).map(|(address, _)| format!("{address} is free"));
        let answer = gateways.iter().map(|(gateway, _)| format!("gateway {gateway} answers"));
        free.chain(answer).collect::<Vec<_>>().join(", ")
    }
}

/// None for addresses of two families.
fn question(own: Mac, sender: IpAddr, target: IpAddr) -> Option<Question> {
    let frame = match (sender, target) {
        (IpAddr::V4(sender), IpAddr::V4(target)) => arp::request(own, sender, target),
        (IpAddr::V6(sender), IpAddr::V6(target)) => ndp::solicitation(own, sender, target),
        _ => return None,
    };
    Some(Question::new(target, frame))
}
