//! etcd and kube-apiserver on free loopback ports: enough for all that needs no kubelet. About 3 s.

use crate::agent::free_port;
use crate::process::{Running, run};
use crate::wait;
use anyhow::Context;
use k8s_openapi::api::core::v1::Namespace;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tempfile::TempDir;

/// A Kubernetes API of its own. It ends with this value.
#[derive(Debug)]
pub struct ApiServer {
    folder: TempDir,
    url: String,
    _processes: [Running; 2],
}

/// One finished request, from the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Who asked.
    pub user: String,
    /// `get`, `list`, `watch`, `create` and so on.
    pub verb: String,
    /// Path and query.
    pub uri: String,
}

/// Everybody who may do everything.
pub const ADMIN: &str = "admin";
/// A user without rights of its own, for a program under test.
pub const AGENT: &str = "spiderpool-agent";
/// Another.
pub const CONTROLLER: &str = "spiderpool-controller";

/// Long: on a machine with two busy cores several start at once.
const START: Duration = Duration::from_mins(2);

impl ApiServer {
    /// Starts both and waits until they answer.
    pub async fn start() -> Self {
        runtime::install_crypto();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let at = |name: &str| folder.path().join(name).display().to_string();
        let programs = run("dev/binaries/build", ["etcd", "kubernetes"]);
        let program = |name: &str| {
            let mut found = programs.split(':').map(|folder| Path::new(folder).join(name));
            found.find(|path| path.exists()).unwrap_or_else(|| panic!("dev/binaries/build makes {name}"))
        };

        let etcd_url = format!("http://127.0.0.1:{}", free_port());
        let etcd = Running::start(
            &program("etcd"),
            &[
                format!("--data-dir={}", at("etcd")),
                format!("--listen-client-urls={etcd_url}"),
                format!("--advertise-client-urls={etcd_url}"),
                format!("--listen-peer-urls=http://127.0.0.1:{}", free_port()),
                "--unsafe-no-fsync".to_owned(),
            ],
            &[],
            &folder.path().join("etcd.log"),
        );

        let tokens = format!(
            "{ADMIN}-token,{ADMIN},1,\"system:masters\"\n{AGENT}-token,{AGENT},2,\n{CONTROLLER}-token,{CONTROLLER},3,\n"
        );
        fs::write(at("tokens.csv"), tokens).expect("writable");
        let policy =
            "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n";
        fs::write(at("audit-policy.yaml"), policy).expect("writable");
        run("openssl", ["genrsa", "-out", &at("sa.key"), "2048"]);
        let port = free_port();
        let api_server = Running::start(
            &program("kube-apiserver"),
            &[
                format!("--etcd-servers={etcd_url}"),
                format!("--secure-port={port}"),
                "--bind-address=127.0.0.1".to_owned(),
                format!("--cert-dir={}", at("pki")),
                format!("--token-auth-file={}", at("tokens.csv")),
                "--authorization-mode=RBAC".to_owned(),
                format!("--service-account-key-file={}", at("sa.key")),
                format!("--service-account-signing-key-file={}", at("sa.key")),
                "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
                "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
                "--disable-admission-plugins=ServiceAccount".to_owned(),
                format!("--audit-policy-file={}", at("audit-policy.yaml")),
                format!("--audit-log-path={}", at("audit.log")),
            ],
            &[],
            &folder.path().join("api-server.log"),
        );

        let url = format!("https://127.0.0.1:{port}");
        let started = Self { folder, url, _processes: [api_server, etcd] };
        wait::until("the API server", START, async || {
            let log = fs::read_to_string(started.folder.path().join("api-server.log")).unwrap_or_default();
            started.answers().await.with_context(|| format!("its log ends with {:?}", log.lines().last()))
        })
        .await;
        started
    }

    /// Whether all that it makes at its start is there, such as namespaces and roles.
    async fn answers(&self) -> anyhow::Result<()> {
        let client = self.try_client(ADMIN).await?;
        client.request_text(http::Request::get("/readyz").body(Vec::new())?).await?;
        let namespaces = kube::Api::<Namespace>::all(client);
        for name in ["default", "kube-system"] {
            namespaces.get(name).await?;
        }
        Ok(())
    }

    async fn try_client(&self, user: &str) -> anyhow::Result<Client> {
        let kubeconfig = Kubeconfig::read_from(self.kubeconfig(user))?;
        Ok(Client::try_from(Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?)?)
    }

    /// A client as `user`.
    pub async fn client(&self, user: &str) -> Client {
        self.try_client(user).await.expect("the server answered before")
    }

    /// A client without an identity, for requests that bring their own.
    pub async fn stranger(&self) -> Client {
        let kubeconfig = Kubeconfig::read_from(self.kubeconfig("stranger")).expect("just written");
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await.expect("a configuration");
        config.auth_info = kube::config::AuthInfo::default();
        Client::try_from(config).expect("a client")
    }

    /// Where it answers.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A kubeconfig file for `user`.
    pub fn kubeconfig(&self, user: &str) -> PathBuf {
        let authority = self.folder.path().join("pki/apiserver.crt");
        let path = self.folder.path().join(format!("{user}.kubeconfig"));
        let text = format!(
            "apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: \"{}\", certificate-authority: {}}}}}]
users: [{{name: u, user: {{token: {user}-token}}}}]
contexts: [{{name: c, context: {{cluster: c, user: u}}}}]
current-context: c
",
            self.url,
            authority.display()
        );
        fs::write(&path, text).expect("writable");
        path
    }

    async fn metrics(&self) -> String {
        let client = self.client(ADMIN).await;
        let asked = http::Request::get("/metrics").body(Vec::new()).expect("a request");
        client.request_text(asked).await.expect("answers")
    }

    /// What it has sent so far to all who watch objects of this kind: events, and their bytes. And its CPU time, in seconds.
    pub async fn sent(&self, kind: &str) -> (f64, f64, f64) {
        let page = self.metrics().await;
        let sum = |name: &str, of: &str| -> f64 {
            let lines = page.lines().filter(|line| line.starts_with(name) && line.to_lowercase().contains(of));
            lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
        };
        let kind = kind.to_lowercase();
        let (events, bytes) = ("apiserver_watch_events_total{", "apiserver_watch_events_sizes_sum{");
        (sum(events, &kind), sum(bytes, &kind), sum("process_cpu_seconds_total", ""))
    }

    /// How many requests were answered so far, by verb, resource and status: `POST pods 201`.
    pub async fn answered(&self) -> BTreeMap<String, u64> {
        let page = self.metrics().await;
        let label = |line: &str, name: &str| {
            let value = line.split_once(&format!("{name}=\""))?.1;
            Some(value.split_once('"')?.0.to_owned())
        };
        let mut counts = BTreeMap::new();
        for line in page.lines().filter(|line| line.starts_with("apiserver_request_total{")) {
            let labels = [label(line, "verb"), label(line, "resource"), label(line, "code")];
            let key: Vec<String> = labels.into_iter().flatten().collect();
            let count = line.rsplit(' ').next().and_then(|number| number.parse::<u64>().ok()).unwrap_or_default();
            *counts.entry(key.join(" ")).or_default() += count;
        }
        counts
    }

    /// Annotations of the audit log for the requests whose path begins so.
    pub fn audit_annotations(&self, path: &str) -> Vec<Value> {
        let log = fs::read_to_string(self.folder.path().join("audit.log")).unwrap_or_default();
        let entries = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let at = |entry: &Value| entry["requestURI"].as_str().is_some_and(|uri| uri.starts_with(path));
        entries.filter(at).map(|entry| entry["annotations"].clone()).collect()
    }

    /// Every request of `user` that was answered before this call. Each is logged after its answer; what was answered before
    /// a request of our own is there when that one is.
    pub async fn requests_until_now(&self, user: &str) -> Vec<Request> {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        let uri = format!("/api/v1/namespaces/default?mark={}", ASKED.fetch_add(1, Ordering::Relaxed));
        let client = self.client(ADMIN).await;
        client.request_text(http::Request::get(&uri).body(Vec::new()).expect("a request")).await.expect("answers");
        wait::until("the audit log", START, async || {
            self.requests_of(ADMIN).iter().any(|request| request.uri == uri).then_some(()).context("not yet")
        })
        .await;
        self.requests_of(user)
    }

    /// Requests of `user` that were answered and logged so far.
    pub fn requests_of(&self, user: &str) -> Vec<Request> {
        let log = fs::read_to_string(self.folder.path().join("audit.log")).unwrap_or_default();
        let entries = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let text = |entry: &Value, at: &str| entry.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
        let requests = entries.map(|entry| Request {
            user: text(&entry, "/user/username"),
            verb: text(&entry, "/verb"),
            uri: text(&entry, "/requestURI"),
        });
        requests.filter(|request| request.user == user).collect()
    }
}
