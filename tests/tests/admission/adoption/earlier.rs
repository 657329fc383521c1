//! What an earlier system has left on an API server, and that system as long as it goes on.

use crate::JSON;
use anyhow::ensure;
use futures::{StreamExt, stream};
use kube::Client;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tests::answer::{Answer, send};
use tests::api_server::CONTROLLER;
use tests::controller::{Controller, SOON, Stage, rendered};
use tests::wait;

const GROUP: &str = "/apis/spiderpool.spidernet.io/v2beta1";
pub(super) const POOLS: &str = "/apis/spiderpool.spidernet.io/v2beta1/spiderippools";
pub(super) const ALLOCATIONS: &str = "/apis/spiderpool.spidernet.io/v2beta1/spideripallocations";
pub(super) const ENDPOINTS: &str = "/apis/spiderpool.spidernet.io/v2beta1/namespaces/default/spiderendpoints";
const FINALIZER: &str = "spiderpool.spidernet.io";
const AT_ONCE: usize = 16;

/// A record: address, pod, and its UID.
pub(super) type Records = BTreeMap<String, (String, String)>;

pub(super) fn ours(kind: &str, name: &str) -> Value {
    json!({"apiVersion": "spiderpool.spidernet.io/v2beta1", "kind": kind, "metadata": {"name": name}})
}

pub(super) fn ip(n: usize) -> String {
    format!("10.0.{}.{}", n / 250, n % 250 + 1)
}

pub(super) async fn get(stage: &Stage, path: &str) -> Value {
    send(&stage.admin, "GET", path, JSON, Vec::new()).await.expect("answers").body
}

pub(super) async fn patch(client: &Client, path: &str, change: &Value) -> Answer {
    let change = change.to_string().into_bytes();
    send(client, "PATCH", path, "application/merge-patch+json", change).await.expect("answers")
}

/// An API server with nodes `n0` and `n1`; no policy yet.
pub(super) async fn staged() -> Stage {
    let stage = Stage::set().await;
    stage.grant().await;
    for n in 0..2 {
        let node = json!({"metadata": {"name": format!("n{n}")}});
        stage.create("/api/v1/nodes", &node).await.accepted();
        let info = json!({"kubeletVersion": "v1.36.3", "machineID": format!("machine-{n}"), "architecture": "", "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "", "kubeProxyVersion": "", "operatingSystem": "", "osImage": "", "systemUUID": ""});
        let status = json!({"status": {"nodeInfo": info}});
        patch(&stage.admin, &format!("/api/v1/nodes/n{n}/status"), &status).await.accepted();
    }
    stage
}

/// Puts the chart's policies in force, with the controller's user in the place of its account.
pub(super) async fn policies(stage: &Stage) {
    for document in rendered("policies.yaml", &[]) {
        let account = "system:serviceaccount:kube-system:spiderpool-controller";
        let document = serde_json::from_str(&document.to_string().replace(account, CONTROLLER)).expect("JSON");
        let document: Value = document;
        let plural = match document["kind"].as_str() {
            Some("ValidatingAdmissionPolicy") => "validatingadmissionpolicies",
            _ => "validatingadmissionpolicybindings",
        };
        stage.create(&format!("/apis/admissionregistration.k8s.io/v1/{plural}"), &document).await.accepted();
    }
}

pub(super) async fn pool(stage: &Stage, name: &str, third: usize, records: &str) {
    let mut pool = ours("SpiderIPPool", name);
    pool["metadata"]["finalizers"] = json!([FINALIZER]);
    pool["spec"] = json!({"subnet": format!("10.{third}.0.0/16"), "ips": [format!("10.{third}.0.1-10.{third}.9.250")]});
    stage.create(POOLS, &pool).await.accepted();
    record(stage, name, records).await;
}

pub(super) async fn record(stage: &Stage, pool: &str, records: &str) {
    let status = json!({"status": {"allocatedIPs": records, "allocatedIPCount": 1, "totalIPCount": 1}});
    patch(&stage.admin, &format!("{POOLS}/{pool}/status"), &status).await.accepted();
}

pub(super) fn text(records: &Records) -> String {
    let map: BTreeMap<_, _> =
        records.iter().map(|(ip, (pod, uid))| (ip, json!({"pod": format!("default/{pod}"), "podUid": uid}))).collect();
    json!(map).to_string()
}

/// A pod that runs on a node; its UID.
pub(super) async fn pod(stage: &Stage, name: &str, node: &str) -> String {
    let mut pod = tests::answer::pod_with(&json!({}));
    pod["metadata"] = json!({"name": name});
    pod["spec"]["nodeName"] = node.into();
    let made = stage.pod("default", &pod).await;
    made.accepted()["metadata"]["uid"].as_str().expect("a UID").to_owned()
}

/// As that system writes it.
pub(super) fn endpoint(pod: &str, uid: &str, node: &str, ip: &str) -> Value {
    let mut endpoint = ours("SpiderEndpoint", pod);
    endpoint["metadata"]["finalizers"] = json!([FINALIZER]);
    endpoint["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid}]);
    let entry =
        json!({"interface": "net1", "ipv4": format!("{ip}/16"), "ipv4Pool": "p", "vlan": 0, "cleanGateway": false});
    endpoint["status"] = json!({
        "current": {"uid": uid, "node": node, "ips": [entry]}, "ownerControllerType": "Pod", "ownerControllerName": pod,
    });
    endpoint
}

/// Pods with addresses of pool `p`, of which every tenth has lost its endpoint.
pub(super) async fn installed(stage: &Stage, count: usize) -> Records {
    let each = (0..count).map(|n| async move {
        let (name, node, ip) = (format!("pod-{n}"), format!("n{}", n % 2), ip(n));
        let uid = pod(stage, &name, &node).await;
        if n % 10 != 7 {
            stage.create(ENDPOINTS, &endpoint(&name, &uid, &node, &ip)).await.accepted();
        }
        (ip, (name, uid))
    });
    let records: Records = stream::iter(each).buffer_unordered(AT_ONCE).collect().await;
    pool(stage, "p", 0, &text(&records)).await;
    records
}

pub(super) fn conf(stage: &Stage, more: &str) -> String {
    let place = stage.server.url().trim_start_matches("https://");
    format!("{}adoption: {{apiServers: ['{place}']{more}}}\n", Stage::conf())
}

/// The condition `Adopted`: status, reason, message.
pub(super) async fn adopted(stage: &Stage, pool: &str) -> [String; 3] {
    let pool = get(stage, &format!("{POOLS}/{pool}")).await;
    let conditions = pool["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let own = conditions.iter().find(|one| one["type"] == "Adopted").cloned().unwrap_or_default();
    ["status", "reason", "message"].map(|field| own[field].as_str().unwrap_or_default().to_owned())
}

pub(super) async fn until(stage: &Stage, controller: &Controller, pool: &str, status: &str, reason: &str) -> String {
    wait::until(format!("Adopted={status} of {pool}, {reason}"), SOON, async || {
        let [is, why, message] = adopted(stage, pool).await;
        ensure!(is == status && why == reason, "{is} {why} {message}\n{}", controller.logged());
        Ok(message)
    })
    .await
}

/// What is held, as records; and the objects.
pub(super) async fn held(stage: &Stage) -> (Records, Vec<Value>) {
    let items = get(stage, ALLOCATIONS).await["items"].as_array().cloned().unwrap_or_default();
    let text = |one: &Value, at: &str| one.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
    let one = |one: &Value| (text(one, "/spec/address"), (text(one, "/spec/pod/name"), text(one, "/spec/pod/uid")));
    (items.iter().map(one).collect(), items)
}

/// How many there are, at the cost of one.
pub(super) async fn count(stage: &Stage) -> usize {
    let page = get(stage, &format!("{ALLOCATIONS}?limit=1")).await;
    let more = page["metadata"]["remainingItemCount"].as_u64().unwrap_or_default();
    page["items"].as_array().map_or(0, Vec::len) + usize::try_from(more).expect("few")
}

pub(super) async fn finalizers(stage: &Stage) -> usize {
    let items = get(stage, &format!("{GROUP}/spiderendpoints")).await["items"].as_array().cloned().unwrap_or_default();
    items.iter().filter(|one| one["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty())).count()
}

/// The earlier system, which goes on as long as it can: a record more, and an endpoint, under the controller's own name.
pub(super) struct Earlier {
    pub(super) stop: Arc<AtomicBool>,
    pub(super) refused: Arc<AtomicUsize>,
    pub(super) running: tokio::task::JoinHandle<Vec<String>>,
}

impl Earlier {
    pub(super) async fn start(stage: &Stage) -> Self {
        let client = stage.server.client(CONTROLLER).await;
        let (stop, refused) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (stopped, count) = (stop.clone(), refused.clone());
        #[allow(clippy::disallowed_methods, reason = "it ends with the test")]
        let running = tokio::spawn(async move {
            let mut written = Vec::new();
            for n in 0.. {
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                let path = format!("{POOLS}/p");
                let found = send(&client, "GET", &path, JSON, Vec::new()).await.expect("answers").body;
                let before = found["status"]["allocatedIPs"].as_str().unwrap_or("{}");
                let mut records: BTreeMap<String, Value> = serde_json::from_str(before).expect("JSON");
                let (ip, name) = (format!("10.0.9.{}", n % 250 + 1), format!("late-{n}"));
                if records.contains_key(&ip) {
                    continue;
                }
                records.insert(ip.clone(), json!({"pod": format!("default/{name}"), "podUid": name}));
                let change = json!({"metadata": {"resourceVersion": found["metadata"]["resourceVersion"]}, "status": {"allocatedIPs": json!(records).to_string()}});
                let answer = patch(&client, &format!("{path}/status"), &change).await;
                if answer.status < 300 {
                    written.push(ip);
                } else if answer.status != 409 {
                    assert!(answer.refused().contains("stands still"), "{answer:?}");
                    let made = endpoint(&name, &name, "n0", &ip).to_string().into_bytes();
                    let made = send(&client, "POST", ENDPOINTS, JSON, made).await.expect("answers");
                    assert!(made.refused().contains("say what they replace"), "{made:?}");
                    let change = json!({"status": {"current": {"node": "elsewhere"}}});
                    let changed = patch(&client, &format!("{ENDPOINTS}/pod-0"), &change).await;
                    assert!(changed.refused().contains("say what they replace"), "{changed:?}");
                    let gone = send(&client, "DELETE", &format!("{ENDPOINTS}/pod-0"), JSON, Vec::new()).await;
                    assert!(gone.expect("answers").refused().contains("at the version that was looked at"));
                    count.fetch_add(1, Ordering::Relaxed);
                }
                tokio::task::yield_now().await;
            }
            written
        });
        Self { stop, refused, running }
    }
}
