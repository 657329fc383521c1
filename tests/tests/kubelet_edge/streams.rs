//! Streams, registrations and answers, good and bad.

use super::{A, B, Node, SOON, TWO, until};
use anyhow::ensure;
use proto::deviceplugin::Empty;
use std::collections::BTreeSet;
use std::time::Duration;
use tests::agent::{Agent, conf};
use tests::kubelet::{Answer, FakeKubelet, dial};

/// The stream breaks and nothing else: socket and kubelet.sock stay.
#[tokio::test]
async fn a_stream_that_is_lost_alone_is_noticed() {
    let node = Node::new();
    let kubelet = FakeKubelet::started(&node.folder());
    let _agent = node.registered(&kubelet).await;
    let (a, b) = (kubelet.registrations(A), kubelet.registrations(B));
    kubelet.cut(A);
    until("another registration", async || {
        ensure!(kubelet.registrations(A) > a);
        Ok(())
    })
    .await;
    kubelet.until_allocatable(A, 4, SOON).await;
    assert_eq!(kubelet.registrations(B), b, "the other is not touched");
}

/// DP-06: an update reaches the new stream at once, and the agent keeps nothing of the old one. A second reader that stays
/// connected to the old server, as a kubelet that froze would, sees its stream end.
#[tokio::test]
async fn an_update_reaches_the_stream_that_is_read() {
    let node = Node::new();
    let mut kubelet = FakeKubelet::started(&node.folder());
    let agent = node.registered(&kubelet).await;
    let connections = agent.process.sockets();
    for round in 0..3 {
        let mut frozen = dial(&kubelet.endpoint(A)).await.expect("dials");
        let mut old = frozen.list_and_watch(Empty {}).await.expect("a stream").into_inner();
        assert!(old.message().await.expect("a list").is_some());
        kubelet.restart().await;
        let ended = async { while let Ok(Some(_)) = old.message().await {} };
        tokio::time::timeout(SOON, ended).await.expect("the agent ends the stream of the old server");
        let wanted = 5 + round;
        kubelet.until_allocatable(B, 3, SOON).await;
        Agent::reconfigure(node.path(), &conf(node.path(), &TWO.replace('4', &wanted.to_string())));
        let took = kubelet.until_allocatable(A, wanted, SOON).await;
        println!("conf.yml changed -> kubelet: {took:?}");
    }
    // Fewer are fine: the first count may hold a connection of the registration that was about to close. One that stayed
    // behind a round would make three more.
    until("no more connections than before", async || {
        ensure!(agent.process.sockets() <= connections, "{} instead of {connections}", agent.process.sockets());
        Ok(())
    })
    .await;
}

/// A kubelet that never answers for one resource, or slowly, holds no other.
#[tokio::test]
async fn a_hanging_registration_holds_no_other() {
    let node = Node::new();
    let kubelet = FakeKubelet::started(&node.folder());
    kubelet.answer(A, Answer::Hang);
    let _agent = Agent::alone(node.path(), TWO);
    kubelet.until_allocatable(B, 3, SOON).await;
    assert_eq!(kubelet.allocatable(A), None);
    kubelet.answer(A, Answer::Slow(Duration::from_secs(3)));
    // The first call is given up after 10 s, as the kubelet would.
    kubelet.until_allocatable(A, 4, SOON).await;
}

/// A kubelet that accepts and never asks for the list is asked again, ever more slowly.
#[tokio::test]
async fn an_accepted_resource_that_is_not_read_is_registered_again() {
    let node = Node::new();
    let kubelet = FakeKubelet::started(&node.folder());
    kubelet.answer(A, Answer::AcceptOnly);
    let agent = Agent::alone(node.path(), TWO);
    kubelet.until_allocatable(B, 3, SOON).await;
    until("a second try", async || {
        ensure!(kubelet.registrations(A) >= 2 && agent.logged().contains("does not read the list"));
        Ok(())
    })
    .await;
    kubelet.answer(A, Answer::Accept);
    kubelet.until_allocatable(A, 4, SOON).await;
}

/// A reader that never reads holds neither another reader nor another resource.
#[tokio::test]
async fn a_reader_that_never_reads_holds_nobody() {
    let node = Node::new();
    let kubelet = FakeKubelet::started(&node.folder());
    let _agent = node.registered(&kubelet).await;
    let large = conf(
        node.path(),
        "[{resourceName: example.com/a, defaultMaxCount: 100000}, {resourceName: example.com/b, defaultMaxCount: 3}]",
    );
    let mut slow = dial(&kubelet.endpoint(A)).await.expect("dials");
    let unread = slow.list_and_watch(Empty {}).await.expect("a stream");
    Agent::reconfigure(node.path(), &large);
    kubelet.until_allocatable(A, 100_000, SOON).await;
    Agent::reconfigure(node.path(), &conf(node.path(), TWO));
    kubelet.until_allocatable(A, 4, SOON).await;
    assert_eq!(kubelet.registrations(B), 1);
    drop(unread);
}

/// DP-22: 10 000 devices make a list below 1 MiB, with unique ids.
#[tokio::test]
async fn ten_thousand_devices_fit() {
    use prost::Message;
    let node = Node::new();
    let kubelet = FakeKubelet::started(&node.folder());
    let _agent = Agent::alone(node.path(), "[{resourceName: example.com/a, defaultMaxCount: 10000}]");
    kubelet.until_allocatable(A, 10_000, SOON).await;
    let list = kubelet.lists(A).pop().expect("a list").devices;
    let ids: BTreeSet<&str> = list.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids.len(), 10_000);
    let device = |(id, health): &(String, String)| proto::deviceplugin::Device {
        id: id.clone(),
        health: health.clone(),
        topology: None,
    };
    let bytes = proto::deviceplugin::ListAndWatchResponse { devices: list.iter().map(device).collect() }.encoded_len();
    println!("10 000 devices: {bytes} bytes");
    assert!(bytes < 1024 * 1024);
}

/// DP-26: `Allocate` may be asked again, in another order, for several containers.
#[tokio::test]
async fn allocate_answers_the_same_twice() {
    let node = Node::new();
    let kubelet = FakeKubelet::started(&node.folder());
    let agent = node.registered(&kubelet).await;
    let first = kubelet.allocate(A, &[&["sub-eni-0", "sub-eni-1"], &["sub-eni-3"]]).await.expect("ours");
    assert_eq!(first.container_responses.len(), 2);
    for ids in [&[&["sub-eni-0", "sub-eni-1"][..], &["sub-eni-3"]][..], &[&["sub-eni-1", "sub-eni-0"], &["sub-eni-3"]]]
    {
        assert_eq!(kubelet.allocate(A, ids).await.expect("ours"), first);
    }
    let refused = kubelet.allocate(A, &[&["gpu-0"]]).await.expect_err("foreign");
    assert_eq!(refused.message(), "unknown network resource device ID \"gpu-0\" for example.com/a");
    assert_eq!(kubelet.lists(A).len(), 1, "no list is sent because of it");
    assert!(
        agent.page("/metrics").await.expect("the page").1.contains("allocations_total{resource=\"example.com/a\"} 6")
    );
}
