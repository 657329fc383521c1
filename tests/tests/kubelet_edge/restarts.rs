//! Agents and kubelets that come, go, freeze and come again.

use super::{A, B, Node, SOON, TWO, for_a_while, one_within, until};
use anyhow::ensure;
use std::fs;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};
use tests::agent::{Agent, conf};
use tests::kubelet::FakeKubelet;
use tests::pod_resources::{FakePodResources, Says};
use tests::wait;

/// DP-01, DP-27: a second agent's first list is the whole one, with the ids of the first. DP-17: it comes soon.
#[tokio::test]
async fn a_new_agent_sends_the_whole_list_first() {
    let node = Node::new();
    let kubelet = FakeKubelet::started(&node.folder());
    let mut agent = Some(node.registered(&kubelet).await);
    let ids = kubelet.lists(A)[0].devices.clone();
    assert_eq!(ids.len(), 4);
    println!("agent killed -> its successor (debug build) registered and read:");
    one_within(Duration::from_secs(3), async || {
        let killed = Instant::now();
        drop(agent.take());
        until("the streams to break", async || {
            ensure!(kubelet.open_streams(A) == 0 && kubelet.open_streams(B) == 0);
            Ok(())
        })
        .await;
        agent = Some(node.registered(&kubelet).await);
        let gap = killed.elapsed();
        let lists = kubelet.lists(A);
        assert_eq!(lists.len(), 1, "one list, sent once");
        assert_eq!(lists[0].devices, ids, "the same ids, all healthy");
        gap
    })
    .await;
}

/// DP-02: the older of two agents leaves the newer one's socket and registration alone.
#[tokio::test]
async fn the_newer_of_two_agents_serves() {
    let node = Node::new();
    let kubelet = FakeKubelet::started(&node.folder());
    let mut old = node.registered(&kubelet).await;
    let before = [A, B].map(|resource| kubelet.streams(resource));
    let new = Agent::alone(node.path(), TWO);
    until_yielded(&old).await;
    until("the newer agent to be read", async || {
        ensure!([A, B].map(|resource| kubelet.streams(resource)).iter().zip(&before).all(|(now, before)| now > before));
        Ok(())
    })
    .await;
    kubelet.until_allocatable(A, 4, SOON).await;
    let registrations = kubelet.registrations(A);
    old.process.signal("TERM");
    wait::until("the end of the older agent", SOON, async || old.process.ended().ok_or("it runs")).await;
    for_a_while(Duration::from_secs(3), || {
        assert_eq!(kubelet.allocatable(A), Some(4));
        assert!(kubelet.endpoint(A).exists());
    })
    .await;
    assert_eq!(kubelet.registrations(A), registrations, "nobody registers again:\n{}", new.logged());
}

/// An older agent that yielded serves again when the newer one goes.
#[tokio::test]
async fn the_older_agent_returns_when_the_newer_goes() {
    let node = Node::new();
    let kubelet = FakeKubelet::started(&node.folder());
    let old = node.registered(&kubelet).await;
    let new = Agent::alone(node.path(), TWO);
    until_yielded(&old).await;
    let registered = || old.logged().matches("network resource plugin is running").count();
    let before = registered();
    drop(new);
    until("the older agent to notice", async || {
        ensure!(registered() >= before + 2, "{}", old.logged());
        Ok(())
    })
    .await;
    kubelet.until_allocatable(A, 4, SOON).await;
}

/// Each of the two resources has gone to another agent.
async fn until_yielded(agent: &Agent) {
    until("the older agent to yield", async || {
        let yielded = agent.logged().matches("another process serves this resource").count();
        ensure!(yielded >= 2, "{}", agent.logged());
        Ok(())
    })
    .await;
}

/// The kubelet restarts and empties its folder; ten times, with figures.
#[tokio::test]
async fn a_restarted_kubelet_gets_every_resource_again() {
    let node = Node::new();
    let mut kubelet = FakeKubelet::started(&node.folder());
    fs::write(node.folder().join("kubelet_internal_checkpoint"), "{}").expect("writable");
    let agent = node.registered(&kubelet).await;
    let mut spans = Vec::new();
    for _ in 0..10 {
        let before = (kubelet.registrations(A), kubelet.registrations(B));
        kubelet.restart().await;
        let started = Instant::now();
        until("both to register again", async || {
            ensure!(kubelet.registrations(A) > before.0 && kubelet.registrations(B) > before.1);
            Ok(())
        })
        .await;
        spans.push(started.elapsed());
        kubelet.until_allocatable(A, 4, SOON).await;
        kubelet.until_allocatable(B, 3, SOON).await;
    }
    spans.sort();
    println!("new kubelet.sock -> two resources registered, 10 rounds: {spans:?}");
    assert!(agent.page("/metrics").await.expect("the page").1.contains("spiderpool_agent_kubelet_restarts_total 10"));
    // The slowest may have waited for what else runs on the machine.
    assert!(spans[spans.len() / 2] < Duration::from_secs(2), "{spans:?}\n{}", agent.logged());
    assert!(node.files().contains("kubelet_internal_checkpoint"));
}

/// Somebody empties the folder of a kubelet that lives on. Its streams are all there is until it restarts.
#[tokio::test]
async fn an_emptied_folder_ends_no_stream_of_a_living_kubelet() {
    let node = Node::new();
    let mut kubelet = FakeKubelet::started(&node.folder());
    let agent = node.registered(&kubelet).await;
    kubelet.empty_folder();
    until("the agent to notice", async || {
        let (_, metrics) = agent.page("/metrics").await?;
        ensure!(metrics.contains("spiderpool_agent_kubelet_listens 0"), "{metrics}");
        Ok(())
    })
    .await;
    for_a_while(Duration::from_secs(2), || {
        assert_eq!((kubelet.allocatable(A), kubelet.streams(A)), (Some(4), 1));
        assert_eq!((kubelet.allocatable(B), kubelet.streams(B)), (Some(3), 1));
    })
    .await;
    Agent::reconfigure(node.path(), &conf(node.path(), &TWO.replace('4', "5")));
    kubelet.until_allocatable(A, 5, SOON).await;
    assert_eq!(kubelet.streams(A), 1, "the stream serves as before");
    kubelet.restart().await;
    kubelet.until_allocatable(A, 5, SOON).await;
    kubelet.until_allocatable(B, 3, SOON).await;
    assert_eq!((kubelet.streams(A), kubelet.streams(B)), (2, 2));
}

/// A kubelet that is stopped is waited for; that is no failure of a registration.
#[tokio::test]
async fn a_stopped_kubelet_is_waited_for_without_complaint() {
    let node = Node::new();
    let mut kubelet = FakeKubelet::started(&node.folder());
    let agent = node.registered(&kubelet).await;
    kubelet.kill();
    until("both to wait", async || {
        let (_, board) = agent.page("/registrations").await?;
        ensure!(board.matches("WaitingForKubelet").count() == 2, "{board}");
        Ok(())
    })
    .await;
    for_a_while(Duration::from_secs(2), || {}).await;
    let (_, board) = agent.page("/registrations").await.expect("the page");
    assert_eq!(board.matches("WaitingForKubelet").count(), 2, "{board}");
    assert!(!agent.logged().contains("registration failed"), "{}", agent.logged());
    kubelet.restart().await;
    kubelet.until_allocatable(A, 4, SOON).await;
    kubelet.until_allocatable(B, 3, SOON).await;
    assert!(!agent.logged().contains("registration failed"), "{}", agent.logged());
    assert_eq!((kubelet.registrations(A), kubelet.registrations(B)), (2, 2));
}

/// DP-07: a dead kubelet.sock; the live one comes later.
#[tokio::test]
async fn a_socket_without_a_kubelet_is_waited_out() {
    let node = Node::new();
    let mut kubelet = FakeKubelet::stopped(&node.folder());
    drop(UnixListener::bind(node.folder().join("kubelet.sock")).expect("a stale socket"));
    let mut agent = Agent::alone(node.path(), TWO);
    until("an agent that lives and waits", async || {
        ensure!(agent.page("/live").await?.0 == 200);
        ensure!(agent.page("/registrations").await?.1.contains("WaitingForKubelet"));
        Ok(())
    })
    .await;
    for_a_while(Duration::from_secs(4), || {}).await;
    assert!(agent.process.ended().is_none(), "{}", agent.logged());
    assert!(agent.logged().lines().count() < 15, "no line per try:\n{}", agent.logged());
    kubelet.start();
    kubelet.until_allocatable(A, 4, SOON).await;
    assert_eq!(kubelet.registrations(A), 1);
}

/// DP-08: kubelet.sock comes, goes and comes again.
#[tokio::test]
async fn a_flapping_kubelet_ends_in_one_registration() {
    let node = Node::new();
    let mut kubelet = FakeKubelet::stopped(&node.folder());
    let mut agent = Agent::alone(node.path(), TWO);
    until("an agent that lives", async || {
        ensure!(agent.page("/live").await?.0 == 200);
        Ok(())
    })
    .await;
    let socket = node.folder().join("kubelet.sock");
    let flash = UnixListener::bind(&socket).expect("a socket");
    tokio::time::sleep(Duration::from_millis(100)).await;
    drop(flash);
    fs::remove_file(&socket).expect("removed");
    tokio::time::sleep(Duration::from_secs(2)).await;
    kubelet.start();
    kubelet.until_allocatable(A, 4, SOON).await;
    kubelet.until_allocatable(B, 3, SOON).await;
    assert_eq!((kubelet.registrations(A), kubelet.registrations(B)), (1, 1));
    assert!(agent.process.ended().is_none());
}

/// DP-12: where the live socket is and is told; here below the configured root.
#[tokio::test]
async fn the_live_socket_is_found_and_named() {
    let node = Node::new();
    let kubelet = FakeKubelet::started(&node.folder());
    let agent = node.registered(&kubelet).await;
    let line = format!("selected network resource plugin path pluginDir={}", node.folder().display());
    assert!(agent.logged().contains(&line), "{}", agent.logged());
    assert!(agent.page("/metrics").await.expect("the page").1.contains("spiderpool_agent_kubelet_listens 1"));
}

/// DP-12: the configured root is wrong; the kubelet listens where the constant in it says, in a mount namespace where
/// that is our folder. The list of what pods hold is found there too.
#[tokio::test]
async fn a_wrong_root_is_made_good_by_the_kubelets_constant() {
    let node = Node::new();
    let kubelet = FakeKubelet::started(&node.folder());
    let _pods = FakePodResources::started(node.path(), Says::Held(vec![(A, vec!["sub-eni-3"])]));
    let wrong = node.path().join("wrong");
    // Dead files of an older kubelet, as a root that was moved has them.
    for folder in ["device-plugins", "pod-resources"] {
        fs::create_dir_all(wrong.join(folder)).expect("writable");
        drop(UnixListener::bind(wrong.join(folder).join("kubelet.sock")).expect("a stale socket"));
    }
    let away = node.path().join("away.kubeconfig");
    fs::write(&away, tests::agent::unreachable_api_server()).expect("writable");
    let binary = tests::agent::binary().display().to_string();
    let mounts = format!(
        "mount -t tmpfs none /var/lib && mkdir /var/lib/kubelet && mount --bind {} /var/lib/kubelet && exec \"$@\"",
        node.path().display()
    );
    let under = ["unshare", "--mount", "--", "sh", "-c", &mounts, "sh", &binary];
    let env = [("KUBECONFIG", away.to_str().expect("UTF-8"))];
    let agent = Agent::start_under(&under, node.path(), "own", &conf(&wrong, TWO), &env);
    kubelet.until_allocatable(A, 4, SOON).await;
    let line = "selected network resource plugin path pluginDir=/var/lib/kubelet/device-plugins";
    assert!(agent.logged().contains(line), "{}", agent.logged());
    until("what pods hold", async || {
        let (_, metrics) = agent.page("/metrics").await?;
        ensure!(metrics.contains("spiderpool_agent_in_use_known 1"), "{metrics}");
        ensure!(metrics.contains("spiderpool_agent_devices_in_use{resource=\"example.com/a\"} 1"), "{metrics}");
        Ok(())
    })
    .await;
}

/// DP-18: without an API server, what needs no labels is registered in seconds.
#[tokio::test]
async fn nothing_waits_for_an_api_server_that_is_not_needed() {
    // Built, if need be, before the clock runs.
    tests::agent::binary();
    println!("agent start (debug build) -> two resources registered:");
    one_within(Duration::from_secs(5), async || {
        let node = Node::new();
        let kubelet = FakeKubelet::started(&node.folder());
        let started = Instant::now();
        let _agent = node.registered(&kubelet).await;
        started.elapsed()
    })
    .await;
}

/// DP-20: an agent that is stopped and goes on is registered still.
#[tokio::test]
async fn a_frozen_agent_goes_on_where_it_was() {
    let node = Node::new();
    let kubelet = FakeKubelet::started(&node.folder());
    let agent = node.registered(&kubelet).await;
    agent.process.signal("STOP");
    until("it to be stopped", async || {
        let state = agent.process.state();
        ensure!(state == 'T', "{state}");
        Ok(())
    })
    .await;
    let hang = tokio::time::timeout(Duration::from_secs(1), agent.page("/live")).await;
    assert!(hang.is_err(), "the liveness probe sees it");
    agent.process.signal("CONT");
    until("life", async || {
        ensure!(agent.page("/live").await?.0 == 200);
        Ok(())
    })
    .await;
    assert_eq!((kubelet.allocatable(A), kubelet.registrations(A)), (Some(4), 1));
}
