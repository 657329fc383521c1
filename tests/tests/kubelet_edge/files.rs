//! The files in the kubelet's folder.

use super::{A, B, Node, SOON, TWO, until};
use anyhow::ensure;
use std::fs;
use tests::agent::Agent;
use tests::kubelet::{Answer, FakeKubelet};
use tests::wait;

/// DP-04: a lost socket is made again, and only its resource registers again.
#[tokio::test]
async fn a_removed_socket_is_made_again_and_disturbs_no_other() {
    let node = Node::new();
    let kubelet = FakeKubelet::started(&node.folder());
    let _agent = node.registered(&kubelet).await;
    let (a, b) = (kubelet.registrations(A), kubelet.registrations(B));
    fs::remove_file(kubelet.endpoint(A)).expect("removed");
    until("another registration", async || {
        ensure!(kubelet.registrations(A) > a);
        Ok(())
    })
    .await;
    kubelet.until_allocatable(A, 4, SOON).await;
    assert_eq!(kubelet.registrations(B), b);
    assert_eq!(kubelet.streams(B), 1, "the other stream is the first one still");
    let a = kubelet.registrations(A);
    for resource in [A, B] {
        fs::remove_file(kubelet.endpoint(resource)).expect("removed");
    }
    until("both to register again", async || {
        ensure!(kubelet.registrations(A) > a && kubelet.registrations(B) > b);
        Ok(())
    })
    .await;
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
    // The row says Registering for as long as one more try runs.
    until("the page to say why", async || {
        let (_, board) = agent.page("/registrations").await?;
        ensure!(board.contains("Failing") && board.contains("not now") && board.contains("\"Registered\""), "{board}");
        Ok(())
    })
    .await;
    kubelet.answer(A, Answer::Accept);
    kubelet.until_allocatable(A, 4, SOON).await;
    let ours: Vec<String> = node.files().into_iter().filter(|file| file.contains("spiderpool")).collect();
    assert_eq!(ours, ["spiderpool-example.com_a.sock", "spiderpool-example.com_b.sock"]);
    agent.process.signal("TERM");
    let code = wait::until("the end of the agent", SOON, async || agent.process.ended().ok_or("it runs")).await;
    assert_eq!(code, 0, "{}", agent.logged());
    assert_eq!(node.files(), ["kubelet.sock", "other-plugin.sock"].map(ToOwned::to_owned).into());
}
