//! The agent against a real API server, without a kubelet.

#[path = "api_server/bindings.rs"]
mod bindings;

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::{Event, Node};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use std::path::Path;
use std::time::Duration;
use tests::agent::{Agent, conf, conf_file};
use tests::api_server::{ADMIN, AGENT, ApiServer};
use tests::chart;
use tests::kubelet::{Answer, FakeKubelet};
use tests::wait;

const SOON: Duration = Duration::from_mins(1);

const CONF: &str = "
iaasNetworkProvider: {serverUrl: http://provider.example}
agent:
  networkResourcePlugin:
    enabled: true
    resourceAdvertisement:
      subENI: {rules: [{defaultMaxCount: 7, nodeSelector: {cloud: 'yes'}}]}
";

async fn create_node(server: &ApiServer, name: &str, cloud: &str) {
    let node = serde_json::from_value(json!({"metadata": {"name": name, "labels": {"cloud": cloud}}}));
    let nodes = Api::<Node>::all(server.client(ADMIN).await);
    nodes.create(&PostParams::default(), &node.expect("a node")).await.expect("created");
}

/// The kinds and the rights that the chart brings, and no others.
async fn grant_what_the_chart_grants(server: &ApiServer) {
    let admin = server.client(ADMIN).await;
    chart::kinds(&admin).await;
    chart::install_for(&admin, "agent/rbac.yaml", Some(AGENT)).await;
}

/// [`CONF`] with a socket of its own.
fn conf_in(folder: &Path) -> String {
    format!("ipamUnixSocketPath: {}\n{CONF}", folder.join("ipam.sock").display())
}

#[tokio::test]
async fn the_agent_watches_what_is_of_its_node_and_pools() {
    let server = ApiServer::start().await;
    grant_what_the_chart_grants(&server).await;
    create_node(&server, "other", "yes").await;
    let folder = tempfile::tempdir().expect("a folder");
    let kubeconfig = server.kubeconfig(AGENT).display().to_string();
    let mut agent = Agent::start(folder.path(), "own", &conf_in(folder.path()), &[("KUBECONFIG", &kubeconfig)]);

    wait::until("an agent that is alive and waits for its Node", SOON, async || {
        ensure!(agent.page("/live").await?.0 == 200 && agent.page("/ready").await?.0 != 200, "not yet");
        ensure!(agent.logged().contains("no such Node yet"), "{}", agent.logged());
        Ok(())
    })
    .await;
    create_node(&server, "own", "no").await;
    wait::until("ready", SOON, async || {
        ensure!(agent.page("/ready").await?.0 == 200, "{}", agent.logged());
        Ok(())
    })
    .await;
    let devices = async || {
        Ok::<_, anyhow::Error>(agent.page("/metrics").await?.1.contains("devices{resource=\"spidernet.io/sub-eni\"} 7"))
    };
    assert!(!devices().await.expect("metrics"), "the rule does not match, and other Nodes do not count");

    let nodes = Api::<Node>::all(server.client(ADMIN).await);
    let matching = Patch::Merge(json!({"metadata": {"labels": {"cloud": "yes"}}}));
    nodes.patch("own", &PatchParams::default(), &matching).await.expect("labelled");
    wait::until("the rule to match", SOON, async || {
        ensure!(devices().await?, "{}", agent.page("/metrics").await?.1);
        Ok(())
    })
    .await;

    nodes.delete("own", &kube::api::DeleteParams::default()).await.expect("deleted");
    wait::until("a word about the deleted Node", SOON, async || {
        ensure!(
            agent.logged().contains("the own Node was deleted; its last labels stay in force"),
            "{}",
            agent.logged()
        );
        Ok(())
    })
    .await;
    assert!(devices().await.expect("metrics"), "nothing is withdrawn because a Node object is gone");

    let mut requests = server.requests_of(AGENT);
    // After a minute without a kubelet there is an event of that.
    requests.retain(|request| !request.uri.starts_with("/apis/events.k8s.io/"));
    let addresses = "/apis/spiderpool.spidernet.io/v2beta1";
    let watched = [
        ("/api/v1/nodes?", "fieldSelector=metadata.name%3Down"),
        ("/api/v1/pods?", "fieldSelector=spec.nodeName%3Down"),
        (&format!("{addresses}/spideripallocations?"), "fieldSelector=spec.node.name%3Down"),
        (&format!("{addresses}/spiderippools?"), ""),
        (&format!("{addresses}/spiderreservedips?"), ""),
    ];
    for request in &requests {
        let own = |(path, narrowed): &(&str, &str)| request.uri.starts_with(path) && request.uri.contains(narrowed);
        assert!(watched.iter().any(own) && ["list", "watch"].contains(&request.verb.as_str()), "{request:?}");
    }
    for of in &watched {
        let (path, _) = of;
        let asked = requests.iter().filter(|request| request.uri.starts_with(path)).count();
        assert!((2..=10).contains(&asked), "watched, and no more: {path} {requests:#?}");
    }

    agent.process.signal("TERM");
    let code = wait::until("the end of the agent", SOON, async || agent.process.ended().ok_or("it runs")).await;
    assert_eq!(code, 0, "{}", agent.logged());
}

/// A kubelet that cannot talk to us gets an event on its Node, once, that says what to do.
#[tokio::test]
async fn a_kubelet_that_is_too_old_gets_an_event() {
    let server = ApiServer::start().await;
    grant_what_the_chart_grants(&server).await;
    create_node(&server, "own", "no").await;
    let nodes = Api::<Node>::all(server.client(ADMIN).await);
    let info = json!({"kubeletVersion": "v1.25.3", "architecture": "", "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "", "kubeProxyVersion": "", "machineID": "", "operatingSystem": "", "osImage": "", "systemUUID": ""});
    let old = Patch::Merge(json!({"status": {"nodeInfo": info}}));
    nodes.patch_status("own", &PatchParams::default(), &old).await.expect("patched");
    let folder = tempfile::tempdir().expect("a folder");
    let kubeconfig = server.kubeconfig(AGENT).display().to_string();
    let agent = Agent::start(folder.path(), "own", &conf_in(folder.path()), &[("KUBECONFIG", &kubeconfig)]);
    let events = Api::<Event>::namespaced(server.client(ADMIN).await, "default");
    let ours = ListParams::default().fields("involvedObject.name=own,reason=KubeletTooOld");
    let event = wait::until("an event on the Node", SOON, async || {
        let found = events.list(&ours).await?.items.pop();
        found.with_context(|| format!("none yet; the agent says {}", agent.logged()))
    })
    .await;
    let message = event.message.unwrap_or_default();
    assert!(message.contains("v1.25.3") && message.contains("Upgrade the kubelet"), "{message}");
    assert_eq!(event.involved_object.uid.as_deref(), Some("own"), "as `kubectl describe node` looks for it");
}

/// Each resource that a kubelet does not take has an event with its own text, and one when it is back.
#[tokio::test]
async fn each_refused_resource_gets_an_event_and_another_when_it_is_back() {
    const TOLD: [(&str, &str); 2] = [("example.com/a", "no room for a"), ("example.com/b", "no room for b")];
    let server = ApiServer::start().await;
    grant_what_the_chart_grants(&server).await;
    create_node(&server, "own", "no").await;
    let folder = tempfile::tempdir().expect("a folder");
    let kubelet = FakeKubelet::started(&folder.path().join("device-plugins"));
    for (resource, reason) in TOLD {
        kubelet.answer(resource, Answer::Refuse(reason));
    }
    let rules =
        "[{resourceName: example.com/a, defaultMaxCount: 4}, {resourceName: example.com/b, defaultMaxCount: 3}]";
    let kubeconfig = server.kubeconfig(AGENT).display().to_string();
    let agent = Agent::start(folder.path(), "own", &conf(folder.path(), rules), &[("KUBECONFIG", &kubeconfig)]);
    let events = Api::<Event>::namespaced(server.client(ADMIN).await, "default");
    let told = async |reason: &str| {
        let ours = ListParams::default().fields(&format!("involvedObject.name=own,reason={reason}"));
        let mut notes: Vec<String> = events.list(&ours).await?.items.into_iter().filter_map(|e| e.message).collect();
        notes.sort();
        Ok::<_, anyhow::Error>(notes)
    };
    // A failure is told of after 10 s, by the try after that.
    wait::until("an event of each failure", SOON, async || {
        let notes = told("NetworkResourceNotRegistered").await?;
        ensure!(notes.len() == 2, "{notes:#?}");
        for ((resource, reason), note) in TOLD.iter().zip(&notes) {
            ensure!(note.starts_with(resource) && note.contains(reason), "{note}");
        }
        Ok(())
    })
    .await;
    assert_eq!(told("NetworkResourceRegistered").await.expect("a list"), Vec::<String>::new());
    for (resource, _) in TOLD {
        kubelet.answer(resource, Answer::Accept);
    }
    // And so is the end of it, once it has held for as long.
    wait::until("an event of each that is back", SOON, async || {
        let notes = told("NetworkResourceRegistered").await?;
        ensure!(notes.len() == 2, "{notes:#?}\n{}", agent.logged());
        ensure!(TOLD.iter().zip(&notes).all(|((resource, _), note)| note.starts_with(resource)), "{notes:#?}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn an_api_server_that_is_away_stops_neither_start_nor_nics() {
    let folder = tempfile::tempdir().expect("a folder");
    let away = folder.path().join("away.kubeconfig");
    std::fs::write(&away, tests::agent::unreachable_api_server()).expect("writable");
    let conf = format!(
        "ipamUnixSocketPath: {}\nagent: {{networkResourcePlugin: {{enabled: true, resourceAdvertisement: {{masterNIC: {{rules: [{{includeInterfaces: ['*']}}]}}}}}}}}",
        folder.path().join("ipam.sock").display()
    );
    let agent = Agent::start(folder.path(), "own", &conf, &[("KUBECONFIG", &away.display().to_string())]);
    wait::until("interfaces on offer", SOON, async || {
        ensure!(agent.page("/metrics").await?.1.contains("-nic\"} 10000"), "{}", agent.logged());
        Ok(())
    })
    .await;
    assert_ne!(agent.page("/ready").await.expect("answers").0, 200, "rules with selectors still wait");
    wait::until("several failed tries", SOON, async || {
        // The watcher's pauses double from 0.8 s: by then it has tried at least twice.
        ensure!(agent.logged().contains("not ready yet"), "{}", agent.logged());
        Ok(())
    })
    .await;
    assert_eq!(agent.logged().matches("cannot watch the own Node").count(), 1, "said once:\n{}", agent.logged());
}

#[tokio::test]
async fn a_bad_configuration_ends_the_start_with_every_fault() {
    let folder = tempfile::tempdir().expect("a folder");
    let conf = "agent:\n  networkResourcePlugin:\n    enable: true\n    kubeletRootDir: var\n";
    let mut agent = Agent::start(folder.path(), "own", conf, &[]);
    let code = wait::until("the end of the agent", SOON, async || agent.process.ended().ok_or("it runs")).await;
    assert_eq!(code, 1);
    let file = conf_file(folder.path()).display().to_string();
    for part in [
        file.as_str(),
        "Failed to load Configmap spiderpool-conf",
        "line 3: spiderpoolAgent.networkResourcePlugin.enable is not a known key; did you mean enabled?",
        "line 4: spiderpoolAgent.networkResourcePlugin.kubeletRootDir must be an absolute path",
    ] {
        assert!(agent.logged().contains(part), "{part}\nis not in\n{}", agent.logged());
    }
}
