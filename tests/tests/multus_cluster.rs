//! Multus as the chart installs it, on a real cluster: second interfaces, isolation, the cluster network, upgrades.

use anyhow::ensure;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use std::process::Command;
use tests::cluster::{CHANGING, Cluster, MATCHING, SOON, in_node, networked, sleeping};
use tests::multus::{self, CONF};
use tests::process::{attempt, run};
use tests::wait;

/// Makes an attachment and waits until the controller has made of it what Multus looks for.
async fn attach(cluster: &Cluster, namespace: &str, name: &str, plugin: Value) {
    let objects = |group, version, kind, plural| {
        let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
        Api::<DynamicObject>::namespaced_with(cluster.client(), namespace, &resource)
    };
    let config = json!({"cniVersion": "1.0.0", "name": name, "plugins": [plugin]}).to_string();
    let object = json!({
        "apiVersion": "spiderpool.spidernet.io/v2beta1", "kind": "SpiderMultusConfig", "metadata": {"name": name},
        "spec": {"cniType": "custom", "customCNI": config},
    });
    let configs = objects("spiderpool.spidernet.io", "v2beta1", "SpiderMultusConfig", "spidermultusconfigs");
    let apply = PatchParams::apply("tests").force();
    configs.patch(name, &apply, &Patch::Apply(object)).await.expect("an attachment is created");
    let definitions = objects("k8s.cni.cncf.io", "v1", "NetworkAttachmentDefinition", "network-attachment-definitions");
    wait::until(format!("the definition of {namespace}/{name}"), SOON, async || definitions.get(name).await).await;
}

fn namespace(name: &str) {
    let _ = attempt(Command::new("kubectl").args(["create", "namespace", name]));
}

/// A macvlan on the fabric, whose addresses are those of one node: host-local knows nothing of other nodes.
fn macvlan(first: u8) -> Value {
    let range = json!({
        "subnet": "192.168.77.0/24",
        "rangeStart": format!("192.168.77.{first}"), "rangeEnd": format!("192.168.77.{}", first + 9),
    });
    json!({
        "type": "macvlan", "master": "eth1", "mode": "bridge",
        "ipam": {"type": "host-local", "ranges": [[range]]},
    })
}

fn on(node: &str, mut pod: Value) -> Value {
    pod["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": node});
    pod
}

fn of_pod(pod: &Pod, annotation: &str) -> Option<Value> {
    serde_json::from_str(pod.metadata.annotations.as_ref()?.get(annotation)?).ok()
}

/// Interfaces of a pod as Multus reports them.
async fn interfaces(cluster: &Cluster, pod: &str) -> Vec<(String, String)> {
    let pod = cluster.pods().get(pod).await.expect("there");
    let status = of_pod(&pod, "k8s.v1.cni.cncf.io/network-status").expect("Multus reports the pod's networks");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let interfaces = status.as_array().expect("a list").iter();
    interfaces.map(|one| (text(&one["interface"]), text(&one["ips"][0]))).collect()
}

/// Waits until an event on the pod says so.
async fn until_told(cluster: &Cluster, pod: &str, reason: &str, word: &str) {
    let events = Api::<Event>::default_namespaced(cluster.client());
    let of_pod = ListParams::default().fields(&format!("involvedObject.name={pod},reason={reason}"));
    wait::until(format!("{reason} with {word:?} on {pod}"), SOON, async || {
        let messages: Vec<_> =
            events.list(&of_pod).await?.items.into_iter().filter_map(|event| event.message).collect();
        ensure!(messages.iter().any(|message| message.contains(word)), "events: {messages:?}");
        Ok(())
    })
    .await;
}

/// Waits until no pod of [`MATCHING`] holds an address of a network. The kubelet takes a pod's network down after its object.
async fn until_given_back(network: &str, prefix: &str) {
    wait::until(format!("no address of {network} in use"), SOON, async || {
        let held = in_node(MATCHING, &format!("ls /var/lib/cni/networks/{network} | grep '^{prefix}' || true"));
        ensure!(held.is_empty(), "{held}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn pods_on_two_nodes_reach_each_other_over_their_second_interfaces() {
    let cluster = Cluster::installed().await;
    multus::install(&[]);
    cluster.delete_pods(&["left", "right"]).await;
    attach(&cluster, "default", "fabric-left", macvlan(10)).await;
    attach(&cluster, "default", "fabric-right", macvlan(20)).await;
    cluster.create(on(MATCHING, networked("left", "fabric-left"))).await.expect("created");
    cluster.create(on(CHANGING, networked("right", "fabric-right"))).await.expect("created");
    let mut addresses = Vec::new();
    for pod in ["left", "right"] {
        cluster.until_phase(pod, "Running").await;
        let found = interfaces(&cluster, pod).await;
        assert_eq!(found.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["eth0", "net1"]);
        assert!(found[0].1.starts_with("10.244.") && found[1].1.starts_with("192.168.77."), "{found:?}");
        addresses.push(found[1].1.clone());
    }
    // Nothing but the fabric carries this network.
    for (pod, other) in [("left", &addresses[1]), ("right", &addresses[0])] {
        run("kubectl", ["exec", pod, "--", "ping", "-c", "1", "-W", "5", "-I", "net1", other]);
    }
    let added = format!("Add net1 [{}/24] from default/fabric-left", addresses[0]);
    until_told(&cluster, "left", "AddedInterface", &added).await;
    let described = run("kubectl", ["describe", "pod", "left"]);
    assert!(
        described.contains("AddedInterface") && described.contains("k8s.v1.cni.cncf.io/network-status"),
        "{described}"
    );

    cluster.delete_pods(&["left", "right"]).await;
    until_given_back("fabric-left", "192.168.77.").await;
}

#[tokio::test]
async fn a_pod_gets_only_the_attachments_that_isolation_lets_it_have() {
    let cluster = Cluster::installed().await;
    let isolation = ["--set=multus.multusCNI.namespaceIsolation=true,multus.multusCNI.globalNamespaces={networks}"];
    multus::install(&isolation);
    let conf = in_node(MATCHING, &format!("cat {CONF}"));
    let conf: Value = serde_json::from_str(&conf).expect("JSON");
    let plugin = &conf["plugins"][0];
    assert_eq!((&plugin["namespaceIsolation"], &plugin["globalNamespaces"]), (&true.into(), &"networks".into()));
    let injection = run("kubectl", ["get", "configmap", "spiderpool-conf", "-n", "kube-system", "-o", "yaml"]);
    assert!(injection.contains("globalNamespaces: [\"networks\"]") && injection.contains("namespaceIsolation: true"));

    cluster.delete_pods(&["own", "global", "foreign"]).await;
    for (space, first) in [("default", 30), ("networks", 40), ("elsewhere", 50)] {
        namespace(space);
        attach(&cluster, space, &format!("of-{space}"), macvlan(first)).await;
    }
    for (pod, network) in
        [("own", "of-default"), ("global", "networks/of-networks"), ("foreign", "elsewhere/of-elsewhere")]
    {
        cluster.create(on(MATCHING, networked(pod, network))).await.expect("created");
    }
    until_told(&cluster, "foreign", "FailedCreatePodSandBox", "namespace isolation enabled").await;
    for pod in ["own", "global"] {
        cluster.until_phase(pod, "Running").await;
        assert_eq!(interfaces(&cluster, pod).await.len(), 2);
    }
    assert_eq!(cluster.phase("foreign").await.expect("there"), "Pending");
    // Not isolated any more, it gets what it asked for.
    multus::install(&[]);
    cluster.until_phase("foreign", "Running").await;
    assert_eq!(interfaces(&cluster, "foreign").await.len(), 2);
    cluster.delete_pods(&["own", "global", "foreign"]).await;
}

#[tokio::test]
async fn every_pod_gets_the_cluster_network() {
    let cluster = Cluster::installed().await;
    multus::install(&[]);
    cluster.delete_pods(&["plain", "after"]).await;
    let missing = multus::attempt_install(&["--set=multus.multusCNI.defaultCniCRName=nowhere"]);
    assert!(missing.is_err_and(|error| error.contains("there is no NetworkAttachmentDefinition kube-system/nowhere")));

    let bridge = json!({
        "type": "bridge", "bridge": "cluster0", "isGateway": true,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.99.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]},
    });
    attach(&cluster, "kube-system", "everybody", bridge).await;
    multus::install(&["--set=multus.multusCNI.defaultCniCRName=everybody"]);
    cluster.create(on(MATCHING, sleeping("plain"))).await.expect("created");
    cluster.until_phase("plain", "Running").await;
    let addresses = run("kubectl", ["exec", "plain", "--", "ip", "-4", "addr", "show", "eth0"]);
    assert!(addresses.contains("inet 10.99.0."), "{addresses}");

    multus::install(&[]);
    cluster.create(on(MATCHING, sleeping("after"))).await.expect("created");
    cluster.until_phase("after", "Running").await;
    let addresses = run("kubectl", ["exec", "after", "--", "ip", "-4", "addr", "show", "eth0"]);
    assert!(addresses.contains("inet 10.244."), "{addresses}");
    cluster.delete_pods(&["plain", "after"]).await;
    // A pod of before gives its address back to the network that it is of.
    until_given_back("everybody", "10.99.").await;
}

/// While Multus is replaced, deleted and killed, no pod starts without the network that it names.
#[tokio::test]
async fn no_pod_misses_its_network_while_multus_is_replaced() {
    let cluster = Cluster::installed().await;
    multus::install(&[]);
    attach(&cluster, "default", "fabric-left", macvlan(10)).await;
    let disturbing = tokio::task::spawn_blocking(|| {
        multus::rollout("restart");
        multus::rollout("status");
        let ours = "app.kubernetes.io/component=spiderpool-multus";
        let on_node = format!("--field-selector=spec.nodeName={MATCHING}");
        run("kubectl", ["delete", "pod", "--namespace=kube-system", "-l", ours, &on_node]);
        multus::rollout("status");
        in_node(MATCHING, "kill -9 $(pgrep -f '^/usr/bin/spiderpool-agent multus ')");
        multus::rollout("status");
    });
    let mut started = 0;
    while !disturbing.is_finished() || started < 3 {
        let name = format!("networked-{started}");
        cluster.delete_pods(&[&name]).await;
        cluster.create(on(MATCHING, networked(&name, "fabric-left"))).await.expect("created");
        cluster.until_phase(&name, "Running").await;
        assert_eq!(interfaces(&cluster, &name).await.len(), 2, "pod {started} has both");
        cluster.delete_pods(&[&name]).await;
        started += 1;
    }
    disturbing.await.expect("it succeeds");
    println!("{started} pods started while Multus was replaced, deleted and killed");
    until_given_back("fabric-left", "192.168.77.").await;

    in_node(MATCHING, &format!("rm {CONF}"));
    wait::until("the configuration to be there again", SOON, async || {
        ensure!(!in_node(MATCHING, &format!("ls {CONF} 2>/dev/null || true")).is_empty(), "it is not");
        Ok(())
    })
    .await;
}
