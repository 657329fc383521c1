//! Keeps the pools and what is reserved of them.

use super::Known;
use super::prepared::prepare;
use futures::StreamExt;
use ipam_core::{Range, Ranges};
use k8s_api::crd::ip_pool::SpiderIPPool;
use k8s_api::crd::reserved_ip::SpiderReservedIP;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt};
use runtime::{Chain, Hold};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use tokio::sync::watch;

/// As for the own Node.
const WATCH_SECONDS: u32 = 120;
/// A pool of an earlier system has up to 1 MB of status.
const PAGE: u32 = 20;

pub(super) async fn pools(client: Client, known: watch::Sender<Known>, seen: Hold) -> Result<(), Infallible> {
    let config = watcher::Config::default().timeout(WATCH_SECONDS).page_size(PAGE);
    let mut events = std::pin::pin!(watcher(Api::<SpiderIPPool>::all(client), config).default_backoff());
    let (mut seen, mut listed) = (Some(seen), BTreeSet::new());
    let put = |object: SpiderIPPool| {
        let name = object.name_any();
        match prepare(&object) {
            Ok((pool, asks)) => known.send_modify(|known| {
                known.catalog.put(pool);
                known.asks.insert(name.clone(), asks);
            }),
            Err(unusable) => {
                tracing::error!(pool = name, fault = unusable.0, "this SpiderIPPool cannot be read; it gives no address");
                known.send_modify(|known| known.remove(&name));
            }
        }
        name
    };
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => listed.clear(),
            Ok(Event::InitApply(object)) => drop(listed.insert(put(object))),
            Ok(Event::InitDone) => {
                known.send_modify(|known| known.retain(&listed));
                if let Some(hold) = seen.take() {
                    hold.release();
                }
            }
            Ok(Event::Apply(object)) => drop(put(object)),
            Ok(Event::Delete(object)) => known.send_modify(|known| known.remove(&object.name_any())),
            Err(error) => tracing::warn!(error = %Chain(&error), "cannot watch SpiderIPPools; the last state stays in force"),
        }
    }
    std::future::pending().await
}

pub(super) async fn reserved(client: Client, known: watch::Sender<Known>, seen: Hold) -> Result<(), Infallible> {
    let config = watcher::Config::default().timeout(WATCH_SECONDS);
    let mut events = std::pin::pin!(watcher(Api::<SpiderReservedIP>::all(client), config).default_backoff());
    let (mut seen, mut objects, mut listed) = (Some(seen), BTreeMap::<String, Ranges>::new(), BTreeSet::new());
    while let Some(event) = events.next().await {
        let whole = match event {
            Ok(Event::Init) => {
                listed.clear();
                false
            }
            Ok(Event::InitApply(object)) => {
                listed.insert(object.name_any());
                objects.insert(object.name_any(), ranges(&object));
                false
            }
            Ok(Event::InitDone) => {
                objects.retain(|name, _| listed.contains(name));
                true
            }
            Ok(Event::Apply(object)) => {
                objects.insert(object.name_any(), ranges(&object));
                true
            }
            Ok(Event::Delete(object)) => objects.remove(&object.name_any()).is_some(),
            Err(error) => {
                tracing::warn!(error = %Chain(&error), "cannot watch SpiderReservedIPs; the last state stays in force");
                false
            }
        };
        if whole {
            let all: Ranges = objects.values().flat_map(Ranges::iter).collect();
            known.send_modify(|known| known.catalog.reserve(all));
            if let Some(hold) = seen.take() {
                hold.release();
            }
        }
    }
    std::future::pending().await
}

/// What cannot be read reserves nothing, and is said.
fn ranges(object: &SpiderReservedIP) -> Ranges {
    let read = |text: &String| {
        let range = text.parse::<Range>();
        if let Err(fault) = &range {
            tracing::error!(reserved = object.name_any(), text, %fault, "reserves nothing");
        }
        range.ok()
    };
    object.spec.ips.iter().filter_map(read).collect()
}
