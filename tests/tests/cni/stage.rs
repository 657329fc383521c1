//! An API server, an agent, and runs of the plugin.

use serde_json::{Value, json};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tests::agent::{Agent, binary, conf, program};
use tests::answer::{Answer, send};
use tests::api_server::{ADMIN, ApiServer};
use tests::wait;

pub const SOON: Duration = Duration::from_mins(2);
const OURS: &str = "/apis/spiderpool.spidernet.io/v2beta1";
const PODS: &str = "/api/v1/namespaces/default/pods";
const NODE: &str = "node";

pub struct Stage {
    server: ApiServer,
    admin: kube::Client,
    folder: tempfile::TempDir,
    plugin: PathBuf,
}

pub struct Pod {
    name: String,
    uid: String,
}

/// One interface of one sandbox.
#[derive(Clone)]
pub struct Plugin {
    program: PathBuf,
    socket: PathBuf,
    netns: Option<String>,
    args: String,
    container: String,
    interface: String,
    before: Option<String>,
    log: PathBuf,
}

impl Stage {
    /// With our kinds, and a pool of so many addresses.
    pub async fn set(addresses: u32) -> Self {
        let stage = Self::bare().await;
        stage.define(addresses).await;
        stage
    }

    /// A Node and nothing of ours.
    pub async fn bare() -> Self {
        let server = ApiServer::start().await;
        let admin = server.client(ADMIN).await;
        let folder = tempfile::tempdir().expect("a folder");
        let stage = Self { server, admin, folder, plugin: program("CNI_BINARY", "spiderpool") };
        stage.create("/api/v1/nodes", &json!({"metadata": {"name": NODE}})).await;
        stage
    }

    pub async fn define(&self, addresses: u32) {
        for definition in k8s_api::crd::definitions() {
            let definition = serde_json::to_value(definition).expect("JSON");
            self.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await;
        }
        let pool = json!({
            "apiVersion": "spiderpool.spidernet.io/v2beta1", "kind": "SpiderIPPool", "metadata": {"name": "pool"},
            "spec": {"subnet": "10.77.0.0/16", "ips": [format!("10.77.0.10-10.77.0.{}", 9 + addresses)]},
        });
        wait::until("pools to be served", SOON, async || {
            let answer = self.ask("POST", &format!("{OURS}/spiderippools"), &pool).await;
            anyhow::ensure!(answer.status < 300, "{answer:?}");
            Ok(())
        })
        .await;
    }

    async fn ask(&self, method: &str, path: &str, body: &Value) -> Answer {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        send(&self.admin, method, path, "application/json", body).await.expect("answers")
    }

    async fn create(&self, path: &str, object: &Value) -> Value {
        self.ask("POST", path, object).await.accepted().clone()
    }

    pub fn agent(&self) -> Agent {
        let kubeconfig = self.server.kubeconfig(ADMIN).display().to_string();
        let (program, env) = (binary().display().to_string(), [("KUBECONFIG", kubeconfig.as_str())]);
        let root = std::fs::metadata("/proc/self").expect("there").uid() == 0;
        // It serves root alone, which others are in a namespace of their own.
        let command: &[&str] = if root { &[&program] } else { &["unshare", "--map-root-user", &program] };
        Agent::start_under(command, self.folder.path(), NODE, &conf(self.folder.path(), "[]"), &env)
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("ipam.sock")
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub async fn pod(&self, name: &str) -> Pod {
        let pod = json!({
            "metadata": {"name": name},
            "spec": {"nodeName": NODE, "automountServiceAccountToken": false, "containers": [{"name": "a", "image": "a"}]},
        });
        let made = self.create(PODS, &pod).await;
        Pod { name: name.to_owned(), uid: made["metadata"]["uid"].as_str().expect("a UID").to_owned() }
    }

    /// At once, as with a grace of 0.
    pub async fn delete_pod(&self, name: &str) {
        self.ask("DELETE", &format!("{PODS}/{name}"), &json!({"gracePeriodSeconds": 0})).await.accepted();
    }

    /// Pod and address of every allocation, in order.
    pub async fn held(&self) -> Vec<(String, String)> {
        let list = self.ask("GET", &format!("{OURS}/spideripallocations"), &Value::Null).await;
        let items = list.accepted()["items"].as_array().expect("a list").clone();
        let text = |item: &Value, pointer| item.pointer(pointer).and_then(Value::as_str).expect("there").to_owned();
        items.iter().map(|item| (text(item, "/spec/pod/name"), text(item, "/spec/address"))).collect()
    }

    pub async fn endpoint(&self, name: &str) -> Value {
        let path = format!("{OURS}/namespaces/default/spiderendpoints/{name}");
        self.ask("GET", &path, &Value::Null).await.accepted().clone()
    }

    pub async fn delete_endpoint(&self, name: &str) {
        self.ask("DELETE", &format!("{OURS}/namespaces/default/spiderendpoints/{name}"), &Value::Null).await.accepted();
    }

    pub async fn create_endpoint(&self, endpoint: &Value) {
        self.create(&format!("{OURS}/namespaces/default/spiderendpoints"), endpoint).await;
    }
}

impl Pod {
    pub fn plugin(&self, stage: &Stage, container: &str, interface: &str) -> Plugin {
        let Self { name, uid } = self;
        Plugin {
            program: stage.plugin.clone(),
            socket: stage.socket(),
            netns: Some("/proc/self/ns/net".to_owned()),
            args: format!("IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME={name};K8S_POD_UID={uid}"),
            container: container.to_owned(),
            interface: interface.to_owned(),
            before: None,
            log: "/dev/null".into(),
        }
    }
}

impl Plugin {
    pub fn socket(self, socket: &Path) -> Self {
        Self { socket: socket.to_owned(), ..self }
    }

    pub fn netns(self, netns: Option<&str>) -> Self {
        Self { netns: netns.map(str::to_owned), ..self }
    }

    /// What a runtime remembers of the result.
    pub fn before(self, address: &str) -> Self {
        Self { before: Some(address.to_owned()), ..self }
    }

    pub fn log(self, path: &Path) -> Self {
        Self { log: path.to_owned(), ..self }
    }

    fn start(&self, verb: &str) -> Child {
        let mut conf = json!({
            "cniVersion": "1.0.0", "name": "a-net", "type": "bridge",
            "ipam": {
                "type": "spiderpool", "default_ipv4_ippool": ["pool"], "ipam_unix_socket_path": self.socket,
                "log_file_path": self.log,
            },
        });
        if let Some(address) = &self.before {
            conf["prevResult"] = json!({"cniVersion": "1.0.0", "ips": [{"address": address}]});
        }
        let mut command = Command::new(&self.program);
        command.env_clear().envs([("CNI_COMMAND", verb), ("CNI_CONTAINERID", &self.container)]);
        command.envs([("CNI_IFNAME", &self.interface), ("CNI_ARGS", &self.args)]);
        if let Some(netns) = &self.netns {
            command.env("CNI_NETNS", netns);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
        child.stdin.take().expect("piped").write_all(conf.to_string().as_bytes()).expect("reads");
        child
    }

    /// An ADD that goes on.
    pub fn begin(&self) -> Child {
        self.start("ADD")
    }

    /// The address, or code and text.
    pub fn add(&self) -> Result<String, (u64, String)> {
        let output = self.start("ADD").wait_with_output().expect("ends");
        let answer: Value = serde_json::from_slice(&output.stdout).expect("one document");
        if output.status.success() {
            let cidr = answer["ips"][0]["address"].as_str().expect("an address");
            return Ok(cidr.split('/').next().expect("a part").to_owned());
        }
        let text = format!("{}; {}", answer["msg"].as_str().expect("a text"), answer["details"]);
        Err((answer["code"].as_u64().expect("a code"), text))
    }

    /// As a runtime: again, as long as it is told to.
    pub async fn until_added(&self) -> String {
        wait::until(format!("an address for {}", self.container), SOON, async || {
            let plugin = self.clone();
            let added = tokio::task::spawn_blocking(move || plugin.add()).await.expect("no panic");
            added.map_err(|(code, text)| {
                assert_eq!(code, 11, "{text}");
                text
            })
        })
        .await
    }

    pub fn del(&self) {
        let output = self.start("DEL").wait_with_output().expect("ends");
        assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    }
}
