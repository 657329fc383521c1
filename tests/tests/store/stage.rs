//! An API server with our kinds, and stores on it.

use ipam_core::{Allocation, Node, Pod, State, Store, Stored};
use kube::Client;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{KubeStore, Retained, Scope};
use tests::answer::{Answer, send};
use tests::api_server::{ADMIN, ApiServer};
use tests::chart::{self, create};

pub const SOON: Duration = Duration::from_mins(1);
pub const ALLOCATIONS: &str = "/apis/spiderpool.spidernet.io/v2beta1/spideripallocations";

pub struct Stage {
    pub server: ApiServer,
    pub admin: Client,
}

impl Stage {
    pub async fn set() -> Self {
        let server = ApiServer::start().await;
        let stage = Self { admin: server.client(ADMIN).await, server };
        chart::kinds(&stage.admin).await;
        stage
    }

    pub async fn get(&self, path: &str) -> Answer {
        send(&self.admin, "GET", path, "application/json", Vec::new()).await.expect("answers")
    }

    pub async fn create(&self, path: &str, object: &Value) -> Answer {
        create(&self.admin, path, object).await
    }

    pub async fn merge(&self, path: &str, change: &Value) -> Answer {
        merge(&self.admin, path, change).await
    }
}

pub async fn merge(client: &Client, path: &str, change: &Value) -> Answer {
    let change = change.to_string().into_bytes();
    send(client, "PATCH", path, "application/merge-patch+json", change).await.expect("answers")
}

pub async fn delete(client: &Client, path: &str) -> Answer {
    send(client, "DELETE", path, "application/json", Vec::new()).await.expect("answers")
}

/// A store whose watch runs as long as the test does.
pub async fn store(client: Client, scope: Scope) -> KubeStore {
    let (store, watch) = unsynced(client, scope);
    #[allow(clippy::disallowed_methods, reason = "it ends with the test")]
    tokio::spawn(watch);
    tokio::time::timeout(SOON, store.synced()).await.expect("a first list");
    store
}

pub fn unsynced(client: Client, scope: Scope) -> (KubeStore, impl Future<Output = std::convert::Infallible> + Send) {
    let began = Instant::now();
    KubeStore::new(
        client,
        scope,
        Duration::from_secs(10),
        Arc::new(move || began.elapsed()),
        Arc::new(Retained::default),
    )
}

pub fn node(name: &str) -> Scope {
    Scope::Node(name.to_owned())
}

/// What pod `pod` on node `node` has.
pub fn allocation(address: &str, node: &str, pod: &str) -> Allocation {
    Allocation {
        pool: "pool-a".to_owned(),
        address: address.parse().expect("an address"),
        node: Node { name: node.to_owned(), uid: "node-uid".to_owned(), machine_id: "m".to_owned() },
        pod: Pod { namespace: "default".to_owned(), name: pod.to_owned(), uid: format!("{pod}-uid") },
        owner: None,
        container_id: format!("{pod}-sandbox"),
        interface: "eth1".to_owned(),
        network: "default/net".to_owned(),
        netns: None,
        boot_id: "boot".to_owned(),
        flow_id: "flow".to_owned(),
        state: State::Held,
        provider: None,
        detached: false,
        release_request: None,
    }
}

pub async fn reserved(store: &KubeStore, new: Allocation) -> Stored<Allocation> {
    match store.reserve(new).await.expect("reserves") {
        ipam_core::Reserved::Created(stored) => *stored,
        ipam_core::Reserved::Taken => panic!("taken"),
    }
}

pub fn path(address: &str) -> String {
    format!("{ALLOCATIONS}/{address}")
}

/// A service account, a Node and a pod of the account on it; a client with the token of that pod.
pub async fn bound(stage: &Stage, node: &str) -> Client {
    let made = json!({"metadata": {"name": node}});
    stage.create("/api/v1/nodes", &made).await.accepted();
    let token = chart::token(&stage.admin, node).await;
    let file = std::fs::read_to_string(stage.server.kubeconfig(ADMIN)).expect("readable");
    let file = file.replace("admin-token", &token);
    let kubeconfig = kube::config::Kubeconfig::from_yaml(&file).expect("a kubeconfig");
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.expect("a configuration");
    Client::try_from(config).expect("a client")
}
