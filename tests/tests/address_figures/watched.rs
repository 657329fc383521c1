//! What agents are sent: the events of their own nodes, however many nodes there are.

use anyhow::ensure;
use futures::future::join_all;
use ipam_core::{Allocation, Node, Pod, Reserved, State, Store};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{KubeStore, Retained, Scope};
use tests::api_server::{ADMIN, ApiServer};
use tests::{chart, wait};

const KIND: &str = "SpiderIPAllocation";
/// Addresses that come and go on each node.
const EACH: u8 = 20;
/// Each is created, changed and deleted.
const EVENTS: u8 = 3 * EACH;
/// Of the bytes for each of a hundred agents, by those for one alone. Bookmarks and names differ.
const FLAT: f64 = 1.2;
const SOON: Duration = Duration::from_mins(2);

fn allocation(node: &str, address: &str) -> Allocation {
    Allocation {
        pool: "pool".to_owned(),
        address: address.parse().expect("an address"),
        node: Node { name: node.to_owned(), ..Node::default() },
        pod: Pod { namespace: "default".to_owned(), name: format!("pod-{address}"), uid: format!("uid-{address}") },
        owner: None,
        container_id: format!("sandbox-{address}"),
        interface: "net1".to_owned(),
        network: String::new(),
        netns: None,
        boot_id: "boot".to_owned(),
        flow_id: "flow".to_owned(),
        state: State::Held,
        provider: None,
        detached: false,
        release_request: None,
    }
}

async fn churn(store: &KubeStore, node: &str, subnet: &str) {
    for n in 1..=EACH {
        let reserved = store.reserve(allocation(node, &format!("{subnet}.{n}"))).await.expect("reserves");
        let Reserved::Created(own) = reserved else { panic!("nobody else has it") };
        let own = store.advance(own.value.address, &own.version, own.value.clone()).await.expect("advances");
        store.remove(own.value.address, &own.version).await.expect("removes");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_sent_what_happens_on_its_own_node() {
    let server = ApiServer::start().await;
    let admin = server.client(ADMIN).await;
    chart::kinds(&admin).await;
    let begin = Instant::now();
    let mut each = Vec::new();
    for (round, agents) in [1_usize, 10, 100].into_iter().enumerate() {
        let (mut stores, mut indexes) = (Vec::new(), tokio::task::JoinSet::new());
        for n in 0..agents {
            let node = format!("node-{n}");
            let scope = Scope::Node(node.clone());
            let clock = Arc::new(move || begin.elapsed());
            let (store, index) =
                KubeStore::new(admin.clone(), scope, Duration::from_secs(30), clock, Arc::new(Retained::default));
            indexes.spawn(index);
            stores.push((store, node, format!("10.{round}.{n}")));
        }
        join_all(stores.iter().map(|(store, ..)| store.synced())).await;
        let (events, bytes, cpu) = server.sent(KIND).await;
        join_all(stores.iter().map(|(store, node, subnet)| churn(store, node, subnet))).await;
        #[expect(clippy::cast_precision_loss, reason = "at most a hundred")]
        let agents = agents as f64;
        let wanted = agents * f64::from(EVENTS);
        let after = wait::until("every event to be sent", SOON, async || {
            let after = server.sent(KIND).await;
            ensure!(after.0 - events >= wanted, "{} of {wanted}", after.0 - events);
            Ok(after)
        })
        .await;
        let (events, bytes, cpu) = (after.0 - events, after.1 - bytes, after.2 - cpu);
        println!(
            "{agents} agents: {:.1} events and {:.0} bytes for each; the API server used {:.2} ms of CPU for an event",
            events / agents,
            bytes / agents,
            cpu / events * 1_000.0
        );
        assert!(events < wanted * FLAT, "an agent is sent what is not its own");
        each.push(bytes / agents);
    }
    assert!(each[2] <= each[0] * FLAT, "promised: flat");
}
