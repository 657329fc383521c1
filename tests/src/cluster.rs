//! A whole cluster, from `dev/cluster`, with the chart installed. Tests of it run under `dev/cluster exec`.

use crate::process::{attempt, run};
use crate::wait;
use anyhow::{Context, ensure};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use proto::podresources::AllocatableResourcesRequest;
use proto::podresources::pod_resources_lister_client::PodResourcesListerClient;
use serde_json::{Value, json};
use std::process::{Command, Output};
use std::time::Duration;
use tokio::net::UnixStream;
use tonic::transport::Endpoint;
use tower::service_fn;

/// The chart is installed and this talks to its cluster.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
}

/// Resource of the quick start that counts sub-interfaces.
pub const SUB_ENI: &str = "spidernet.io/sub-eni";
/// Resource of the quick start that says a NIC is there.
pub const ETH1_NIC: &str = "spidernet.io/eth1-nic";

/// The node that carries the label of the quick start. The last node never does.
pub const MATCHING: &str = "node1";
/// A node to change labels and NICs on.
pub const CHANGING: &str = "node2";
/// A node that no sub-interface rule ever matches.
pub const OTHER: &str = "node3";

/// For what takes a kubelet, a scheduler and a container runtime on a busy machine.
pub const SOON: Duration = Duration::from_mins(3);

impl Cluster {
    /// The client of the administrator.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Installs or upgrades the release with the values of the contract's quick start and labels [`MATCHING`].
    pub async fn installed() -> Self {
        runtime::install_crypto();
        assert!(std::env::var_os("SPIDERPOOL_CLUSTER_DIR").is_some(), "run this under `dev/cluster exec -- …`");
        let cluster = Self { client: Client::try_default().await.expect("exec sets KUBECONFIG") };
        cluster.label(MATCHING, "key", Some("value")).await;
        helm_install(&[]);
        // The Node object is behind the kubelet: it shows 256 for a while when an agent has just been replaced.
        cluster.until_kubelet_offers(MATCHING, SUB_ENI, 256).await;
        cluster
    }

    fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    /// Pods of the namespace that tests use.
    pub fn pods(&self) -> Api<Pod> {
        Api::default_namespaced(self.client.clone())
    }

    /// Pods of the agent on `node`.
    pub async fn agents_on(&self, node: &str) -> Vec<Pod> {
        let agents = Api::<Pod>::namespaced(self.client.clone(), "kube-system");
        let ours = ListParams::default()
            .labels("app.kubernetes.io/component=spiderpool-agent")
            .fields(&format!("spec.nodeName={node}"));
        agents.list(&ours).await.expect("pods can be listed").items
    }

    /// Sets or removes a label of a node.
    pub async fn label(&self, node: &str, key: &str, value: Option<&str>) {
        let patch = Patch::Merge(json!({"metadata": {"labels": {key: value}}}));
        self.nodes().patch(node, &PatchParams::default(), &patch).await.expect("labels can be changed");
    }

    /// What the Node object says is allocatable; none where the resource does not show.
    pub async fn allocatable(&self, node: &str, resource: &str) -> Option<String> {
        allocatable_of(self.nodes().get(node).await.expect("nodes can be read"), resource)
    }

    /// Waits until the Node object says so. 10 000 is written as 10k.
    pub async fn until_allocatable(&self, node: &str, resource: &str, wanted: Option<&str>) {
        wait::until(format!("{resource} = {wanted:?} on {node}"), SOON, async || {
            let found = allocatable_of(self.nodes().get(node).await?, resource);
            ensure!(found.as_deref() == wanted, "it is {found:?}");
            Ok(())
        })
        .await;
    }

    /// Waits until the kubelet of `node` itself counts a registration of each resource. It counts from its start.
    pub async fn until_registered(&self, node: &str, resources: &[&str]) {
        let path = format!("/api/v1/nodes/{node}/proxy/metrics");
        wait::until(format!("registrations of {resources:?} on {node}"), SOON, async || {
            let metrics = self.client.request_text(http::Request::get(&path).body(Vec::new())?).await?;
            for resource in resources {
                let count = format!("kubelet_device_plugin_registration_total{{resource_name=\"{resource}\"}}");
                ensure!(metrics.contains(&count), "none of {resource} yet");
            }
            Ok(())
        })
        .await;
    }

    /// Devices of `resource` that the kubelet of `node` offers at this moment, by its `PodResources` API.
    pub async fn kubelet_allocatable(&self, node: &str, resource: &str) -> anyhow::Result<usize> {
        let state = std::env::var("SPIDERPOOL_CLUSTER_DIR")?;
        let socket = format!("{state}/nodes/{node}/kubelet/pod-resources/kubelet.sock");
        let connect = service_fn(move |_| {
            let socket = socket.clone();
            async move { UnixStream::connect(socket).await.map(TokioIo::new) }
        });
        let channel = Endpoint::from_static("http://localhost").connect_with_connector(connect).await?;
        // All devices of a node make a message of more than the default 4 MiB.
        let mut client = PodResourcesListerClient::new(channel).max_decoding_message_size(64 << 20);
        let answer = client.get_allocatable_resources(AllocatableResourcesRequest {}).await?.into_inner();
        let ours = answer.devices.iter().filter(|devices| devices.resource_name == resource);
        Ok(ours.map(|devices| devices.device_ids.len()).sum())
    }

    /// Waits until the kubelet offers so many devices.
    pub async fn until_kubelet_offers(&self, node: &str, resource: &str, wanted: usize) {
        wait::until(format!("{wanted} of {resource} at the kubelet of {node}"), SOON, async || {
            let found = self.kubelet_allocatable(node, resource).await?;
            ensure!(found == wanted, "it is {found}");
            Ok(())
        })
        .await;
    }

    /// Messages of events on a Node with this reason.
    pub async fn node_events(&self, node: &str, reason: &str) -> Vec<String> {
        let events = Api::<Event>::default_namespaced(self.client.clone());
        let on_node = ListParams::default().fields(&format!("involvedObject.name={node},reason={reason}"));
        let events = events.list(&on_node).await.expect("events can be listed");
        events.items.into_iter().filter_map(|event| event.message).collect()
    }

    /// Waits until the agent's metrics on `node` have this line.
    pub async fn until_agent_says(&self, node: &str, line: &str) {
        let get = "printf 'GET /metrics HTTP/1.0\\r\\n\\r\\n' | busybox nc -w 2 127.0.0.1 5710";
        wait::until(format!("{line} on {node}"), SOON, async || {
            let output = dev_cluster_attempt(&["node-exec", node, "--", "sh", "-c", get]);
            let page = String::from_utf8_lossy(&output.stdout).into_owned();
            ensure!(page.contains(line), "{page}");
            Ok(())
        })
        .await;
    }

    /// Creates a pod that asks for `count` of `resource`, on nodes with the label of the quick start.
    pub async fn create_pod(&self, name: &str, resource: &str, count: u32) {
        let amount = json!({resource: count.to_string()});
        let mut pod = sleeping(name);
        pod["spec"]["nodeSelector"] = json!({"key": "value"});
        pod["spec"]["containers"][0]["resources"] = json!({"requests": amount, "limits": amount});
        self.create(pod).await.expect("pods can be created");
    }

    /// Creates a pod.
    pub async fn create(&self, pod: Value) -> kube::Result<Pod> {
        let pod = serde_json::from_value(pod).expect("a pod");
        self.pods().create(&PostParams::default(), &pod).await
    }

    /// The phase of a pod, `Running` once its container is ready.
    pub async fn phase(&self, name: &str) -> anyhow::Result<String> {
        let pod = self.pods().get(name).await?;
        let status = pod.status.context("no status yet")?;
        let phase = status.phase.context("no phase yet")?;
        let ready = status.container_statuses.unwrap_or_default().iter().all(|container| container.ready);
        Ok(if phase == "Running" && !ready { "Starting".to_owned() } else { phase })
    }

    /// Phases of the pods whose names begin so.
    pub async fn phases(&self, prefix: &str) -> anyhow::Result<Vec<String>> {
        let pods = self.pods().list(&ListParams::default()).await?;
        let ours =
            pods.items.into_iter().filter(|pod| pod.metadata.name.as_ref().is_some_and(|n| n.starts_with(prefix)));
        Ok(ours.filter_map(|pod| pod.status?.phase).collect())
    }

    /// Waits until a pod is in this phase.
    pub async fn until_phase(&self, name: &str, wanted: &str) {
        wait::until(format!("pod {name} {wanted}"), SOON, async || {
            let phase = self.phase(name).await?;
            ensure!(phase == wanted, "it is {phase}");
            Ok(())
        })
        .await;
    }

    /// Waits until the scheduler has said `reason` of a pod.
    pub async fn until_unschedulable(&self, name: &str, reason: &str) {
        let events = Api::<Event>::default_namespaced(self.client.clone());
        let of_pod = ListParams::default().fields(&format!("involvedObject.name={name},reason=FailedScheduling"));
        wait::until(format!("{reason:?} on pod {name}"), SOON, async || {
            let messages: Vec<_> = events.list(&of_pod).await?.items.into_iter().filter_map(|e| e.message).collect();
            ensure!(messages.iter().any(|message| message.contains(reason)), "events: {messages:?}");
            Ok(())
        })
        .await;
    }

    /// Deletes pods and waits until they are gone.
    pub async fn delete_pods(&self, names: &[&str]) {
        for name in names {
            let _ = self.pods().delete(name, &DeleteParams::default()).await;
        }
        for name in names {
            wait::until(format!("the end of pod {name}"), SOON, async || {
                ensure!(self.pods().get_opt(name).await?.is_none(), "it is still there");
                Ok(())
            })
            .await;
        }
    }
}

fn allocatable_of(node: Node, resource: &str) -> Option<String> {
    node.status?.allocatable?.get(resource).map(|quantity| quantity.0.clone())
}

/// A pod that sleeps.
pub fn sleeping(name: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": false,
            "containers": [{
                "name": "sleep", "image": "localhost/spiderpool/busybox:1", "imagePullPolicy": "Never",
                "command": ["sleep", "100000"],
            }],
        },
    })
}

/// A sleeping pod that names networks.
pub fn networked(name: &str, networks: &str) -> Value {
    let mut pod = sleeping(name);
    pod["metadata"]["annotations"] = json!({"k8s.v1.cni.cncf.io/networks": networks});
    pod
}

/// Installs the chart of the checkout with the quick start's values and waits for it.
pub fn helm_install(more: &[&str]) {
    run("helm", helm_arguments().iter().chain(more));
    // Helm is content when all agents but maxUnavailable are ready.
    run("kubectl", ["rollout", "status", "daemonset/spiderpool-agent", "--namespace=kube-system", "--timeout=5m"]);
}

/// What Helm is told for that.
pub fn helm_arguments() -> [&'static str; 12] {
    [
        "upgrade",
        "--install",
        "spiderpool",
        "charts/spiderpool",
        "--namespace=kube-system",
        "--wait",
        "--timeout=5m",
        "--values=docs/examples/quick-start.yaml",
        "--set=spiderpoolAgent.image.registry=localhost",
        "--set-string=spiderpoolAgent.podAnnotations.tests=yes",
        "--set=spiderpoolController.image.registry=localhost",
        // The quick start's rule, and NICs that tests add and remove.
        "--set=spiderpoolAgent.networkResourcePlugin.resourceAdvertisement.masterNIC.rules[1].includeInterfaces={ext*}",
    ]
}

/// Runs `dev/cluster` on the cluster that the test runs in.
pub fn dev_cluster(arguments: &[&str]) -> String {
    run("dev/cluster", arguments)
}

fn dev_cluster_attempt(arguments: &[&str]) -> Output {
    attempt(Command::new("dev/cluster").args(arguments))
}

/// Runs a shell line in a node's namespaces.
pub fn in_node(node: &str, line: &str) -> String {
    dev_cluster(&["node-exec", node, "--", "sh", "-c", line])
}
