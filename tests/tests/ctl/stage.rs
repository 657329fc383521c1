//! An API server with our kinds and objects as the parts of the system write them, and `spiderpoolctl` as people run it.

use kube::Client;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::Duration;
use tests::agent::program;
use tests::answer::send;
use tests::api_server::{ADMIN, AGENT, ApiServer};
use tests::chart::{self, create};
use tests::process::attempt;

pub const SOON: Duration = Duration::from_mins(1);
pub const GROUP: &str = "/apis/spiderpool.spidernet.io/v2beta1";
pub const PODS: &str = "/api/v1/namespaces/default/pods";
/// Somebody without rights of their own.
pub const ANN: &str = AGENT;

pub fn allocations() -> String {
    format!("{GROUP}/spideripallocations")
}

pub fn endpoints() -> String {
    format!("{GROUP}/namespaces/default/spiderendpoints")
}

/// The program.
pub fn binary() -> PathBuf {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| program("CTL_BINARY", "spiderpoolctl")).clone()
}

/// What one run came to.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code().unwrap_or(-1), out: text(&output.stdout), err: text(&output.stderr) }
    }
}

impl Ran {
    /// What it wrote for programs.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The line that has all of these words in this order.
    pub fn line(&self, words: &[&str]) -> &str {
        let has = |line: &&str| {
            let mut rest = *line;
            words.iter().all(|word| rest.split_once(word).map(|(_, after)| rest = after).is_some())
        };
        self.out.lines().find(has).unwrap_or_else(|| panic!("{words:?} in {self:?}\n{}", self.out))
    }
}

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

    /// Runs the program as `user`.
    pub fn run(&self, user: &str, arguments: &[&str]) -> Ran {
        let mut command = Command::new(binary());
        command.arg("--kubeconfig").arg(self.server.kubeconfig(user)).args(arguments);
        attempt(&mut command).into()
    }

    pub async fn create(&self, path: &str, object: &Value) -> Value {
        create(&self.admin, path, object).await.accepted().clone()
    }

    pub async fn merge(&self, path: &str, change: &Value) -> Value {
        let change = change.to_string().into_bytes();
        let answer = send(&self.admin, "PATCH", path, "application/merge-patch+json", change).await.expect("answers");
        answer.accepted().clone()
    }

    pub async fn get(&self, path: &str) -> Value {
        send(&self.admin, "GET", path, "application/json", Vec::new()).await.expect("answers").accepted().clone()
    }

    /// A Node with its kubelet's status.
    pub async fn node(&self, name: &str, status: &Value) -> String {
        let made = self.create("/api/v1/nodes", &json!({"metadata": {"name": name}})).await;
        self.merge(&format!("/api/v1/nodes/{name}/status"), &json!({"status": status})).await;
        made["metadata"]["uid"].as_str().expect("a UID").to_owned()
    }

    /// The agent's pod on a node, ready.
    pub async fn agent(&self, node: &str) {
        let owner = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "spiderpool-agent", "uid": "d", "controller": true});
        let labels = json!({"app.kubernetes.io/name": "spiderpool"});
        let name = format!("spiderpool-agent-{node}");
        let pod = json!({
            "metadata": {"name": name, "labels": labels, "ownerReferences": [owner]},
            "spec": {"nodeName": node, "containers": [{"name": "spiderpool-agent", "image": "a"}],
                     "volumes": [{"name": "ipam-socket", "emptyDir": {}}]},
        });
        let path = "/api/v1/namespaces/kube-system/pods";
        self.create(path, &pod).await;
        let ready = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
        self.merge(&format!("{path}/{name}/status"), &ready).await;
    }

    /// A pod of namespace `default`; its UID.
    pub async fn pod(&self, name: &str, annotations: &Value, spec: &Value, status: &Value) -> String {
        let mut whole = json!({"containers": [{"name": "c", "image": "i"}]});
        whole.as_object_mut().expect("a map").extend(spec.as_object().expect("a map").clone());
        let made =
            self.create(PODS, &json!({"metadata": {"name": name, "labels": {"app": "web"}, "annotations": annotations}, "spec": whole})).await;
        self.merge(&format!("{PODS}/{name}/status"), &json!({"status": status})).await;
        made["metadata"]["uid"].as_str().expect("a UID").to_owned()
    }

    pub async fn pool(&self, name: &str, ips: &[&str], more: &Value) {
        let mut spec = json!({"subnet": "10.6.0.0/24", "ips": ips});
        spec.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
        self.create(&format!("{GROUP}/spiderippools"), &object("SpiderIPPool", name, &json!({"spec": spec}))).await;
    }

    /// What a pod has on a node.
    pub async fn held(&self, address: &str, pod: [&str; 2], node: [&str; 2], more: &Value) {
        let [name, uid] = pod;
        let [node, node_uid] = node;
        let mut spec = json!({
            "pool": "pool-a", "address": address, "node": {"name": node, "uid": node_uid}, "state": "Held",
            "interface": "net1", "containerId": "0123456789abcdef", "pod": {"namespace": "default", "name": name, "uid": uid},
        });
        spec.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
        self.create(&allocations(), &object("SpiderIPAllocation", address, &json!({"spec": spec}))).await;
    }

    /// What a pod is shown with.
    pub async fn shown(&self, pod: [&str; 2], node: &str, address: &str) {
        let [name, uid] = pod;
        let entry = json!({"interface": "net1", "ipv4": format!("{address}/24"), "ipv4Pool": "pool-a", "vlan": 7});
        let status = json!({"current": {"uid": uid, "node": node, "ips": [entry]}});
        self.create(&endpoints(), &object("SpiderEndpoint", name, &json!({"status": status}))).await;
    }

    /// The configuration of an installation.
    pub async fn conf(&self, text: &str) {
        let conf = json!({"metadata": {"name": "spiderpool-conf"}, "data": {"conf.yml": text}});
        self.create("/api/v1/namespaces/kube-system/configmaps", &conf).await;
    }

    /// A role with these rules, for `user`.
    pub async fn grant(&self, name: &str, user: &str, rules: &Value) {
        let role = json!({"metadata": {"name": name}, "rules": rules});
        self.create("/apis/rbac.authorization.k8s.io/v1/clusterroles", &role).await;
        self.bind(name, user).await;
    }

    /// A role that is there, for `user`.
    pub async fn bind(&self, name: &str, user: &str) {
        let group = "rbac.authorization.k8s.io";
        let reference = json!({"kind": "ClusterRole", "name": name, "apiGroup": group});
        let subjects = json!([{"kind": "User", "name": user, "apiGroup": group}]);
        let binding =
            json!({"metadata": {"name": format!("{name}-of-{user}")}, "roleRef": reference, "subjects": subjects});
        self.create(&format!("/apis/{group}/v1/clusterrolebindings"), &binding).await;
    }
}

pub fn object(kind: &str, name: &str, rest: &Value) -> Value {
    let mut object = json!({"apiVersion": "spiderpool.spidernet.io/v2beta1", "kind": kind, "metadata": {"name": name}});
    object.as_object_mut().expect("a map").extend(rest.as_object().expect("a map").clone());
    object
}

/// A status of a Node that is ready and offers so many sub-interfaces.
pub fn offers(count: &str) -> Value {
    let resources = json!({"spidernet.io/sub-eni": count, "spidernet.io/eth1-nic": "10k", "cpu": "2"});
    json!({"conditions": [{"type": "Ready", "status": "True"}], "capacity": resources, "allocatable": resources,
           "nodeInfo": {"machineID": "m"}})
}
