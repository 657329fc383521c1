//! The controller's binary against an API server, with the chart's webhooks and the chart's rights.

use crate::agent::{conf, free_port, page, program};
use crate::answer::{Answer, annotated, pod_with, send};
use crate::api_server::{ADMIN, ApiServer, CONTROLLER};
use crate::cable::Cable;
use crate::chart;
use crate::process::{Running, run};
use crate::wait;
use anyhow::{Context, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::{Client, Config};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tempfile::TempDir;

/// Long enough for everything that is not measured.
pub const SOON: Duration = Duration::from_mins(2);

/// An API server that knows our kinds and grants the controller what the chart grants.
pub struct Stage {
    /// The server.
    pub server: ApiServer,
    /// Everybody who may do everything.
    pub admin: Client,
    /// conf.yml, certificate and logs.
    pub folder: TempDir,
}

/// A controller that runs.
pub struct Controller {
    /// The process.
    pub process: Running,
    log: PathBuf,
    admin: SocketAddr,
    /// `https://localhost:PORT`
    pub url: String,
}

/// The controller's program: see [`program`].
pub fn binary() -> PathBuf {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| program("CONTROLLER_BINARY", "spiderpool-controller")).clone()
}

/// The values of the quick start, and more of them for one scenario.
pub fn rendered(template: &str, more: &[&str]) -> Vec<Value> {
    let show = format!("--show-only=templates/{template}");
    let fixed =
        ["template", "spiderpool", "charts/spiderpool", "--namespace=kube-system", "--kube-version=1.36.3", &show];
    let text = run("helm", fixed.iter().chain(&["--values=docs/examples/quick-start.yaml"]).chain(more));
    let documents = text.split("\n---").filter(|document| document.contains("kind:"));
    documents.map(|document| serde_saphyr::from_str(document).expect("YAML")).collect()
}

impl Stage {
    /// Starts the server and installs what the chart brings.
    pub async fn set() -> Self {
        let server = ApiServer::start().await;
        let admin = server.client(ADMIN).await;
        let stage = Self { server, admin, folder: tempfile::tempdir().expect("a folder") };
        chart::kinds(&stage.admin).await;
        stage.certificate();
        stage
    }

    /// Grants the controller's user what the chart grants to its account.
    pub async fn grant(&self) {
        self.create("/api/v1/namespaces", &json!({"metadata": {"name": "kube-system"}})).await;
        self.grant_more("controller/rbac.yaml", &[]).await;
    }

    /// Grants the controller's user what this template of the chart grants to its account.
    pub async fn grant_more(&self, template: &str, more: &[&str]) {
        for mut document in rendered(template, more) {
            let kind = document["kind"].as_str().unwrap_or_default().to_owned();
            if !["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"].contains(&kind.as_str()) {
                continue;
            }
            let part = match document["metadata"]["namespace"].as_str() {
                Some(namespace) => format!("namespaces/{namespace}/"),
                None => String::new(),
            };
            let path = format!("/apis/rbac.authorization.k8s.io/v1/{part}{}s", kind.to_lowercase());
            if document.get("subjects").is_some() {
                document["subjects"] =
                    json!([{"kind": "User", "name": CONTROLLER, "apiGroup": "rbac.authorization.k8s.io"}]);
            }
            self.create(&path, &document).await.accepted();
        }
    }

    /// Installs Multus's kind, as Multus defines it.
    pub async fn multus(&self) {
        let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"config": {"type": "string"}}}}}});
        let definition = json!({
            "metadata": {"name": "network-attachment-definitions.k8s.cni.cncf.io"},
            "spec": {
                "group": "k8s.cni.cncf.io",
                "scope": "Namespaced",
                "names": {"plural": "network-attachment-definitions", "singular": "network-attachment-definition", "kind": "NetworkAttachmentDefinition", "shortNames": ["net-attach-def"]},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
            },
        });
        self.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await.accepted();
        wait::until("NetworkAttachmentDefinitions to be served", SOON, async || {
            let path = "/apis/k8s.cni.cncf.io/v1/network-attachment-definitions";
            let answer = send(&self.admin, "GET", path, "application/json", Vec::new()).await?;
            ensure!(answer.status == 200, "{answer:?}");
            Ok(())
        })
        .await;
    }

    /// Holds the controller's user to what the chart holds its account to.
    pub async fn hold(&self) {
        for document in rendered("controller/namespaces.yaml", &[]) {
            let account = "system:serviceaccount:kube-system:spiderpool-controller";
            assert!(document["kind"] != "ValidatingAdmissionPolicy" || document.to_string().contains(account));
            let document: Value =
                serde_json::from_str(&document.to_string().replace(account, CONTROLLER)).expect("JSON");
            let plural = match document["kind"].as_str() {
                Some("ValidatingAdmissionPolicy") => "validatingadmissionpolicies",
                _ => "validatingadmissionpolicybindings",
            };
            self.create(&format!("/apis/admissionregistration.k8s.io/v1/{plural}"), &document).await.accepted();
        }
    }

    /// The configuration of the quick start.
    pub fn conf() -> String {
        let rules = "[{defaultMaxCount: 256}]}, masterNIC: {rules: [{includeInterfaces: ['eth*']}]";
        format!("{}podResourceInject: {{enabled: true}}\n", conf(Path::new("/var/lib/kubelet"), rules))
    }

    /// A new certificate for localhost, put in its place as a mounted Secret changes.
    pub fn certificate(&self) {
        self.certificate_beside().swap();
        for name in ["tls.crt", "tls.key"] {
            let _ = symlink(format!("..data/{name}"), self.folder.path().join(name));
        }
    }

    /// A new certificate for localhost that is not in its place yet.
    pub fn certificate_beside(&self) -> NextCertificate {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a pair");
        let mount = self.folder.path().to_owned();
        let version = tempfile::Builder::new().prefix("..").tempdir_in(&mount).expect("a folder").keep();
        let next = NextCertificate { mount, version, authority: made.cert.pem() };
        std::fs::write(next.folder().join("tls.crt"), made.cert.pem()).expect("writable");
        std::fs::write(next.folder().join("tls.key"), made.signing_key.serialize_pem()).expect("writable");
        next
    }

    /// The certificate that is in its place.
    pub fn authority(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("tls.crt")).expect("a certificate")
    }

    /// Starts a controller; it may not be ready yet.
    pub fn controller(&self, conf: &str) -> Controller {
        self.controller_with(conf, &self.files())
    }

    /// The certificate that is in its place, as arguments.
    fn files(&self) -> [String; 2] {
        let at = |name: &str| self.folder.path().join(name).display().to_string();
        [format!("--tls-server-cert={}", at("tls.crt")), format!("--tls-server-key={}", at("tls.key"))]
    }

    /// Starts a controller that has its certificate from elsewhere.
    pub fn controller_with(&self, conf: &str, tls: &[String]) -> Controller {
        self.controller_of(&self.server.kubeconfig(CONTROLLER), conf, tls)
    }

    /// Starts a controller that reaches the API server through a cable, and waits until it is ready.
    pub async fn controller_behind(&self, cable: &Cable, conf: &str) -> Controller {
        let text = std::fs::read_to_string(self.server.kubeconfig(CONTROLLER)).expect("readable");
        let text = text.replace(self.server.url(), &format!("https://127.0.0.1:{}", cable.port()));
        let file = self.folder.path().join(format!("behind-{}.kubeconfig", cable.port()));
        std::fs::write(&file, text).expect("writable");
        let controller = self.controller_of(&file, conf, &self.files());
        controller.until_ready().await;
        controller
    }

    fn controller_of(&self, kubeconfig: &Path, conf: &str, tls: &[String]) -> Controller {
        Controller::of(self.folder.path(), kubeconfig, conf, tls)
    }

    /// Starts a controller and waits until it is ready.
    pub async fn ready_controller(&self, conf: &str) -> Controller {
        let controller = self.controller(conf);
        controller.until_ready().await;
        controller
    }

    /// Puts the chart's webhooks in force, for a controller at `url`; returns the names of its entries for pods.
    pub async fn webhooks(&self, url: &str, authority: &str, more: &[&str]) -> Vec<String> {
        const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
        let documents = rendered("controller/webhook.yaml", more);
        let mut names = Vec::new();
        // The validating one first: while mutating entries fail, nobody would get as far as it.
        let kinds = [
            ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
            ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
        ];
        let found = kinds.map(|(kind, plural)| {
            let found = documents.iter().find(|document| document["kind"] == kind).expect("the chart renders webhooks");
            (format!("{GROUP}/{plural}"), found.clone())
        });
        for (path, configuration) in &found {
            let own = format!("{path}/{}", configuration["metadata"]["name"].as_str().expect("a name"));
            send(&self.admin, "DELETE", &own, "application/json", Vec::new()).await.expect("answers");
        }
        for (path, mut configuration) in found {
            for entry in configuration["webhooks"].as_array_mut().expect("a list") {
                let (path, bundle) = (entry["clientConfig"]["service"]["path"].take(), STANDARD.encode(authority));
                let path = path.as_str().expect("a path");
                entry["clientConfig"] = json!({"url": format!("{url}{path}"), "caBundle": bundle});
                if entry["rules"][0]["resources"] == json!(["pods"]) {
                    names.push(entry["name"].as_str().expect("a name").to_owned());
                }
            }
            self.put_in_force("POST", &path, configuration).await;
        }
        names
    }

    /// Sends a webhook configuration and waits until the API server, which hears of it by a watch, goes by it: one entry
    /// more refuses one pod and no other.
    pub async fn put_in_force(&self, method: &str, path: &str, mut configuration: Value) {
        static SENT: AtomicUsize = AtomicUsize::new(0);
        const MARKS: &str = ".mark.tests.example";
        let mark = format!("n{}{MARKS}", SENT.fetch_add(1, Ordering::Relaxed));
        let entries = configuration["webhooks"].as_array_mut().expect("a list");
        entries.retain(|entry| !entry["name"].as_str().is_some_and(|name| name.ends_with(MARKS)));
        // Nobody listens there. The first that fails is named.
        let nowhere = format!("https://localhost:{}", free_port());
        let entry = json!({
            "name": mark, "admissionReviewVersions": ["v1"], "sideEffects": "None", "clientConfig": {"url": nowhere},
            "matchConditions": [{"name": "mark", "expression": format!("has(object.metadata.name) && object.metadata.name == '{mark}'")}],
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}],
        });
        entries.insert(0, entry);
        let body = configuration.to_string().into_bytes();
        send(&self.admin, method, path, "application/json", body).await.expect("the API server answers").accepted();
        let mut pod = pod_with(&json!({"a": "b"}));
        pod["metadata"]["name"] = mark.clone().into();
        wait::until("the API server to go by a webhook configuration", SOON, async || {
            let answer = self.create("/api/v1/namespaces/default/pods?dryRun=All", &pod).await;
            ensure!(answer.status >= 400 && answer.refused().contains(&mark), "{answer:?}");
            Ok(())
        })
        .await;
    }

    /// Creates an object.
    pub async fn create(&self, path: &str, object: &Value) -> Answer {
        let body = object.to_string().into_bytes();
        send(&self.admin, "POST", path, "application/json", body).await.expect("the API server answers")
    }

    /// Changes an object by a merge patch.
    pub async fn merge(&self, path: &str, change: &Value) -> Answer {
        let body = change.to_string().into_bytes();
        send(&self.admin, "PATCH", path, "application/merge-patch+json", body).await.expect("the API server answers")
    }

    /// Creates a namespace.
    pub async fn namespace(&self, name: &str) {
        self.create("/api/v1/namespaces", &json!({"metadata": {"name": name}})).await.accepted();
    }

    /// Creates an attachment of the quick start's kind.
    pub async fn attachment(&self, namespace: &str, name: &str, spec: Value) {
        let path = format!("/apis/spiderpool.spidernet.io/v2beta1/namespaces/{namespace}/spidermultusconfigs");
        let object = json!({"apiVersion": "spiderpool.spidernet.io/v2beta1", "kind": "SpiderMultusConfig", "metadata": {"name": name}, "spec": spec});
        self.create(&path, &object).await.accepted();
    }

    /// Creates a pod.
    pub async fn pod(&self, namespace: &str, pod: &Value) -> Answer {
        self.create(&format!("/api/v1/namespaces/{namespace}/pods"), pod).await
    }

    /// Waits until the webhooks that were put in force are asked.
    pub async fn until_asked(&self, namespace: &str) {
        wait::until("the API server to ask the webhook", SOON, async || {
            let path = format!("/api/v1/namespaces/{namespace}/pods?dryRun=All");
            let answer = self.create(&path, &annotated("spiderpool-nowhere/none")).await;
            let asked = answer.warnings.iter().any(|warning| warning.contains("there is no attachment"));
            ensure!(asked || answer.status >= 400, "{answer:?}");
            Ok(())
        })
        .await;
    }
}

/// A certificate beside the one in use.
#[derive(Debug)]
pub struct NextCertificate {
    mount: PathBuf,
    version: PathBuf,
    /// What an API server must trust for it, PEM.
    pub authority: String,
}

impl NextCertificate {
    /// Where its files lie.
    pub fn folder(&self) -> &Path {
        &self.version
    }

    /// Puts it in its place, as the kubelet does: one link moves.
    pub fn swap(&self) {
        symlink(self.version.file_name().expect("a name"), self.mount.join("..new")).expect("a link");
        std::fs::rename(self.mount.join("..new"), self.mount.join("..data")).expect("a swap");
    }
}

impl Controller {
    /// Starts one with a certificate of its own in `folder`; it may not be ready yet.
    pub fn start(folder: &Path, kubeconfig: &Path, conf: &str) -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a pair");
        let [certificate, key] = ["tls.crt", "tls.key"].map(|name| folder.join(name));
        std::fs::write(&certificate, made.cert.pem()).expect("writable");
        std::fs::write(&key, made.signing_key.serialize_pem()).expect("writable");
        let tls =
            [format!("--tls-server-cert={}", certificate.display()), format!("--tls-server-key={}", key.display())];
        Self::of(folder, kubeconfig, conf, &tls)
    }

    fn of(folder: &Path, kubeconfig: &Path, conf: &str, tls: &[String]) -> Self {
        let file = folder.join("conf.yml");
        std::fs::write(&file, conf).expect("writable");
        let (webhook, admin) = (free_port(), SocketAddr::from((Ipv4Addr::LOCALHOST, free_port())));
        let log = folder.join(format!("controller-{webhook}.log"));
        let fixed = [
            "daemon".to_owned(),
            "--threads=1".to_owned(),
            format!("--config-path={}", file.display()),
            format!("--webhook-address=127.0.0.1:{webhook}"),
            format!("--admin-address={admin}"),
        ];
        let arguments = [&fixed[..], tls].concat();
        let kubeconfig = kubeconfig.display().to_string();
        let name = format!("controller-{webhook}");
        let env = [
            ("KUBECONFIG", kubeconfig.as_str()),
            ("SPIDERPOOL_POD_NAMESPACE", "kube-system"),
            ("SPIDERPOOL_POD_NAME", &name),
        ];
        let process = Running::start(&binary(), &arguments, &env, &log);
        Controller { process, log, admin, url: format!("https://localhost:{webhook}") }
    }

    /// Waits until it says ready.
    pub async fn until_ready(&self) {
        wait::until("a controller that is ready", SOON, async || {
            ensure!(self.page("/ready").await.context(self.logged())?.0 == 200, "{}", self.logged());
            Ok(())
        })
        .await;
    }

    /// Status and body of a page of the admin port.
    pub async fn page(&self, path: &str) -> Result<(u16, String), std::io::Error> {
        page(self.admin, path).await
    }

    /// What was logged so far.
    pub fn logged(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// A client that asks it directly, as an API server does.
    pub fn client(&self, authority: &str) -> Client {
        use rustls::pki_types::CertificateDer;
        use rustls::pki_types::pem::PemObject;
        let mut config = Config::new(self.url.parse().expect("a URL"));
        let trusted = CertificateDer::pem_slice_iter(authority.as_bytes()).flatten().map(|one| one.to_vec()).collect();
        config.root_cert = Some(trusted);
        config.read_timeout = Some(SOON);
        Client::try_from(config).expect("a client")
    }
}
