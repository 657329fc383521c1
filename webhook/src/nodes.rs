//! How many nodes offer a resource now: for the warnings that an admission gives, and for nothing else.

use crate::injection::Offers;
use crate::resilient::RENEW_SECONDS;
use futures::StreamExt;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::runtime::watcher::{self, Config, Event};
use kube::{Api, Client, ResourceExt};
use runtime::Chain;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// Nodes are large; this many are in memory at a time.
const PAGE: u32 = 50;
/// Nothing depends on it being soon.
const PAUSE: Duration = Duration::from_secs(10);

/// What is on offer, `None` until every node was seen once; and the task that keeps it.
pub(crate) fn watch(client: Client) -> (watch::Receiver<Option<Offers>>, impl Future<Output = Result<(), Infallible>>) {
    let (offers, latest) = watch::channel(None);
    (latest, run(client, offers))
}

async fn run(client: Client, offers: watch::Sender<Option<Offers>>) -> Result<(), Infallible> {
    let wanted = Config::default().timeout(RENEW_SECONDS).page_size(PAGE);
    let mut events = std::pin::pin!(watcher::watcher(Api::<Node>::all(client), wanted));
    let (mut nodes, mut listed) = (BTreeMap::new(), BTreeMap::new());
    let (mut whole, mut said) = (false, String::new());
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => {
                listed.clear();
                continue;
            }
            Ok(Event::InitApply(node)) => {
                listed.insert(node.name_any(), offered(node));
                continue;
            }
            Ok(Event::InitDone) => (nodes, whole) = (std::mem::take(&mut listed), true),
            Ok(Event::Apply(node)) => {
                let (name, offered) = (node.name_any(), offered(node));
                if nodes.get(&name) == Some(&offered) {
                    continue;
                }
                nodes.insert(name, offered);
            }
            Ok(Event::Delete(node)) => drop(nodes.remove(&node.name_any())),
            Err(error) => {
                let error = Chain(&error).to_string();
                if said != error {
                    tracing::warn!(error, "cannot watch Nodes; admissions do not warn of resources that none offers");
                    said = error;
                }
                sleep(PAUSE).await;
                continue;
            }
        }
        said.clear();
        if whole {
            offers.send_replace(Some(count(&nodes)));
        }
    }
    Ok(())
}

/// The extended resources of a node, of which it has more than none.
fn offered(node: Node) -> Vec<String> {
    let allocatable = node.status.and_then(|status| status.allocatable).unwrap_or_default();
    let extended = |(name, quantity): &(String, Quantity)| name.contains('/') && quantity.0 != "0";
    allocatable.into_iter().filter(extended).map(|(name, _)| name).collect()
}

fn count(nodes: &BTreeMap<String, Vec<String>>) -> Offers {
    let mut offers = Offers::new();
    for resource in nodes.values().flatten() {
        *offers.entry(resource.clone()).or_default() += 1;
    }
    offers
}
