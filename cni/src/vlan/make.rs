//! Makes a pod's link, and takes it away.
//!
//! ```text
//! under a temporary name, final MAC and MTU ──> marked and named ──> addresses ──> up ──> routes ──> announced
//! ```
//!
//! A run that is killed anywhere leaves a link of the temporary name or a marked one; both are found by the next ADD and DEL.

use super::config::{Network, Source};
use super::given::{Address, Given, Route};
use super::holder::{self, Holder};
use super::links::{Held, Link, NewLink};
use super::namespace::failed;
use super::plan::{Mark, Step, is_ours, step};
use super::site::{Site, down};
use crate::detect::announce;
use crate::error::{Code, Fault};
use crate::log::{Level, Log};
use nix::errno::Errno;
use std::io;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// A sandbox that goes takes no longer, or it does not go.
const LEAVES: Duration = Duration::from_secs(5);
/// Looking for a holder, on a node with thousands of pods.
const LOOKED: Duration = Duration::from_secs(2);
/// Each look costs some milliseconds on a full node.
const AGAIN: Duration = Duration::from_millis(200);
/// Neighbour discovery proves an address free in one or two seconds.
const PROVED: Duration = Duration::from_secs(10);
const PROOF: Duration = Duration::from_millis(20);

/// What is to be made.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) network: &'a Network,
    pub(super) interface: &'a str,
    pub(super) mark: &'a Mark,
    /// The master, as it was looked at.
    pub(super) master: &'a Link,
    pub(super) mtu: u32,
    pub(super) given: &'a Given,
}

/// Makes it; or leaves nothing of it behind but what was there before.
pub(super) fn make(site: &mut Site, wanted: &Wanted<'_>, until: Instant, log: &Log) -> Result<Link, Fault> {
    let kept = prepared(site, wanted, log)?;
    let made = match kept {
        Some(ref link) => finish(site, wanted, link, until, log),
        None => create(site, wanted, until).and_then(|link| finish(site, wanted, &link, until, log)),
    };
    if made.is_err() && kept.is_none() {
        take_back(site, wanted, log);
    }
    made
}

/// The link alone, for who has to see it before there are addresses.
pub(super) fn begin(site: &mut Site, wanted: &Wanted<'_>, until: Instant, log: &Log) -> Result<(), Fault> {
    if prepared(site, wanted, log)?.is_some() {
        return Ok(());
    }
    let made = create(site, wanted, until);
    if made.is_err() {
        take_back(site, wanted, log);
    }
    made.map(drop)
}

/// What this or an earlier ADD of the sandbox made; of others nothing.
pub(super) fn take_back(site: &mut Site, wanted: &Wanted<'_>, log: &Log) {
    for name in [wanted.interface, wanted.mark.temporary()] {
        if let Err(error) = undo(site, wanted, name) {
            log.write(Level::Warn, &format!("{name} is left to the runtime's DEL: {error}"));
        }
    }
}

/// The link, if an earlier ADD for the same sandbox made what is wanted. Else its name is free afterwards.
fn prepared(site: &mut Site, wanted: &Wanted<'_>, log: &Log) -> Result<Option<Link>, Fault> {
    let Wanted { network, interface, mark, master, mtu, given } = wanted;
    let look = |error| failed(&format!("interface {interface} cannot be looked at"))(error);
    if let Some(left) = site.in_pod.find(mark.temporary()).map_err(look)? {
        log.write(Level::Info, &format!("{} of a run that was ended is removed", left.name));
        site.in_pod.delete(left.index).map_err(failed("what an earlier run left cannot be removed"))?;
    }
    let there = site.in_pod.find(interface).map_err(look)?;
    let held = there.as_ref().map(|link| site.in_pod.addresses(link.index)).transpose().map_err(look)?;
    let master = site.master(master, network.is_in_pod)?;
    match (step(there.as_ref().zip(held.as_deref()), mark, &master, *mtu, given), there) {
        (Step::Make, _) | (_, None) => Ok(None),
        (Step::Keep, link) => Ok(link),
        (Step::Replace, Some(link)) => {
            log.write(
                Level::Info,
                &format!("{interface} of an earlier ADD is not what is wanted now, and is replaced"),
            );
            site.in_pod
                .delete(link.index)
                .map_err(failed(&format!("{interface} of an earlier ADD cannot be removed")))?;
            Ok(None)
        }
        (Step::Refuse(what), Some(_)) => Err(Fault::new(
            Code::Plugin,
            format!("the pod has an interface {interface} already, {what}; it is left alone"),
        )),
    }
}

fn create(site: &mut Site, wanted: &Wanted<'_>, until: Instant) -> Result<Link, Fault> {
    let Wanted { network, interface, mark, master, mtu, given } = wanted;
    let what = || format!("VLAN {} on {}", given.vlan, network.master);
    let new = NewLink { name: mark.temporary(), parent: master.index, vlan: given.vlan, mac: given.mac, mtu: *mtu };
    let give_up = until.min(Instant::now() + LEAVES);
    while let Err(error) = site.in_base.create(&new, site.pod.as_fd()) {
        match Errno::from_raw(error.raw_os_error().unwrap_or_default()) {
            Errno::EEXIST => taken(site, wanted, give_up)?,
            Errno::ENODEV => {
                let text = format!("master {} is not there any more", network.master);
                return Err(Fault::new(Code::NoMaster, text));
            }
            Errno::EOPNOTSUPP => {
                let text = format!(
                    "the node's kernel makes no {}: it lacks the module 8021q, or the NIC cannot carry VLANs",
                    what()
                );
                return Err(Fault { details: error.to_string(), ..Fault::new(Code::Plugin, text) });
            }
            _ => return Err(failed(&format!("{} cannot be made", what()))(error)),
        }
    }
    let odd = |error| failed(&format!("{} cannot be looked at", what()))(error);
    let link = site.in_pod.find(mark.temporary()).map_err(odd)?;
    let link = link.ok_or_else(|| Fault::new(Code::TryAgain, format!("{} was removed by somebody at once", what())))?;
    site.in_pod
        .name(link.index, interface, mark.text())
        .map_err(failed(&format!("{} cannot be called {interface}", what())))?;
    Ok(link)
}

/// Waits a little if who has the VLAN goes.
fn taken(site: &Site, wanted: &Wanted<'_>, give_up: Instant) -> Result<(), Fault> {
    let Wanted { network, master, given, .. } = wanted;
    let what = format!("VLAN {} on {} is taken", given.vlan, network.master);
    let looked = Instant::now() + LOOKED;
    let holder = holder::find(&site.base, &site.pod, master.index, given.vlan, looked);
    let goes = match holder.map_err(failed(&format!("{what}; who has it cannot be found out")))? {
        Some(Holder::Stays(who)) => return Err(Fault::new(Code::VlanTaken, format!("{what}: {who}"))),
        Some(Holder::Leaves(who)) => who,
        None => "by a sandbox whose network namespace is ending".to_owned(),
    };
    if Instant::now() >= give_up {
        return Err(Fault::new(Code::TryAgain, format!("{what}: {goes}")));
    }
    #[allow(clippy::disallowed_methods, reason = "polls for the end of a sandbox until a deadline")]
    std::thread::sleep(AGAIN);
    Ok(())
}

/// Whatever of it is there already is no error: it may be a second ADD.
fn finish(site: &mut Site, wanted: &Wanted<'_>, link: &Link, until: Instant, log: &Log) -> Result<Link, Fault> {
    let Wanted { network, interface, given, .. } = wanted;
    let ips: Vec<IpAddr> = given.addresses.iter().map(|address| address.ip).collect();
    let has_ipv6 = ips.iter().any(IpAddr::is_ipv6);
    if has_ipv6 {
        set(site, interface, "disable_ipv6", "0")?;
    }
    // Else a router's advertisement would bring addresses and a default route beside those that were given.
    if has_ipv6 || network.source == Source::Provider {
        set(site, interface, "accept_ra", "0")?;
        set(site, interface, "autoconf", "0")?;
    }
    for address in &given.addresses {
        let what = format!("address {}/{} cannot be put on {interface}", address.ip, address.prefix);
        site.in_pod.add_address(link.index, address).map_err(failed(&what))?;
    }
    site.in_pod.set_up(link.index).map_err(|error| match error.raw_os_error() {
        Some(nix::libc::ENETDOWN) => down(&network.master),
        _ => failed(&format!("{interface} cannot be set up"))(error),
    })?;
    if ips.iter().any(IpAddr::is_ipv6) {
        proved(site, (interface, link.index), &given.addresses, until.min(Instant::now() + PROVED), log)?;
    }
    routes(site, interface, link.index, &given.routes)?;
    let name = (*interface).to_owned();
    let told = site.pod.within(move || announce(&name, &ips)).and_then(|told| told);
    if let Err(error) = told {
        log.write(Level::Warn, &format!("{interface}: addresses are not announced: {error}"));
    }
    let made = site.in_pod.find(interface).map_err(failed(&format!("{interface} cannot be looked at")))?;
    made.ok_or_else(|| Fault::new(Code::TryAgain, format!("{interface} was removed by somebody at once")))
}

/// The first interface of a pod with a route to somewhere keeps it; several of one interface are all set.
fn routes(site: &mut Site, interface: &str, index: u32, routes: &[Route]) -> Result<(), Fault> {
    let mut set = Vec::new();
    for route in routes {
        let to = (route.dst, route.prefix, route.table, route.priority);
        let what = format!("route to {}/{} cannot be set through {interface}", route.dst, route.prefix);
        if site.in_pod.add_route(index, route, set.contains(&to)).map_err(failed(&what))? {
            set.push(to);
        }
    }
    Ok(())
}

/// A setting of IPv6. A kernel without it needs none.
fn set(site: &Site, interface: &str, key: &str, value: &'static str) -> Result<(), Fault> {
    let path = format!("/proc/sys/net/ipv6/conf/{interface}/{key}");
    let done = site.pod.within(move || match std::fs::read_to_string(&path) {
        Ok(now) if now.trim() == value => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        _ => std::fs::write(&path, value),
    });
    done.and_then(|done: io::Result<()>| done)
        .map_err(failed(&format!("{key} of {interface} cannot be set to {value}")))
}

/// Waits for the kernel's proof that nobody has the addresses of IPv6. Without an answer in time they are used once it comes.
fn proved(
    site: &mut Site,
    (interface, index): (&str, u32),
    given: &[Address],
    until: Instant,
    log: &Log,
) -> Result<(), Fault> {
    loop {
        let held = site.in_pod.addresses(index).map_err(failed(&format!("addresses of {interface} cannot be read")))?;
        let ours = |held: &Held| given.iter().any(|address| address.ip == held.ip);
        let global: Vec<_> = held.into_iter().filter(ours).collect();
        if let Some(taken) = global.iter().find(|held| held.is_taken) {
            let text = format!("IP conflict: {} is in use by another device, seen through {interface}", taken.ip);
            return Err(Fault::new(Code::Conflict, text));
        }
        if !global.iter().any(|held| held.is_tentative) {
            return Ok(());
        }
        if Instant::now() >= until {
            log.write(Level::Warn, &format!("{interface}: the kernel has not proved its addresses yet"));
            return Ok(());
        }
        #[allow(clippy::disallowed_methods, reason = "polls the kernel until a deadline")]
        std::thread::sleep(PROOF);
    }
}

fn undo(site: &mut Site, wanted: &Wanted<'_>, name: &str) -> io::Result<()> {
    let Wanted { mark, .. } = wanted;
    match site.in_pod.find(name)? {
        Some(link) if link.name == mark.temporary() || is_ours(&link, mark, None, None) => {
            site.in_pod.delete(link.index)
        }
        _ => Ok(()),
    }
}

/// What a DEL takes away. Whether there was anything that it leaves alone is said.
pub(super) fn remove(site: &mut Site, network: &Network, interface: &str, mark: &Mark, log: &Log) -> Result<(), Fault> {
    let vlan = match network.source {
        Source::Manual { vlan, .. } => Some(vlan),
        Source::Provider => None,
    };
    for name in [interface, mark.temporary()] {
        let found = site.in_pod.find(name).map_err(failed(&format!("interface {name} cannot be looked at")))?;
        let Some(link) = found else { continue };
        // Of a marked one it does not matter.
        let master = if link.alias.is_empty() { site.link(&network.master).ok().flatten() } else { None };
        let master = master.map(|master| site.master(&master, network.is_in_pod)).transpose()?;
        if name == mark.temporary() || is_ours(&link, mark, master.as_ref(), vlan) {
            site.in_pod.delete(link.index).map_err(failed(&format!("interface {name} cannot be removed")))?;
        } else {
            log.write(Level::Warn, &format!("{name} is none of this network's VLAN links, and is left alone"));
        }
    }
    Ok(())
}
