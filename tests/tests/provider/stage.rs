//! A cluster whose addresses a provider binds.

use anyhow::ensure;
use futures::StreamExt;
use std::collections::BTreeMap;
use std::time::Duration;
use tests::agent::Agent;
use tests::node::{Node, Nodes};
use tests::plugin::{NoInterface, Plugin, Sandbox, address};
use tests::provider::Provider;
use tests::wait;

/// Every fault and all that follows it is over by then.
pub(crate) const OVER: Duration = Duration::from_mins(3);
/// As a plugin does that is not told otherwise.
pub(crate) const BUDGET: Duration = Duration::from_secs(100);
pub(crate) const POOL: &str = "pool";
/// Pods that start or stop at a time.
const AT_ONCE: usize = 48;

pub(crate) struct Stage {
    pub(crate) nodes: Nodes,
    pub(crate) provider: Provider,
}

/// `httpRequestTimeout` of nearly all scenarios: short, so that what has to settle does so soon.
pub(crate) fn conf(provider: &Provider, timeout: &str) -> String {
    format!("iaasNetworkProvider: {{serverUrl: '{}', httpRequestTimeout: {timeout}}}\n", provider.url)
}

impl Stage {
    pub(crate) async fn set(provider: Provider) -> Self {
        let nodes = Nodes::set().await;
        nodes.pool(POOL, "10.0.0.1-10.0.1.250").await;
        Self { nodes, provider }
    }

    pub(crate) async fn node(&self, name: &str, timeout: &str) -> (Node, Agent) {
        let node = self.nodes.node(name).await;
        let agent = node.providing_agent(&conf(&self.provider, timeout)).await;
        (node, agent)
    }

    /// What is held, shown and bound is what these pods were given, and no more.
    pub(crate) async fn agree(&self, given: &BTreeMap<String, String>) {
        wait::until("allocations, endpoints, provider and pods to agree", OVER, async || {
            let (held, shown, bound) = (self.nodes.held().await, self.nodes.shown().await, self.provider.bound());
            ensure!(held == *given, "held: {}", differ(&held, given));
            ensure!(bound == *given, "bound: {}", differ(&bound, given));
            let shown: BTreeMap<_, _> =
                shown.into_iter().filter(|(_, pod)| given.values().any(|one| one == pod)).collect();
            ensure!(shown == *given, "shown: {}", differ(&shown, given));
            Ok(())
        })
        .await;
        assert_eq!(self.provider.cloud.foreign_releases(), 0, "no release met the binding of another pod");
        assert_eq!(self.provider.same_vlans(), 0);
    }
}

fn differ(found: &BTreeMap<String, String>, given: &BTreeMap<String, String>) -> String {
    let more: Vec<_> = found.iter().filter(|(key, _)| !given.contains_key(*key)).collect();
    let less: Vec<_> = given.iter().filter(|(key, _)| !found.contains_key(*key)).collect();
    format!("{} are, {} were given; too many: {more:?}; too few: {less:?}", found.len(), given.len())
}

/// Tries as a kubelet does, with a sandbox of its own each time, until the pod has its address. Also what it heard before.
pub(crate) async fn started(node: &Node, sandbox: &mut Sandbox) -> (String, Vec<NoInterface>) {
    let (name, mut tries, mut heard) = (sandbox.pod.clone(), 0, Vec::new());
    let given = wait::until(format!("an address of {name}"), OVER, async || {
        tries += 1;
        sandbox.container = format!("{name}-{tries}");
        let plugin = Plugin::dial(&node.socket()).await.map_err(|error| error.to_string())?;
        match plugin.add(sandbox, BUDGET).await {
            Ok(interface) => Ok(address(&interface)),
            Err(why) => {
                let text = format!("{why:?}");
                heard.push(why);
                let _ = plugin.del(sandbox).await;
                Err(text)
            }
        }
    })
    .await;
    (given, heard)
}

pub(crate) async fn all_started(node: &Node, pods: &mut [Sandbox]) -> BTreeMap<String, String> {
    let each = pods.iter_mut().map(|pod| async { (started(node, pod).await.0, pod.pod.clone()) });
    futures::stream::iter(each).buffer_unordered(AT_ONCE).collect().await
}

/// The pods go, and their sandboxes after them, as far as their node has an agent.
pub(crate) async fn all_ended(stage: &Stage, node: Option<&Node>, pods: &[Sandbox]) {
    let each = pods.iter().map(|pod| async {
        stage.nodes.end(&pod.pod).await;
        let Some(node) = node else { return };
        wait::until(format!("a DEL of {}", pod.pod), OVER, async || {
            let plugin = Plugin::dial(&node.socket()).await.map_err(|error| error.to_string())?;
            plugin.del(pod).await.map_err(|status| status.to_string())
        })
        .await;
    });
    futures::stream::iter(each).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
}
