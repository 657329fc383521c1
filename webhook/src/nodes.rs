//! Nodes: how many offer a resource now, for the warnings that an admission gives; and which machines there are.

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

/// Taint by which a person states that a machine is off, so that what it had can be given to others.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// Every Node by its name.
pub(crate) type Machines = BTreeMap<String, Machine>;

/// What tells a machine from another of its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Machine {
    pub(crate) uid: String,
    /// `machineID`, as the kubelet says.
    pub(crate) id: String,
    pub(crate) out_of_service: bool,
    /// Its kubelet is not heard of, or says that it cannot run pods.
    pub(crate) not_ready: bool,
}

/// What is on offer, and which machines there are; `None` until every node was seen once.
#[derive(Clone, Debug)]
pub(crate) struct Nodes {
    pub(crate) offers: watch::Receiver<Option<Offers>>,
    pub(crate) machines: watch::Receiver<Option<Machines>>,
}

/// The latest, and the task that keeps it.
pub(crate) fn watch(client: Client) -> (Nodes, impl Future<Output = Result<(), Infallible>>) {
    let (of_offers, offers) = watch::channel(None);
    let (of_machines, machines) = watch::channel(None);
    (Nodes { offers, machines }, run(client, of_offers, of_machines))
}

async fn run(
    client: Client,
    offers: watch::Sender<Option<Offers>>,
    machines: watch::Sender<Option<Machines>>,
) -> Result<(), Infallible> {
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
                listed.insert(node.name_any(), (machine(&node), offered(node)));
                continue;
            }
            Ok(Event::InitDone) => (nodes, whole) = (std::mem::take(&mut listed), true),
            Ok(Event::Apply(node)) => {
                let (name, now) = (node.name_any(), (machine(&node), offered(node)));
                if nodes.get(&name) == Some(&now) {
                    continue;
                }
                nodes.insert(name, now);
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
            let named = |(name, (machine, _)): (&String, &(Machine, Vec<String>))| (name.clone(), machine.clone());
            machines.send_replace(Some(nodes.iter().map(named).collect()));
        }
    }
    Ok(())
}

fn machine(node: &Node) -> Machine {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    let out_of_service = taints.into_iter().flatten().any(|taint| taint.key == OUT_OF_SERVICE);
    let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
    let id = info.map(|info| info.machine_id.clone()).unwrap_or_default();
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    let ready = conditions.into_iter().flatten().any(|one| one.type_ == "Ready" && one.status == "True");
    Machine { uid: node.uid().unwrap_or_default(), id, out_of_service, not_ready: !ready }
}

/// The extended resources of a node, of which it has more than none.
fn offered(node: Node) -> Vec<String> {
    let allocatable = node.status.and_then(|status| status.allocatable).unwrap_or_default();
    let extended = |(name, quantity): &(String, Quantity)| name.contains('/') && quantity.0 != "0";
    allocatable.into_iter().filter(extended).map(|(name, _)| name).collect()
}

fn count(nodes: &BTreeMap<String, (Machine, Vec<String>)>) -> Offers {
    let mut offers = Offers::new();
    for resource in nodes.values().flat_map(|(_, offered)| offered) {
        *offers.entry(resource.clone()).or_default() += 1;
    }
    offers
}
