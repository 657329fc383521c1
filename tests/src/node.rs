//! Nodes without a kubelet: an API server with rights and policies of the chart in force, and on each node an agent under a
//! token that is bound to it.

use crate::agent::Agent;
use crate::answer::send;
use crate::api_server::{ADMIN, ApiServer};
use crate::chart::{self, create};
use crate::controller::Controller;
use crate::plugin::{Plugin, Sandbox};
use crate::wait;
use anyhow::{Context, ensure};
use futures::StreamExt;
use http_body_util::BodyExt;
use kube::Client;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

const SOON: Duration = Duration::from_mins(2);
/// Where allocations are.
pub const ALLOCATIONS: &str = "/apis/spiderpool.spidernet.io/v2beta1/spideripallocations";
/// Where endpoints of namespace `default` are.
pub const ENDPOINTS: &str = "/apis/spiderpool.spidernet.io/v2beta1/namespaces/default/spiderendpoints";
const PODS: &str = "/api/v1/namespaces/default/pods";
/// The NIC of each node with a provider, and its MAC.
pub const NIC: &str = "eth7";
/// The same of all nodes: a provider tells them apart by their names.
pub const NIC_MAC: &str = "fa:16:3e:00:00:07";
/// Requests of a fixture at a time.
const AT_ONCE: usize = 32;

/// A cluster of API server and agents.
pub struct Nodes {
    /// The server.
    pub server: ApiServer,
    /// Everybody who may do everything but write addresses.
    pub admin: Client,
    folder: TempDir,
}

/// One node.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// With the token of its agent.
    pub kubeconfig: PathBuf,
    /// Of its agent alone.
    pub folder: PathBuf,
}

impl Nodes {
    /// Starts the server and installs what the chart brings.
    pub async fn set() -> Self {
        let server = ApiServer::start().await;
        let admin = server.client(ADMIN).await;
        chart::kinds(&admin).await;
        chart::guard(&admin).await;
        Self { server, admin, folder: tempfile::tempdir().expect("a folder") }
    }

    /// A new node.
    pub async fn node(&self, name: &str) -> Node {
        create(&self.admin, "/api/v1/nodes", &json!({"metadata": {"name": name}})).await.accepted();
        let info = json!({"kubeletVersion": "v1.36.3", "machineID": format!("machine-{name}"), "architecture": "", "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "", "kubeProxyVersion": "", "operatingSystem": "", "osImage": "", "systemUUID": ""});
        let status = json!({"status": {"nodeInfo": info}}).to_string().into_bytes();
        let kind = "application/merge-patch+json";
        let patched = send(&self.admin, "PATCH", &format!("/api/v1/nodes/{name}/status"), kind, status).await;
        patched.expect("answers").accepted();
        let folder = self.folder.path().join(name);
        std::fs::create_dir(&folder).expect("writable");
        let token = chart::token(&self.admin, name).await;
        let kubeconfig = chart::kubeconfig(&self.server, &token, &folder);
        Node { name: name.to_owned(), kubeconfig, folder }
    }

    /// A pool of these addresses of 10.0.0.0/8.
    pub async fn pool(&self, name: &str, ips: &str) {
        let pool = json!({
            "apiVersion": "spiderpool.spidernet.io/v2beta1", "kind": "SpiderIPPool", "metadata": {"name": name},
            "spec": {"subnet": "10.0.0.0/8", "ips": [ips]},
        });
        create(&self.admin, "/apis/spiderpool.spidernet.io/v2beta1/spiderippools", &pool).await.accepted();
    }

    /// A pod on a node, and its first sandbox.
    pub async fn pod(&self, name: &str, node: &str, pool: &str) -> Sandbox {
        self.made(json!({"name": name}), node, pool).await
    }

    /// The same, on a network whose addresses a provider binds to this NIC; `more` are further fields of its metadata.
    pub async fn provided(&self, name: &str, node: &str, pool: &str, more: Value) -> Sandbox {
        let mut metadata = json!({"name": name});
        if let (Some(metadata), Value::Object(more)) = (metadata.as_object_mut(), more) {
            metadata.extend(more);
        }
        Sandbox { master: NIC.to_owned(), ..self.made(metadata, node, pool).await }
    }

    /// Starts a controller under the account, the rights and the policies of the chart, and waits until it is ready.
    pub async fn controller(&self, conf: &str) -> Controller {
        chart::controller_rights(&self.admin).await;
        std::fs::create_dir(self.folder.path().join("controller")).expect("writable");
        self.controller_again(conf).await
    }

    /// The same, after the first one.
    pub async fn controller_again(&self, conf: &str) -> Controller {
        let folder = self.folder.path().join("controller");
        let token = chart::account_token(&self.admin, "spiderpool-controller").await;
        let kubeconfig = chart::kubeconfig(&self.server, &token, &folder);
        let controller = Controller::start(&folder, &kubeconfig, conf);
        controller.until_ready().await;
        controller
    }

    /// Other settings for the controller that runs.
    pub fn reconfigure_controller(&self, conf: &str) {
        std::fs::write(self.folder.path().join("controller/conf.yml"), conf).expect("writable");
    }

    /// Asks to let go of an address without a word to its provider, as `spiderpoolctl release --abandon` does.
    pub async fn abandon(&self, address: &str) {
        let asked = json!({"spec": {"releaseRequest": {"by": ADMIN, "at": "2026-01-01T00:00:00Z", "abandon": true}}});
        let (at, kind) = (format!("{ALLOCATIONS}/{address}"), "application/merge-patch+json");
        let asked = asked.to_string().into_bytes();
        send(&self.admin, "PATCH", &at, kind, asked).await.expect("answers").accepted();
    }

    /// What is told of this object under this reason.
    pub async fn told(&self, object: &str, reason: &str) -> Vec<String> {
        let events = self.list("/apis/events.k8s.io/v1/events").await;
        let of = events.iter().filter(|one| one["reason"] == reason && one["regarding"]["name"] == object);
        of.map(|one| text(one, "/note")).collect()
    }

    /// States that a machine is off.
    pub async fn out_of_service(&self, node: &str) {
        let taint = json!({"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"});
        let body = json!({"spec": {"taints": [taint]}}).to_string().into_bytes();
        let kind = "application/merge-patch+json";
        send(&self.admin, "PATCH", &format!("/api/v1/nodes/{node}"), kind, body).await.expect("answers").accepted();
    }

    /// A pod on a node with a name that the API server ends, as controllers make them, and its first sandbox.
    pub async fn generated(&self, prefix: &str, node: &str, pool: &str) -> Sandbox {
        self.made(json!({"generateName": prefix}), node, pool).await
    }

    async fn made(&self, metadata: Value, node: &str, pool: &str) -> Sandbox {
        let pod =
            json!({"metadata": metadata, "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}});
        let made = create(&self.admin, PODS, &pod).await;
        let (name, uid) = (text(made.accepted(), "/metadata/name"), text(made.accepted(), "/metadata/uid"));
        Sandbox { container: format!("{name}-0"), pod: name, uid, pool: pool.to_owned(), master: String::new() }
    }

    /// So many pods, spread over the nodes.
    pub async fn pods(&self, prefix: &str, count: usize, nodes: &[Node], pool: &str) -> Vec<(usize, Sandbox)> {
        let each = (0..count).map(|n| async move {
            let at = n % nodes.len();
            (at, self.pod(&format!("{prefix}-{n}"), &nodes[at].name, pool).await)
        });
        futures::stream::iter(each).buffer_unordered(AT_ONCE).collect().await
    }

    /// So many pods of one node, as a controller makes them.
    pub async fn generated_pods(&self, prefix: &str, count: usize, node: &str, pool: &str) -> Vec<Sandbox> {
        let each = (0..count).map(|_| self.generated(prefix, node, pool));
        futures::stream::iter(each).buffer_unordered(AT_ONCE).collect().await
    }

    /// A pod goes, at once.
    pub async fn end(&self, pod: &str) {
        let at = format!("{PODS}/{pod}?gracePeriodSeconds=0");
        send(&self.admin, "DELETE", &at, "application/json", Vec::new()).await.expect("answers").accepted();
    }

    /// Deletes the endpoints of pods that are gone, in the name of the garbage collector.
    pub async fn collect(&self) {
        let live: BTreeSet<String> = self.names(PODS).await.into_iter().collect();
        let gone: Vec<String> = self.names(ENDPOINTS).await.into_iter().filter(|name| !live.contains(name)).collect();
        let each = gone.iter().map(|name| async move {
            let collector = "system:serviceaccount:kube-system:generic-garbage-collector";
            let request = http::Request::delete(format!("{ENDPOINTS}/{name}"))
                .header("impersonate-user", collector)
                .header("impersonate-group", "system:masters")
                .body(Vec::new().into());
            let response = self.admin.send(request.expect("a request")).await.expect("answers");
            let status = response.status();
            let body = response.into_body().collect().await.expect("a body").to_bytes();
            assert!(status.is_success(), "{status} {}", String::from_utf8_lossy(&body));
        });
        futures::stream::iter(each).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
    }

    async fn list(&self, path: &str) -> Vec<Value> {
        let answer = send(&self.admin, "GET", path, "application/json", Vec::new()).await.expect("answers");
        answer.accepted()["items"].as_array().cloned().unwrap_or_default()
    }

    async fn names(&self, path: &str) -> Vec<String> {
        self.list(path).await.iter().map(|one| text(one, "/metadata/name")).collect()
    }

    /// Addresses that are held, and by which pod.
    pub async fn held(&self) -> BTreeMap<String, String> {
        self.list(ALLOCATIONS)
            .await
            .iter()
            .map(|one| (text(one, "/spec/address"), text(one, "/spec/pod/name")))
            .collect()
    }

    /// Addresses that endpoints show, and of which pod. Ends the test if two show the same.
    pub async fn shown(&self) -> BTreeMap<String, String> {
        let mut shown = BTreeMap::new();
        for one in self.list(ENDPOINTS).await {
            let name = text(&one, "/metadata/name");
            for ip in one.pointer("/status/current/ips").and_then(Value::as_array).into_iter().flatten() {
                let address = text(ip, "/ipv4").split('/').next().unwrap_or_default().to_owned();
                let other = shown.insert(address.clone(), name.clone());
                assert_eq!(other, None, "{address} is shown twice");
            }
        }
        shown
    }
}

fn text(value: &Value, at: &str) -> String {
    value.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned()
}

impl Node {
    /// The same, with an agent that finds `server` at another address.
    #[must_use]
    pub fn through(self, server: &ApiServer, url: &str) -> Self {
        let text = std::fs::read_to_string(&self.kubeconfig).expect("readable");
        std::fs::write(&self.kubeconfig, text.replace(server.url(), url)).expect("writable");
        self
    }

    /// Starts its agent.
    pub fn agent(&self) -> Agent {
        let kubeconfig = self.kubeconfig.display().to_string();
        let conf = format!("ipamUnixSocketPath: {}\n", self.socket().display());
        Agent::start(&self.folder, &self.name, &conf, &[("KUBECONFIG", &kubeconfig)])
    }

    /// Starts its agent and waits until it is ready.
    pub async fn ready_agent(&self) -> Agent {
        self.ready(self.agent()).await
    }

    /// Starts its agent with these further lines of conf.yml, and with one NIC on its machine, and waits until it is ready.
    pub async fn providing_agent(&self, conf: &str) -> Agent {
        let nic = self.folder.join("sysfs/class/net").join(NIC);
        std::fs::create_dir_all(&nic).expect("writable");
        std::fs::write(nic.join("address"), format!("{NIC_MAC}\n")).expect("writable");
        let kubeconfig = self.kubeconfig.display().to_string();
        let conf = self.conf(conf);
        self.ready(Agent::start(&self.folder, &self.name, &conf, &[("KUBECONFIG", &kubeconfig)])).await
    }

    /// Other further lines for the agent that runs.
    pub fn reconfigure(&self, conf: &str) {
        Agent::reconfigure(&self.folder, &self.conf(conf));
    }

    fn conf(&self, more: &str) -> String {
        format!("ipamUnixSocketPath: {}\n{more}", self.socket().display())
    }

    async fn ready(&self, agent: Agent) -> Agent {
        wait::until("an agent that is ready", SOON, async || {
            let (status, body) = agent.page("/ready").await.with_context(|| agent.logged())?;
            ensure!(status == 200, "{body}\n{}", agent.logged());
            Ok(())
        })
        .await;
        agent
    }

    /// Where its agent is asked.
    pub fn socket(&self) -> PathBuf {
        self.folder.join("ipam.sock")
    }

    /// A connection to its agent, once that listens.
    pub async fn plugin(&self) -> Plugin {
        wait::until("the agent's socket", SOON, async || Plugin::dial(&self.socket()).await).await
    }
}
