//! Odd names, odd texts, servers that are not there.

use crate::stage::{Ran, SOON, Stage, binary};
use serde_json::json;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tests::agent::free_port;
use tests::process::attempt;

fn kubeconfig(folder: &Path, server: &str) -> std::path::PathBuf {
    let path = folder.join("kubeconfig");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{{name: c, cluster: {{server: \"{server}\"}}}}]\n\
         users: [{{name: u, user: {{token: t}}}}]\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n"
    );
    std::fs::write(&path, text).expect("writable");
    path
}

fn run(kubeconfig: &Path, arguments: &[&str]) -> (Ran, Duration) {
    let began = Instant::now();
    let mut command = Command::new(binary());
    command.arg("--kubeconfig").arg(kubeconfig).args(arguments);
    (attempt(&mut command).into(), began.elapsed())
}

#[test]
fn a_server_that_is_not_there_is_named_in_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let closed = format!("http://127.0.0.1:{}", free_port());
    for arguments in [&["pools"][..], &["pod", "a/b"], &["node", "n"], &["leaks"], &["release", "10.0.0.1", "--yes"]] {
        let (ran, _) = run(&kubeconfig(folder.path(), &closed), arguments);
        assert_eq!(ran.code, 2, "{arguments:?}: {ran:?}");
        assert!(ran.err.contains(&closed) && ran.out.is_empty(), "{arguments:?}: {ran:?}");
    }
    // One that takes connections and says nothing.
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let url = format!("http://{}", silent.local_addr().expect("bound"));
    let (ran, took) = run(&kubeconfig(folder.path(), &url), &["pools", "--request-timeout", "300ms"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains(&url) && ran.err.contains("did not answer within 300ms"), "{ran:?}");
    assert!(took < SOON, "{took:?}");
    let (ran, _) = run(&folder.path().join("none"), &["pools"]);
    assert!(ran.code == 2 && ran.err.contains("cannot tell where the API server is"), "{ran:?}");
}

#[test]
fn what_cannot_be_a_name_is_refused_before_anybody_is_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    let nowhere = kubeconfig(folder.path(), "http://127.0.0.1:1");
    for (arguments, word) in [
        (&["pod", "../../nodes"][..], "\"..\" is not the name of a namespace"),
        (&["pod", "a/b/c"], "\"b/c\" is not the name of a pod"),
        (&["pod", "a b"], "\"a b\" is not the name of a pod"),
        (&["pod", "x", "-n", "A"], "\"A\" is not the name of a namespace"),
        (&["pod", "a/x", "-n", "b"], "leave one of them"),
        (&["pools", "a?x=1"], "\"a?x=1\" is not the name of a pool"),
        (&["pools", "a\x1b[31m"], "\"a\\u{1b}[31m\""),
        (&["node", ""], "\"\" is not the name of a node"),
        (&["release", "10.0.0.1", "300.0.0.1", "10.0.0.0/8"], "\"300.0.0.1\" is no address: it is not an IP address"),
        (&["release", "10.0.0.1", "300.0.0.1", "10.0.0.0/8"], "\"10.0.0.0/8\" is no address: it is a subnet"),
        (&["release"], "ADDRESS"),
        (&["pools", "-o", "xml"], "[possible values: table, json]"),
        (&["pools", "--request-timeout", "0s"], "from 1ms to 1h"),
        (&["pool"], "pools"),
    ] {
        let (ran, _) = run(&nowhere, arguments);
        assert_eq!(ran.code, 2, "{arguments:?}: {ran:?}");
        assert!(ran.err.contains(word) && !ran.err.contains('\x1b'), "{arguments:?}: {ran:?}");
    }
}

#[test]
fn help_says_what_was_typed() {
    let folder = tempfile::tempdir().expect("a folder");
    let plugin = folder.path().join("kubectl-spiderpool");
    symlink(binary(), &plugin).expect("a link");
    let help = Ran::from(attempt(Command::new(&plugin).arg("--help")));
    assert!(help.code == 0 && help.out.contains("Usage: kubectl spiderpool [OPTIONS] <COMMAND>"), "{}", help.out);
    let of_pod = Ran::from(attempt(Command::new(&plugin).args(["pod", "--help"])));
    assert!(of_pod.out.contains("Usage: kubectl spiderpool pod [OPTIONS] <POD>"), "{}", of_pod.out);
    let usage = Ran::from(attempt(Command::new(&plugin).arg("pod")));
    assert!(usage.code == 2 && usage.err.contains("Usage: kubectl spiderpool pod"), "{usage:?}");
    let own = Ran::from(attempt(Command::new(binary()).arg("--help")));
    assert!(own.out.contains("Usage: spiderpoolctl [OPTIONS] <COMMAND>"), "{}", own.out);
    for shell in ["bash", "zsh", "fish"] {
        let script = Ran::from(attempt(Command::new(binary()).args(["completion", shell])));
        assert!(script.code == 0 && script.out.contains("spiderpoolctl") && script.out.contains("leaks"), "{shell}");
    }
}

#[tokio::test]
async fn nothing_that_others_wrote_moves_the_terminal() {
    let stage = Stage::set().await;
    let odd = "a\x1b[31m\u{9b}2J\u{202e}b";
    let annotations = json!({"k8s.v1.cni.cncf.io/networks": odd, "ipam.spidernet.io/ippool": odd,
                             "cni.spidernet.io/network-resource-inject": odd});
    let uid =
        stage.pod("web", &annotations, &json!({"nodeName": "n"}), &json!({"phase": "Pending", "reason": odd})).await;
    stage.held("10.6.0.10", ["web", &uid], ["n", "nu"], &json!({"containerId": odd, "interface": odd})).await;
    let event = json!({
        "metadata": {"name": "web.1"}, "type": "Warning", "reason": "FailedCreatePodSandBox", "message": odd,
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "web", "uid": uid},
    });
    stage.create("/api/v1/namespaces/default/events", &event).await;
    stage.pool("pool-a", &["10.6.0.10"], &json!({"nodeName": [odd]})).await;
    for arguments in [&["pod", "web"][..], &["pools"], &["pools", "pool-a"], &["node", "n"], &["leaks"]] {
        for output in ["table", "json"] {
            let ran = stage.run("admin", &[arguments, &["-o", output]].concat());
            let odd = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
            assert!(!ran.out.contains(odd) && !ran.err.contains(odd), "{arguments:?} {output}: {ran:?}");
            assert!(output == "table" || ran.json().is_object(), "{arguments:?}");
        }
    }
    let ran = stage.run("admin", &["pod", "web"]);
    ran.line(&["WRONG", "networks", "annotation k8s.v1.cni.cncf.io/networks"]);
    ran.line(&["WRONG", "events", "FailedCreatePodSandBox: a\\u{1b}[31m\\u{9b}2J\\u{202e}b"]);
    let json = stage.run("admin", &["pod", "web", "-o", "json"]).json();
    assert_eq!(json["allocations"][0]["containerId"], odd, "programs get it as it is");
}
