//! What a change of configuration does, and what it must not.

use super::{A, B, Node, SOON, TWO, for_a_while, until};
use anyhow::ensure;
use std::fs;
use std::time::Duration;
use tests::agent::{Agent, conf, conf_file};
use tests::kubelet::FakeKubelet;

/// DP-15: a renamed resource leaves nothing under its old name.
#[tokio::test]
async fn a_renamed_resource_leaves_nothing_behind() {
    let node = Node::new();
    let kubelet = FakeKubelet::started(&node.folder());
    let _agent = node.registered(&kubelet).await;
    let (old, registrations) = (kubelet.endpoint(A), (kubelet.registrations(A), kubelet.registrations(B)));
    Agent::reconfigure(node.path(), &conf(node.path(), &TWO.replace("example.com/a", "example.com/c")));
    kubelet.until_allocatable("example.com/c", 4, SOON).await;
    until("the end of the old name", async || {
        ensure!(kubelet.open_streams(A) == 0 && !old.exists());
        Ok(())
    })
    .await;
    let last = kubelet.lists(A).pop().expect("lists");
    assert!(last.devices.is_empty(), "its last list is empty: {last:?}");
    assert_eq!((kubelet.registrations(A), kubelet.registrations(B)), registrations, "nobody else registers again");
}

/// A device that was just handed out stays in the list when the count goes down.
#[tokio::test]
async fn a_device_in_use_is_never_withdrawn() {
    let node = Node::new();
    let kubelet = FakeKubelet::started(&node.folder());
    let _agent = node.registered(&kubelet).await;
    kubelet.allocate(A, &[&["sub-eni-3"]]).await.expect("ours");
    Agent::reconfigure(node.path(), &conf(node.path(), &TWO.replace("defaultMaxCount: 4", "defaultMaxCount: 2")));
    kubelet.until_allocatable(A, 2, SOON).await;
    for list in kubelet.lists(A) {
        assert!(list.devices.iter().any(|(id, _)| id == "sub-eni-3"), "{list:?}");
    }
}

/// Design 6: a bad change keeps the old configuration and is loud; a repair is taken.
#[tokio::test]
async fn a_bad_change_keeps_the_old_configuration() {
    let node = Node::new();
    let kubelet = FakeKubelet::started(&node.folder());
    let agent = node.registered(&kubelet).await;
    let good = conf(node.path(), &TWO.replace('4', "5"));
    for (bad, word) in [
        (good.replace("enabled", "enabld"), "did you mean enabled?"),
        ("{".to_owned(), "not valid YAML"),
        (good.replace("serverUrl", "url"), "iaasNetworkProvider.url is not a known key"),
        (String::new(), "the file is empty"),
    ] {
        Agent::reconfigure(node.path(), &bad);
        until("a word on the fault", async || {
            ensure!(agent.logged().contains(word), "{}", agent.logged());
            Ok(())
        })
        .await;
        until_valid(&agent, 0).await;
        assert_eq!(kubelet.allocatable(A), Some(4));
    }
    fs::remove_file(conf_file(node.path())).expect("removed");
    for_a_while(Duration::from_millis(300), || assert_eq!(kubelet.allocatable(A), Some(4))).await;
    Agent::reconfigure(node.path(), &good);
    kubelet.until_allocatable(A, 5, SOON).await;
    assert_eq!((kubelet.registrations(A), kubelet.streams(A)), (1, 1), "the count changed in place");
    // The list goes out before it is said.
    until_valid(&agent, 1).await;
}

async fn until_valid(agent: &Agent, valid: u8) {
    let line = format!("spiderpool_agent_configuration_valid {valid}");
    until(&line, async || {
        let (_, metrics) = agent.page("/metrics").await?;
        ensure!(metrics.contains(&line), "{metrics}");
        Ok(())
    })
    .await;
}

/// Hardware is what has a `device` in sysfs; a rule without include takes that and nothing else.
#[tokio::test]
async fn the_physical_rule_reads_sysfs() {
    let node = Node::new();
    let kubelet = FakeKubelet::started(&node.folder());
    let sysfs = node.path().join("sys");
    fs::create_dir_all(sysfs.join("class/net/hw0/device")).expect("a fixture");
    let away = node.path().join("away.kubeconfig");
    fs::write(&away, tests::agent::unreachable_api_server()).expect("writable");
    let conf = conf(node.path(), "[]").replace("subENI: {rules: []}", "masterNIC: {rules: [{defaultMaxCount: 3}]}");
    // A network namespace of its own, with one link that the fixture calls hardware and one that it does not.
    let links = "ip link add hw0 type veth peer name sw0 && exec \"$@\"";
    let binary = tests::agent::binary().display().to_string();
    let sysfs = format!("--sysfs-root={}", sysfs.display());
    let script = format!("{links} {sysfs}");
    let under = ["unshare", "--net", "--", "sh", "-c", &script, "sh", &binary];
    let env = [("KUBECONFIG", away.to_str().expect("UTF-8"))];
    let _agent = Agent::start_under(&under, node.path(), "own", &conf, &env);
    kubelet.until_allocatable("spidernet.io/hw0-nic", 3, SOON).await;
    assert_eq!(kubelet.registrations("spidernet.io/sw0-nic"), 0);
}
