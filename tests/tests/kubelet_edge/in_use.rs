//! Devices that pods hold, as the kubelet lists them or does not.

use super::{A, B, Node, SOON, for_a_while, until};
use anyhow::ensure;
use std::time::Duration;
use tests::agent::{Agent, conf};
use tests::kubelet::FakeKubelet;
use tests::pod_resources::{FakePodResources, Says};

const LOWERED: &str =
    "[{resourceName: example.com/a, defaultMaxCount: 2}, {resourceName: example.com/b, defaultMaxCount: 3}]";

fn ids(kubelet: &FakeKubelet) -> Vec<String> {
    let list = kubelet.lists(A).pop().expect("a list");
    list.devices.into_iter().map(|(id, _)| id).collect()
}

async fn until_known(agent: &Agent, known: u8) {
    let line = format!("spiderpool_agent_in_use_known {known}");
    until(&line, async || {
        let (_, metrics) = agent.page("/metrics").await?;
        ensure!(metrics.lines().any(|found| found == line), "{metrics}");
        Ok(())
    })
    .await;
}

/// What the kubelet listed stays in the list while it does not say, in whatever way, and until it says otherwise.
#[tokio::test]
async fn a_listed_device_stays_until_an_answer_says_otherwise() {
    let node = Node::new();
    let kubelet = FakeKubelet::started(&node.folder());
    let pods = FakePodResources::started(node.path(), Says::Held(vec![(A, vec!["sub-eni-3"])]));
    let agent = node.registered(&kubelet).await;
    until_known(&agent, 1).await;
    // It is told of right after.
    until("the device in use", async || {
        let (_, metrics) = agent.page("/metrics").await?;
        ensure!(metrics.contains("spiderpool_agent_devices_in_use{resource=\"example.com/a\"} 1"), "{metrics}");
        Ok(())
    })
    .await;
    Agent::reconfigure(node.path(), &conf(node.path(), LOWERED));
    kubelet.until_allocatable(A, 2, SOON).await;
    assert_eq!(ids(&kubelet), ["sub-eni-0", "sub-eni-3"]);
    for silence in [Says::Nothing, Says::NoPod, Says::Error] {
        pods.says(silence.clone());
        // Something that is handed out makes the agent ask soon.
        kubelet.allocate(B, &[&["sub-eni-0"]]).await.expect("ours");
        until("some questions without an answer", async || {
            ensure!(pods.asked() >= 2, "{silence:?}: {}", pods.asked());
            Ok(())
        })
        .await;
        until_known(&agent, 0).await;
        assert_eq!(ids(&kubelet), ["sub-eni-0", "sub-eni-3"], "{silence:?}");
    }
    pods.says(Says::Held(vec![]));
    until_known(&agent, 1).await;
    until("the device of the pod that ended to go", async || {
        ensure!(ids(&kubelet) == ["sub-eni-0", "sub-eni-1"], "{:?}", ids(&kubelet));
        Ok(())
    })
    .await;
    assert_eq!((kubelet.registrations(A), kubelet.streams(A)), (1, 1), "all in place");
}

/// An agent that starts anew with a lower count lists what pods hold from its first list on, also when the kubelet does not
/// answer at once.
#[tokio::test]
async fn a_new_agent_lists_what_pods_hold_from_the_first() {
    let node = Node::new();
    let kubelet = FakeKubelet::started(&node.folder());
    let pods = FakePodResources::started(node.path(), Says::HeldAtSecond(vec![(A, vec!["sub-eni-3"])]));
    let _agent = Agent::alone(node.path(), LOWERED);
    kubelet.until_allocatable(A, 2, SOON).await;
    assert!(pods.asked() >= 2, "{}", pods.asked());
    for list in kubelet.lists(A) {
        assert!(list.devices.iter().any(|(id, _)| id == "sub-eni-3"), "{list:?}");
    }
}

/// A device that was handed out, and that the kubelet cannot say anything about, outlasts the time in which it would have.
#[tokio::test]
async fn a_device_that_was_handed_out_stays_while_nobody_says() {
    let node = Node::new();
    let kubelet = FakeKubelet::started(&node.folder());
    let pods = FakePodResources::started(node.path(), Says::Nothing);
    let _agent = node.registered(&kubelet).await;
    kubelet.allocate(A, &[&["sub-eni-3"]]).await.expect("ours");
    Agent::reconfigure(node.path(), &conf(node.path(), LOWERED));
    kubelet.until_allocatable(A, 2, SOON).await;
    // The kubelet would have had to list it within 15 s.
    for_a_while(Duration::from_secs(17), || assert_eq!(ids(&kubelet), ["sub-eni-0", "sub-eni-3"])).await;
    pods.says(Says::Held(vec![]));
    until("an answer to stand in for it", async || {
        ensure!(ids(&kubelet) == ["sub-eni-0", "sub-eni-1"], "{:?}", ids(&kubelet));
        Ok(())
    })
    .await;
}
