//! Bindings of the cloud that no live pod holds, and the devices that they take.

use super::{SOON, create_node, grant_what_the_chart_grants};
use anyhow::ensure;
use kube::Client;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tests::agent::{Agent, conf};
use tests::answer::send;
use tests::api_server::{ADMIN, AGENT, ApiServer};
use tests::chart::create;
use tests::kubelet::FakeKubelet;
use tests::pod_resources::{FakePodResources, Says};
use tests::wait;

const ALLOCATIONS: &str = "/apis/spiderpool.spidernet.io/v2beta1/spideripallocations";
const PODS: &str = "/api/v1/namespaces/default/pods";
/// That of the first rule, whose slots are taken.
const FIRST: &str = "example.com/first";
const SECOND: &str = "example.com/second";
const RULES: &str =
    "[{resourceName: example.com/first, defaultMaxCount: 4}, {resourceName: example.com/second, defaultMaxCount: 3}]";
/// A pod has to be away for so long.
const SETTLE: Duration = Duration::from_secs(2);

struct Stage {
    admin: Client,
    kubelet: FakeKubelet,
    agent: Agent,
}

impl Stage {
    /// The address is bound by a provider that nobody configured here: whoever may release addresses keeps it.
    async fn bind(admin: &Client, address: &str, node: &str, pod: &str, uid: &str) {
        let provider = json!({"server": "http://former.example", "subnet": "s", "bindId": "b"});
        Self::reserve(admin, address, node, (pod, uid), Some(provider)).await;
    }

    async fn reserve(admin: &Client, address: &str, node: &str, (pod, uid): (&str, &str), provider: Option<Value>) {
        let mut allocation = json!({
            "apiVersion": "spiderpool.spidernet.io/v2beta1", "kind": "SpiderIPAllocation", "metadata": {"name": address},
            "spec": {"pool": "p", "address": address, "node": {"name": node}, "state": "Held", "interface": "eth0",
                     "containerId": "sandbox", "pod": {"namespace": "default", "name": pod, "uid": uid}},
        });
        if let Some(provider) = provider {
            allocation["spec"]["provider"] = provider;
        }
        create(admin, ALLOCATIONS, &allocation).await.accepted();
    }

    async fn delete(&self, path: &str) {
        send(&self.admin, "DELETE", path, "application/json", Vec::new()).await.expect("answers").accepted();
    }

    async fn release(&self, address: &str) {
        self.delete(&format!("{ALLOCATIONS}/{address}")).await;
    }

    /// A pod on the node, and its UID.
    async fn pod(&self, name: &str) -> String {
        let pod = json!({
            "metadata": {"name": name}, "spec": {"nodeName": "own", "containers": [{"name": "c", "image": "i"}]},
        });
        let made = create(&self.admin, PODS, &pod).await;
        made.accepted()["metadata"]["uid"].as_str().expect("a UID").to_owned()
    }

    /// Unhealthy devices of the latest list.
    fn unhealthy(&self, resource: &str) -> Vec<String> {
        let list = self.kubelet.lists(resource).pop().expect("a list");
        list.devices.into_iter().filter(|(_, health)| health == "Unhealthy").map(|(id, _)| id).collect()
    }

    async fn until_unhealthy(&self, wanted: &[&str]) -> Duration {
        let started = Instant::now();
        wait::until(format!("{wanted:?} to be unhealthy"), SOON, async || {
            let found = self.unhealthy(FIRST);
            ensure!(found == wanted, "{found:?}");
            Ok(())
        })
        .await;
        started.elapsed()
    }

    /// How many were healthy in each list so far.
    fn history(&self) -> Vec<usize> {
        let healthy =
            |list: tests::kubelet::List| list.devices.iter().filter(|(_, health)| health == "Healthy").count();
        self.kubelet.lists(FIRST).into_iter().map(healthy).collect()
    }
}

#[tokio::test]
async fn devices_are_as_many_as_the_cloud_has_slots_left() {
    let server = ApiServer::start().await;
    grant_what_the_chart_grants(&server).await;
    create_node(&server, "own", "no").await;
    let admin = server.client(ADMIN).await;
    Stage::bind(&admin, "10.0.0.1", "own", "before", "before-uid").await;
    let folder = tempfile::tempdir().expect("a folder");
    let kubelet = FakeKubelet::started(&folder.path().join("device-plugins"));
    let pods = FakePodResources::started(folder.path(), Says::Held(vec![]));
    let kubeconfig = server.kubeconfig(AGENT).display().to_string();
    let agent = Agent::start(folder.path(), "own", &conf(folder.path(), RULES), &[("KUBECONFIG", &kubeconfig)]);
    let stage = Stage { admin, kubelet, agent };
    stage.kubelet.until_allocatable(FIRST, 3, SOON).await;
    stage.until_unhealthy(&["sub-eni-3"]).await;
    stage.kubelet.until_allocatable(SECOND, 3, SOON).await;
    let (status, page) = stage.agent.page("/registrations").await.expect("answers");
    let page: Value = serde_json::from_str(&page).expect("JSON");
    assert_eq!((status, &page[FIRST]["advertised"], &page[FIRST]["withheld"]), (200, &4.into(), &1.into()), "{page}");
    let metrics = stage.agent.page("/metrics").await.expect("answers").1;
    assert!(metrics.lines().any(|line| line == "spiderpool_agent_bindings_without_pod 1"), "{metrics}");

    // None of these takes a slot that no pod's request stands for. What comes last counts last.
    let uid = stage.pod("lives").await;
    Stage::bind(&stage.admin, "10.0.0.2", "own", "lives", &uid).await;
    Stage::reserve(&stage.admin, "10.0.0.3", "own", ("gone", "unbound-uid"), None).await;
    Stage::bind(&stage.admin, "10.0.0.4", "other", "gone", "other-uid").await;
    Stage::bind(&stage.admin, "10.0.0.5", "own", "gone", "gone-uid").await;
    stage.until_unhealthy(&["sub-eni-2", "sub-eni-3"]).await;
    let history = stage.history();
    assert!([4, 3, 2].ends_with(&history), "nothing moved to and fro: {history:?}");

    // The kubelet has taken one before it read the list.
    pods.says(Says::Held(vec![(FIRST, vec!["sub-eni-3"])]));
    stage.kubelet.allocate(FIRST, &[&["sub-eni-3"]]).await.expect("every id of our form is accepted");
    stage.until_unhealthy(&["sub-eni-1", "sub-eni-2"]).await;

    // A pod that is being deleted has its devices until it is gone.
    stage.delete(&format!("{PODS}/lives")).await;
    Stage::bind(&stage.admin, "10.0.0.6", "own", "gone", "another-uid").await;
    stage.until_unhealthy(&["sub-eni-0", "sub-eni-1", "sub-eni-2"]).await;
    stage.release("10.0.0.6").await;
    stage.release("10.0.0.5").await;
    stage.until_unhealthy(&["sub-eni-2"]).await;
    stage.delete(&format!("{PODS}/lives?gracePeriodSeconds=0")).await;
    let took = stage.until_unhealthy(&["sub-eni-1", "sub-eni-2"]).await;
    println!("pod gone -> its binding's device unhealthy: {took:?}");
    assert!(took > SETTLE / 2, "{took:?}: the usual release would move devices to and fro");

    // What else runs on the machine delays some of these, a fault delays all.
    let (mut up, mut down) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        stage.release("10.0.0.2").await;
        up.push(stage.until_unhealthy(&["sub-eni-2"]).await);
        Stage::bind(&stage.admin, "10.0.0.2", "own", "lives", &uid).await;
        down.push(stage.until_unhealthy(&["sub-eni-1", "sub-eni-2"]).await);
    }
    println!("binding released -> device healthy: {up:?}; bound without a pod -> unhealthy: {down:?}");
    assert!(up.iter().any(|took| *took < Duration::from_millis(300)), "{up:?}");
    assert!(down.iter().any(|took| *took < SETTLE + Duration::from_secs(1)), "{down:?}");
    for resource in [FIRST, SECOND] {
        assert_eq!((stage.kubelet.registrations(resource), stage.kubelet.streams(resource)), (1, 1), "all in place");
    }
    assert_eq!(stage.kubelet.lists(SECOND).len(), 1, "the other resource is not disturbed");
    assert_eq!(stage.unhealthy(SECOND), Vec::<String>::new());

    // Pods hold all devices, then one of these alone. Who is asked every 30 s is asked at once when a binding is left behind.
    pods.says(Says::Held(vec![(FIRST, vec!["sub-eni-0", "sub-eni-1", "sub-eni-2", "sub-eni-3"])]));
    stage.kubelet.allocate(SECOND, &[&["sub-eni-0"]]).await.expect("ours");
    stage.until_unhealthy(&[]).await;
    pods.says(Says::Held(vec![(FIRST, vec!["sub-eni-3"])]));
    Stage::bind(&stage.admin, "10.0.0.7", "own", "gone", "last-uid").await;
    let took = stage.until_unhealthy(&["sub-eni-0", "sub-eni-1", "sub-eni-2"]).await;
    println!("pods gone, a binding left -> devices unhealthy: {took:?}");
    assert!(took < Duration::from_secs(10), "{took:?}");
    for list in stage.kubelet.lists(FIRST) {
        assert_eq!(list.devices.len(), 4, "none is left out: {list:?}");
    }
}
