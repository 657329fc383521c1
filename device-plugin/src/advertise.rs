//! Keeps the set of sessions equal to what the rules offer.

use crate::kubelet::folder::Folder;
use crate::kubelet::handed_out::HandedOut;
use crate::kubelet::in_use::{Ids, Listed};
use crate::kubelet::session::{Offered, Session};
use crate::kubelet::version;
use crate::node::OwnNode;
use crate::report::{Report, Reports};
use k8s_api::conf::Conf;
use k8s_api::nic::Nic;
use k8s_api::offer::{Known, Offer, Refused, offer, slots};
use k8s_api::resource::{DeviceSet, ResourceName};
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

/// A session ended in a way that it never should.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failed {
    #[error("the session of a resource panicked")]
    Session(#[from] JoinError),
}

/// Everything that decides what is on offer; each is the latest of its kind.
pub(crate) struct Inputs {
    pub(crate) conf: watch::Receiver<Conf>,
    pub(crate) node: watch::Receiver<Option<OwnNode>>,
    pub(crate) nics: watch::Receiver<Option<Vec<Nic>>>,
    pub(crate) in_use: watch::Receiver<Option<Listed>>,
    /// The cloud's bindings on this node that no live pod holds.
    pub(crate) bindings: watch::Receiver<u32>,
}

/// What a session needs beside its own resource.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub(crate) folder: Folder,
    pub(crate) handed_out: HandedOut,
    pub(crate) reports: Reports,
    pub(crate) stop: CancellationToken,
}

/// Runs until the process stops, then until every session has put its socket away.
pub(crate) async fn run(mut inputs: Inputs, surroundings: Surroundings) -> Result<(), Failed> {
    let stop = surroundings.stop.clone();
    let mut advertised = Advertised::new(surroundings);
    // An agent that starts anew must not list less than pods already hold.
    stop.run_until_cancelled(inputs.in_use.wait_for(Option::is_some)).await;
    while !stop.is_cancelled() {
        advertised.follow(&mut inputs);
        tokio::select! {
            () = stop.cancelled() => {}
            Ok(()) = inputs.conf.changed() => {}
            Ok(()) = inputs.node.changed() => {}
            Ok(()) = inputs.nics.changed() => {}
            Ok(()) = inputs.in_use.changed() => {}
            Ok(()) = inputs.bindings.changed() => {}
            Some(ended) = advertised.sessions.join_next() => ended?,
        }
    }
    while let Some(ended) = advertised.sessions.join_next().await {
        ended?;
    }
    Ok(())
}

/// The resources that are on offer, each with the channel that its session follows.
struct Advertised {
    offers: BTreeMap<ResourceName, Advertisement>,
    refused: Vec<Refused>,
    sessions: JoinSet<()>,
    surroundings: Surroundings,
    said: &'static str,
    said_waiting: bool,
    complaint: Option<String>,
    bindings: u32,
}

struct Advertisement {
    offered: watch::Sender<Offered>,
    report: Report,
    /// Numbers in use that the count does not cover; they stay in the list.
    kept: BTreeSet<u32>,
    /// Unused devices that the kubelet may not give to a pod.
    withheld: u32,
}

impl Advertised {
    fn new(surroundings: Surroundings) -> Self {
        let (offers, refused, sessions) = (BTreeMap::new(), Vec::new(), JoinSet::new());
        Self { offers, refused, sessions, surroundings, said: "", said_waiting: false, complaint: None, bindings: 0 }
    }

    /// One pass: evaluate everything, change what differs.
    fn follow(&mut self, inputs: &mut Inputs) {
        let conf = inputs.conf.borrow_and_update();
        let (node, nics) = (inputs.node.borrow_and_update(), inputs.nics.borrow_and_update());
        let in_use = self.surroundings.handed_out.in_use(&mut inputs.in_use);
        let labels = node.as_ref().map(|node| &node.labels);
        let now = offer(&conf.plugin, Known { labels, nics: nics.as_deref(), provider: conf.provider.is_some() });
        let slots = slots(&conf.plugin, &now.resources).cloned();
        let all_known = labels.is_some() && nics.is_some();
        self.say(match (conf.plugin.enabled, now.resources.is_empty() && all_known) {
            (false, _) => "network resource plugin is disabled",
            (true, true) => "no network resources selected for advertisement",
            (true, false) => "",
        });
        self.say_waiting(!conf.plugin.sub_eni.is_empty() && conf.provider.is_none());
        self.judge_kubelet(node.as_ref().map(|node| node.kubelet_version.as_str()).unwrap_or_default());
        let bindings = *inputs.bindings.borrow_and_update();
        self.take_bindings(bindings);
        self.apply(now, &in_use, |devices| if slots.as_ref() == Some(devices.name()) { bindings } else { 0 });
    }

    /// Says why nothing is on offer, once for as long as it stays so.
    fn say(&mut self, what: &'static str) {
        if self.said != what && !what.is_empty() {
            tracing::info!("{what}");
        }
        self.said = what;
    }

    fn say_waiting(&mut self, for_provider: bool) {
        if for_provider && !self.said_waiting {
            tracing::warn!("the subENI rules have no effect while iaasNetworkProvider.serverUrl is empty");
        }
        self.said_waiting = for_provider;
    }

    fn judge_kubelet(&mut self, version: &str) {
        let complaint = version::complaint(version);
        if self.complaint != complaint
            && let Some(note) = &complaint
        {
            tracing::error!("{note}");
            self.surroundings.reports.events.warn("KubeletTooOld", note);
        }
        self.complaint = complaint;
    }

    /// Each pod that leaves a binding behind has left its devices, too, and only unused ones can be withheld.
    fn take_bindings(&mut self, bindings: u32) {
        self.surroundings.reports.metrics.bindings_without_pod.set(bindings.into());
        if bindings > self.bindings {
            self.surroundings.handed_out.ask_soon();
        }
        self.bindings = bindings;
    }

    /// Starts, changes and ends sessions; those whose devices stay as they are notice nothing.
    fn apply(&mut self, Offer { resources, refused }: Offer, in_use: &Ids, bindings: impl Fn(&DeviceSet) -> u32) {
        let gone = self.offers.extract_if(.., |name, _| !resources.iter().any(|set| set.name() == name));
        for (name, advertisement) in gone.collect::<Vec<_>>() {
            self.withdraw(&name, &advertisement);
        }
        for devices in resources {
            let held = in_use.get(devices.name().as_str());
            let numbers = held.into_iter().flatten().filter_map(|id| devices.number(id)).collect();
            let bindings = bindings(&devices);
            self.advertise(devices, &numbers, bindings);
        }
        self.refuse(refused);
    }

    fn advertise(&mut self, devices: DeviceSet, in_use: &BTreeSet<u32>, bindings: u32) {
        let (name, count) = (devices.name().clone(), devices.count());
        let withheld = bindings.min(devices.unused(in_use));
        let kept: BTreeSet<u32> = in_use.iter().copied().filter(|number| *number >= count).collect();
        let advertisement = self.offers.get_mut(&name);
        if let Some(advertisement) = advertisement {
            advertisement.report.devices(count, in_use.len(), withheld);
            let same = advertisement.offered.borrow().devices == devices
                && (&advertisement.kept, advertisement.withheld) == (&kept, withheld);
            // With numbers above the count in the list, any number in use decides which others are in it; and with withheld
            // ones, which these are.
            if !same || !kept.is_empty() || withheld > 0 {
                let offered = Offered::new(devices, in_use, withheld);
                if *advertisement.offered.borrow() == offered {
                    return;
                }
                tracing::info!(resourceName = %name, devices = count, kept = kept.len(), withheld, "advertising network resource devices");
                advertisement.offered.send_replace(offered);
                (advertisement.kept, advertisement.withheld) = (kept, withheld);
            }
            return;
        }
        tracing::info!(resourceName = %name, devices = count, kept = kept.len(), withheld, "advertising network resource devices");
        let report = self.surroundings.reports.offer(&name);
        report.devices(count, in_use.len(), withheld);
        let (offered, latest) = watch::channel(Offered::new(devices, in_use, withheld));
        self.sessions.spawn(Session::new(name.clone(), latest, report.clone(), self.surroundings.clone()).run());
        self.offers.insert(name, Advertisement { offered, report, kept, withheld });
    }

    /// The kubelet hears of an empty list before the stream ends, so the node shows 0 at once.
    fn withdraw(&self, name: &ResourceName, advertisement: &Advertisement) {
        tracing::info!(resourceName = %name, "withdrawing network resource devices");
        let none = advertisement.offered.borrow().devices.emptied();
        advertisement.offered.send_replace(Offered::new(none, &BTreeSet::new(), 0));
        self.surroundings.reports.forget(name);
    }

    /// Tells of refused resources when that changes, not with every look.
    fn refuse(&mut self, refused: Vec<Refused>) {
        for Refused { resource, .. } in self.refused.iter().filter(|before| !refused.contains(before)) {
            self.surroundings.reports.not_refused(resource);
        }
        for Refused { resource, reason } in refused.iter().filter(|now| !self.refused.contains(now)) {
            self.surroundings.reports.refused(resource, reason);
        }
        self.refused = refused;
    }
}
