//! Keeps the set of sessions equal to what the rules offer.

use crate::kubelet::folder::View;
use crate::kubelet::session::{Offered, Session};
use crate::metrics::{Metrics, resource};
use k8s_api::conf::Conf;
use k8s_api::nic::Nic;
use k8s_api::offer::{Known, Offer, Refused, offer};
use k8s_api::resource::{DeviceSet, ResourceName};
use k8s_api::selector::Labels;
use std::collections::BTreeMap;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

/// A session ended in a way that it never should.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failed {
    #[error("the session of a resource panicked")]
    Session(#[from] JoinError),
}

/// Runs until `stop`, then until every session has put its socket away.
pub(crate) async fn run(
    conf: Conf,
    mut labels: watch::Receiver<Option<Labels>>,
    mut nics: watch::Receiver<Option<Vec<Nic>>>,
    folder: watch::Receiver<View>,
    metrics: Metrics,
    stop: CancellationToken,
) -> Result<(), Failed> {
    let mut advertised = Advertised::new(folder, metrics, stop.clone());
    if !conf.plugin.enabled {
        tracing::info!("network resource plugin is disabled");
    }
    let mut idle = false;
    loop {
        let now = {
            let (labels, nics) = (labels.borrow_and_update(), nics.borrow_and_update());
            let known = Known { labels: labels.as_ref(), nics: nics.as_deref(), provider: conf.provider };
            let now = offer(&conf.plugin, known);
            let nothing = now.resources.is_empty() && labels.is_some() && nics.is_some();
            if nothing && !idle {
                tracing::info!("no network resources selected for advertisement");
            }
            idle = nothing;
            now
        };
        advertised.apply(now);
        tokio::select! {
            () = stop.cancelled() => break,
            Ok(()) = labels.changed() => {}
            Ok(()) = nics.changed() => {}
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
    offers: BTreeMap<ResourceName, watch::Sender<Offered>>,
    refused: Vec<Refused>,
    sessions: JoinSet<()>,
    folder: watch::Receiver<View>,
    metrics: Metrics,
    stop: CancellationToken,
}

impl Advertised {
    fn new(folder: watch::Receiver<View>, metrics: Metrics, stop: CancellationToken) -> Self {
        let (offers, refused, sessions) = (BTreeMap::new(), Vec::new(), JoinSet::new());
        Self { offers, refused, sessions, folder, metrics, stop }
    }

    /// Starts, changes and ends sessions; those whose devices stay as they are notice nothing.
    fn apply(&mut self, Offer { resources, refused }: Offer) {
        let gone = self.offers.extract_if(.., |name, _| !resources.iter().any(|set| set.name() == name));
        for (name, offer) in gone.collect::<Vec<_>>() {
            self.withdraw(&name, &offer);
        }
        for devices in resources {
            self.advertise(devices);
        }
        self.report(refused);
    }

    fn advertise(&mut self, devices: DeviceSet) {
        let name = devices.name().clone();
        if self.offers.get(&name).is_some_and(|offer| offer.borrow().devices == devices) {
            return;
        }
        let count = devices.count();
        tracing::info!(resourceName = %name, devices = count, "advertising network resource devices");
        self.metrics.devices.get_or_create(&resource(&name)).set(count.into());
        if let Some(offer) = self.offers.get(&name) {
            offer.send_replace(devices.into());
            return;
        }
        let (offer, offered) = watch::channel(devices.into());
        let session = Session {
            name: name.clone(),
            offered,
            folder: self.folder.clone(),
            metrics: self.metrics.clone(),
            stop: self.stop.clone(),
        };
        self.sessions.spawn(session.run());
        self.offers.insert(name, offer);
    }

    /// The kubelet hears of an empty list before the stream ends, so the node shows 0 at once.
    fn withdraw(&self, name: &ResourceName, offer: &watch::Sender<Offered>) {
        tracing::info!(resourceName = %name, "withdrawing network resource devices");
        let none = offer.borrow().devices.emptied();
        offer.send_replace(none.into());
        self.metrics.devices.remove(&resource(name));
    }

    /// Tells of refused resources when that changes, not with every look.
    fn report(&mut self, refused: Vec<Refused>) {
        for Refused { resource: name, .. } in &self.refused {
            self.metrics.refused.remove(&resource(name));
        }
        for refusal in &refused {
            self.metrics.refused.get_or_create(&resource(&refusal.resource)).set(1);
            if !self.refused.contains(refusal) {
                let Refused { resource, reason } = refusal;
                tracing::warn!(
                    resourceName = resource,
                    reason,
                    "cannot advertise this resource; the others are not affected"
                );
            }
        }
        self.refused = refused;
    }
}
