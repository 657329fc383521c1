//! The agent's binary against a kubelet that misbehaves. `DP-…` are public bug reports of device plugins:
//!
//! | case | where |
//! |---|---|
//! | DP-18 | here, but for its state file: labels from before a reboot may be wrong, and a kubelet gets its pods from the same API server that the labels come from |
//! | DP-09 | cannot occur: one way of registration, never the plugin watcher's folder; the chart test sees it mounted read-only |
//! | DP-12 | here, and `cluster.rs` for a wrong root on a real kubelet |
//! | DP-14, DP-24, DP-29 | `cluster.rs`, with a real kubelet |
//! | DP-17 | `cluster.rs` and `figures.rs` measure the gap |
//! | DP-32, DP-33 | `docs/network-resources.md`: what an autoscaler needs; a start-up taint is the cluster's to set |
//!
//! All others are tests below.

use anyhow::ensure;
use proto::deviceplugin::Empty;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tests::agent::{Agent, conf};
use tests::kubelet::{Answer, FakeKubelet, dial};
use tests::wait;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const SOON: Duration = Duration::from_secs(20);
const A: &str = "example.com/a";
const B: &str = "example.com/b";
const TWO: &str =
    "[{resourceName: example.com/a, defaultMaxCount: 4}, {resourceName: example.com/b, defaultMaxCount: 3}]";

struct Node {
    root: TempDir,
}

impl Node {
    fn new() -> Self {
        Self { root: tempfile::tempdir().expect("a folder") }
    }

    fn path(&self) -> &Path {
        self.root.path()
    }

    fn folder(&self) -> PathBuf {
        self.root.path().join("device-plugins")
    }

    fn files(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(self.folder()).expect("readable").flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    /// An agent that offers [`TWO`] and is registered for both.
    async fn registered(&self, kubelet: &FakeKubelet) -> Agent {
        let agent = Agent::alone(self.path(), TWO);
        kubelet.until_allocatable(A, 4, SOON).await;
        kubelet.until_allocatable(B, 3, SOON).await;
        agent
    }
}

async fn until(what: &str, mut look: impl AsyncFnMut() -> anyhow::Result<()>) {
    wait::until(what, SOON, async || look().await).await;
}

/// Looks all the time that nothing changes that should not.
async fn for_a_while(span: Duration, look: impl Fn()) {
    let started = Instant::now();
    while started.elapsed() < span {
        look();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// DP-01, DP-27: a second agent's first list is the whole one, with the ids of the first.
#[tokio::test]
async fn a_new_agent_sends_the_whole_list_first() {
    let node = Node::new();
    let kubelet = FakeKubelet::started(&node.folder());
    let agent = node.registered(&kubelet).await;
    let ids = kubelet.lists(A)[0].devices.clone();
    assert_eq!(ids.len(), 4);
    drop(agent);
    until("the stream to break", async || {
        ensure!(kubelet.open_streams(A) == 0);
        Ok(())
    })
    .await;
    let _agent = node.registered(&kubelet).await;
    let lists = kubelet.lists(A);
    assert_eq!(lists.len(), 1, "one list, sent once");
    assert_eq!(lists[0].devices, ids, "the same ids, all healthy");
}

/// DP-02: the older of two agents leaves the newer one's socket and registration alone.
#[tokio::test]
async fn the_newer_of_two_agents_serves() {
    let node = Node::new();
    let kubelet = FakeKubelet::started(&node.folder());
    let mut old = node.registered(&kubelet).await;
    let before = kubelet.registrations(A);
    let new = Agent::alone(node.path(), TWO);
    until("the newer agent to register and the older to yield", async || {
        ensure!(kubelet.registrations(A) > before && old.logged().contains("another process serves this resource"));
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
    until("the older agent to yield", async || {
        ensure!(old.logged().contains("another process serves this resource"));
        Ok(())
    })
    .await;
    drop(new);
    until("the older agent to notice", async || {
        ensure!(old.logged().matches("network resource plugin is running").count() >= 4, "{}", old.logged());
        Ok(())
    })
    .await;
    kubelet.until_allocatable(A, 4, SOON).await;
}

/// DP-04: a lost socket is made again, and only its resource registers again.
#[tokio::test]
async fn a_removed_socket_is_made_again_and_disturbs_no_other() {
    let node = Node::new();
    let kubelet = FakeKubelet::started(&node.folder());
    let _agent = node.registered(&kubelet).await;
    let (a, b) = (kubelet.registrations(A), kubelet.registrations(B));
    fs::remove_file(kubelet.endpoint(A)).expect("removed");
    until("another registration", async || {
        ensure!(kubelet.registrations(A) == a + 1);
        Ok(())
    })
    .await;
    kubelet.until_allocatable(A, 4, SOON).await;
    assert_eq!(kubelet.registrations(B), b);
    assert_eq!(kubelet.streams(B), 1, "the other stream is the first one still");
    for resource in [A, B] {
        fs::remove_file(kubelet.endpoint(resource)).expect("removed");
    }
    until("both to register again", async || {
        ensure!(kubelet.registrations(A) == a + 2 && kubelet.registrations(B) == b + 1);
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
    let mut slowest = Duration::ZERO;
    for _ in 0..10 {
        let before = (kubelet.registrations(A), kubelet.registrations(B));
        kubelet.restart().await;
        let started = Instant::now();
        until("both to register again", async || {
            ensure!(kubelet.registrations(A) > before.0 && kubelet.registrations(B) > before.1);
            Ok(())
        })
        .await;
        slowest = slowest.max(started.elapsed());
        kubelet.until_allocatable(A, 4, SOON).await;
        kubelet.until_allocatable(B, 3, SOON).await;
    }
    println!("new kubelet.sock -> two resources registered: at most {slowest:?} of 10");
    assert!(agent.page("/metrics").await.expect("the page").1.contains("spiderpool_agent_kubelet_restarts_total 10"));
    assert!(slowest < Duration::from_secs(2), "{slowest:?}\n{}", agent.logged());
    assert!(node.files().contains("kubelet_internal_checkpoint"));
}

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

/// DP-06: an update reaches the new stream at once, whatever became of the old one.
#[tokio::test]
async fn an_update_reaches_the_stream_that_is_read() {
    let node = Node::new();
    let mut kubelet = FakeKubelet::started(&node.folder());
    let _agent = node.registered(&kubelet).await;
    kubelet.restart().await;
    kubelet.until_allocatable(A, 4, SOON).await;
    Agent::reconfigure(node.path(), &conf(node.path(), &TWO.replace('4', "9")));
    let took = kubelet.until_allocatable(A, 9, SOON).await;
    println!("conf.yml changed -> kubelet: {took:?}");
    assert_eq!(kubelet.open_streams(A), 1, "the old stream's task has ended");
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

/// DP-10: failed tries leave no files; a clean stop leaves none of ours and all of others'.
#[tokio::test]
async fn failed_tries_and_a_stop_leave_no_files() {
    let node = Node::new();
    let kubelet = FakeKubelet::started(&node.folder());
    fs::write(node.folder().join("other-plugin.sock"), "").expect("writable");
    kubelet.answer(A, Answer::Refuse("not now"));
    let mut agent = Agent::alone(node.path(), TWO);
    until("some failed tries", async || {
        ensure!(kubelet.registrations(A) >= 4, "{}", kubelet.registrations(A));
        Ok(())
    })
    .await;
    kubelet.until_allocatable(B, 3, SOON).await;
    assert_eq!(agent.logged().matches("the kubelet refused the registration: not now").count(), 1, "said once");
    let (_, board) = agent.page("/registrations").await.expect("the page");
    assert!(board.contains("Failing") && board.contains("not now") && board.contains("Registered"), "{board}");
    kubelet.answer(A, Answer::Accept);
    kubelet.until_allocatable(A, 4, SOON).await;
    let ours: Vec<String> = node.files().into_iter().filter(|file| file.contains("spiderpool")).collect();
    assert_eq!(ours, ["spiderpool-example.com_a.sock", "spiderpool-example.com_b.sock"]);
    agent.process.signal("TERM");
    let code = wait::until("the end of the agent", SOON, async || agent.process.ended().ok_or("it runs")).await;
    assert_eq!(code, 0, "{}", agent.logged());
    assert_eq!(node.files(), ["kubelet.sock", "other-plugin.sock"].map(ToOwned::to_owned).into());
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

/// DP-12: the configured root is wrong or right; the live socket counts.
#[tokio::test]
async fn the_live_socket_is_found_and_named() {
    let node = Node::new();
    let kubelet = FakeKubelet::started(&node.folder());
    let agent = node.registered(&kubelet).await;
    let line = format!("selected network resource plugin path pluginDir={}", node.folder().display());
    assert!(agent.logged().contains(&line), "{}", agent.logged());
    assert!(agent.page("/metrics").await.expect("the page").1.contains("spiderpool_agent_kubelet_listens 1"));
}

/// DP-15: a renamed resource leaves nothing under its old name.
#[tokio::test]
async fn a_renamed_resource_leaves_nothing_behind() {
    let node = Node::new();
    let kubelet = FakeKubelet::started(&node.folder());
    let _agent = node.registered(&kubelet).await;
    let old = kubelet.endpoint(A);
    Agent::reconfigure(node.path(), &conf(node.path(), &TWO.replace("example.com/a", "example.com/c")));
    kubelet.until_allocatable("example.com/c", 4, SOON).await;
    until("the end of the old name", async || {
        ensure!(kubelet.open_streams(A) == 0 && !old.exists());
        Ok(())
    })
    .await;
    let last = kubelet.lists(A).pop().expect("lists");
    assert!(last.devices.is_empty(), "its last list is empty: {last:?}");
    assert_eq!((kubelet.registrations(A), kubelet.registrations(B)), (1, 1), "nobody else registers again");
}

/// DP-18: without an API server, what needs no labels is registered in seconds.
#[tokio::test]
async fn nothing_waits_for_an_api_server_that_is_not_needed() {
    let node = Node::new();
    let kubelet = FakeKubelet::started(&node.folder());
    // Built, if need be, before the clock runs.
    tests::agent::binary();
    let started = Instant::now();
    let _agent = node.registered(&kubelet).await;
    println!("agent start (debug build) -> two resources registered: {:?}", started.elapsed());
    assert!(started.elapsed() < Duration::from_secs(5));
}

/// DP-20: an agent that is stopped and goes on is registered still.
#[tokio::test]
async fn a_frozen_agent_goes_on_where_it_was() {
    let node = Node::new();
    let kubelet = FakeKubelet::started(&node.folder());
    let agent = node.registered(&kubelet).await;
    agent.process.signal("STOP");
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
        assert!(agent.page("/metrics").await.expect("the page").1.contains("spiderpool_agent_configuration_valid 0"));
        assert_eq!(kubelet.allocatable(A), Some(4));
    }
    fs::remove_file(node.path().join("conf.yml")).expect("removed");
    for_a_while(Duration::from_millis(300), || assert_eq!(kubelet.allocatable(A), Some(4))).await;
    Agent::reconfigure(node.path(), &good);
    kubelet.until_allocatable(A, 5, SOON).await;
    assert_eq!((kubelet.registrations(A), kubelet.streams(A)), (1, 1), "the count changed in place");
    let (_, metrics) = agent.page("/metrics").await.expect("the page");
    assert!(metrics.contains("spiderpool_agent_configuration_valid 1"), "{metrics}");
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

/// A client that says it goes away, in the middle of everything, disturbs nobody.
#[tokio::test]
async fn a_client_that_goes_away_disturbs_nobody() {
    const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    const GOAWAY: [u8; 17] = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let node = Node::new();
    let kubelet = FakeKubelet::started(&node.folder());
    let _agent = node.registered(&kubelet).await;
    let mut connection = tokio::net::UnixStream::connect(kubelet.endpoint(A)).await.expect("connects");
    for bytes in [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &SETTINGS, &GOAWAY] {
        connection.write_all(bytes).await.expect("sends");
    }
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(SOON, connection.read_to_end(&mut rest)).await;
    assert!(ended.is_ok(), "the agent lets the connection go");
    for_a_while(Duration::from_millis(500), || assert_eq!(kubelet.allocatable(A), Some(4))).await;
    assert_eq!((kubelet.registrations(A), kubelet.registrations(B)), (1, 1));
}

/// DP-31: which `:authority` gets through, and what shows when one does not.
#[tokio::test]
async fn an_authority_that_is_no_host_is_refused_and_counted() {
    let node = Node::new();
    let kubelet = FakeKubelet::started(&node.folder());
    let agent = node.registered(&kubelet).await;
    let socket = kubelet.endpoint(A);
    assert!(answered(&socket, Some("localhost")).await);
    assert!(answered(&socket, None).await, "no authority at all");
    for refused in ["/var/lib/kubelet/device-plugins/x.sock", "%2Fvar%2Flib%2Fkubelet%2Fdevice-plugins%2Fx.sock"] {
        let before = malformed(&agent).await;
        let answered = answered(&socket, Some(refused)).await;
        let counted = malformed(&agent).await > before;
        assert!(answered || counted, "{refused}: a refusal is counted");
    }
    assert!(malformed(&agent).await > 0);
    assert!(agent.logged().contains("refused an HTTP/2 request"), "{}", agent.logged());
    assert_eq!(kubelet.allocatable(A), Some(4), "the kubelet's own stream goes on");
}

async fn malformed(agent: &Agent) -> u64 {
    let (_, metrics) = agent.page("/metrics").await.expect("the page");
    let line = metrics.lines().find_map(|line| line.strip_prefix("spiderpool_agent_malformed_requests_total "));
    line.and_then(|count| count.parse().ok()).expect("the counter")
}

/// Sends `GetDevicePluginOptions` by hand, since clients refuse odd authorities themselves; whether a response came.
async fn answered(socket: &Path, authority: Option<&str>) -> bool {
    const HEADERS: u8 = 1;
    const RST_STREAM: u8 = 3;
    let mut block = Vec::new();
    let mut field = |name: &str, value: &str| {
        // HPACK literal without indexing, new name; lengths stay below 127.
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).expect("short"));
            block.extend_from_slice(text.as_bytes());
        }
    };
    field(":method", "POST");
    field(":scheme", "http");
    field(":path", "/v1beta1.DevicePlugin/GetDevicePluginOptions");
    if let Some(authority) = authority {
        field(":authority", authority);
    }
    field("content-type", "application/grpc");
    field("te", "trailers");
    let frame = |kind: u8, flags: u8, stream: u8, payload: &[u8]| {
        let length = u32::try_from(payload.len()).expect("short").to_be_bytes();
        let mut frame = vec![length[1], length[2], length[3], kind, flags, 0, 0, 0, stream];
        frame.extend_from_slice(payload);
        frame
    };
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(4, 0, 0, &[]));
    bytes.extend(frame(HEADERS, 4, 1, &block));
    bytes.extend(frame(0, 1, 1, &[0, 0, 0, 0, 0]));
    let mut connection = tokio::net::UnixStream::connect(socket).await.expect("connects");
    connection.write_all(&bytes).await.expect("sends");
    let answer = async {
        loop {
            let mut head = [0_u8; 9];
            connection.read_exact(&mut head).await.ok()?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; usize::try_from(length).expect("small")];
            connection.read_exact(&mut payload).await.ok()?;
            match (head[3], head[8]) {
                (HEADERS, 1) => return Some(true),
                (RST_STREAM, 1) => return Some(false),
                _ => {}
            }
        }
    };
    tokio::time::timeout(SOON, answer).await.expect("an answer").unwrap_or(false)
}
